package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	domain "github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// callsQueued is how many records may wait to be written. More are dropped: their nodes know them.
	callsQueued = 1 << 16
	// callsBatch is how many are written together.
	callsBatch = 512
	// callsGather is how long a record waits for others to be written with: nobody waits for it.
	callsGather = 5 * time.Millisecond
	// callsRetry is after how long records are written again that Redis did not take.
	callsRetry = 100 * time.Millisecond
)

var _ domain.Shared = (*Calls)(nil)

// Calls remembers for all nodes of a database which calls were allowed and how they were reported. Records are written
// in the background, many at a time, and so are there a moment after the call was allowed; while Redis is away up to
// 65,536 wait. A report is written at once, by one script, which decides which of several reports is the first.
//
//	toolgrant:<database>:{call:<call>}    what is remembered of a call that was allowed
//	toolgrant:<database>:{call:<call>}:r  how it was reported
//
// Records expire 15 minutes after the call's lease, reports after an hour. Of usual ids, a record takes 250 bytes and a
// report 130: a hundred calls a second are 55 MB.
type Calls struct {
	client  redis.UniversalClient
	pipe    *pipe // nil: a Cluster
	prefix  string
	timeout time.Duration
	log     *slog.Logger

	mu       sync.Mutex
	waiting  []domain.Written
	running  bool
	closing  bool
	dropped  atomic.Uint64
	stopped  chan struct{} // closed when nothing waits any more, after close
	finished sync.Once
}

// reportText answers how a call was reported before; if it was not, it writes the report down.
const reportText = `local before = redis.call('GET', KEYS[1])
if before then return before end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''`

var reportScript = redis.NewScript(reportText)

// NewCalls is for the nodes of a database, which the number identifies. The timeout bounds each command but those in the
// background. A user of Redis's access control needs the keys toolgrant:* and GET, SET, EVAL and EVALSHA.
func NewCalls(client redis.UniversalClient, database uint64, timeout time.Duration, log *slog.Logger) *Calls {
	c := &Calls{client: client, prefix: fmt.Sprintf("toolgrant:%016x:", database), timeout: timeout, log: log, stopped: make(chan struct{})}
	if one, ok := client.(*redis.Client); ok {
		c.pipe = newPipe(one, timeout)
	}
	return c
}

// process runs a command, together with others where that is possible.
func (c *Calls) process(ctx context.Context, cmd redis.Cmder) error {
	if c.pipe == nil {
		return c.client.Process(ctx, cmd)
	}
	return c.pipe.do(ctx, cmd)
}

func (c *Calls) key(name id.Call) string { return c.prefix + "{call:" + string(name) + "}" }

// Put implements call.Shared.
func (c *Calls) Put(w domain.Written) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= callsQueued {
		c.dropped.Add(1)
		return
	}
	c.waiting = append(c.waiting, w)
	if !c.running {
		c.running = true
		go c.run()
	}
}

// Dropped is how many records there was no room for.
func (c *Calls) Dropped() uint64 { return c.dropped.Load() }

// run writes until nothing waits.
func (c *Calls) run() {
	away := false
	for {
		time.Sleep(callsGather)
		c.mu.Lock()
		batch := c.waiting[:min(len(c.waiting), callsBatch)]
		if len(batch) == 0 {
			c.waiting, c.running = nil, false
			if c.closing {
				c.finished.Do(func() { close(c.stopped) })
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if err := c.write(batch); err != nil {
			if !away {
				c.log.Warn("calls cannot be written to Redis: until they can, each must be reported to the server that allowed it", "error", err)
			}
			away = true
			if c.gaveUp() {
				return
			}
			time.Sleep(callsRetry)
			continue
		}
		if away {
			c.log.Info("calls are written to Redis again")
			away = false
		}
		c.mu.Lock()
		c.waiting = c.waiting[len(batch):]
		c.mu.Unlock()
	}
}

// gaveUp tells whether nobody waits for Redis any more.
func (c *Calls) gaveUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		c.finished.Do(func() { close(c.stopped) })
	}
	return c.closing
}

// write writes a batch. Doing so again changes nothing.
func (c *Calls) write(batch []domain.Written) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	pipeline := c.client.Pipeline()
	for i := range batch {
		w := &batch[i]
		_ = pipeline.Process(ctx, redis.NewStatusCmd(ctx, "SET", c.key(w.Call), w.Text, "PX", w.Keep.Milliseconds()))
	}
	_, err := pipeline.Exec(ctx)
	return err
}

// Get implements call.Shared.
func (c *Calls) Get(ctx context.Context, name id.Call) (*domain.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := redis.NewStringCmd(ctx, "GET", c.key(name))
	err := c.process(ctx, cmd)
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, callsUnavailable(err)
	}
	return domain.DecodeRecord(name, cmd.Val())
}

// Report implements call.Shared. It does not end with the caller's context: the call was made.
func (c *Calls) Report(ctx context.Context, name id.Call, report string) (before string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	command := func(how, script string) *redis.Cmd {
		return redis.NewCmd(ctx, how, script, 1, c.key(name)+":r", report, domain.RememberReported.Milliseconds())
	}
	cmd, err := evaluate(reportScript.Hash(), reportText, command, func(cmd redis.Cmder) error { return c.process(ctx, cmd) })
	if err != nil {
		return "", callsUnavailable(err)
	}
	return cmd.Text()
}

// Close waits until what was put is written, as long as ctx lasts.
func (c *Calls) Close(ctx context.Context) {
	c.mu.Lock()
	c.closing = true
	if !c.running {
		c.finished.Do(func() { close(c.stopped) })
	}
	c.mu.Unlock()
	select {
	case <-c.stopped:
	case <-ctx.Done():
	}
}

func callsUnavailable(cause error) error {
	return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonCountersUnavailable,
		Message: "what is known of calls can't be reached; try again", Cause: cause}
}
