package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// batchSize is how many commands go to Redis together at most. Their answers come together, too.
	batchSize = 256
	// atOnce is how many batches are under way: while Redis works on one, answers of the other are read.
	atOnce = 2
	// enough is how many must wait for a second batch to be worth it.
	enough = 8
	// queueSize is how many may wait for their turn. More are refused: Redis is slower than they come.
	queueSize = 8192
)

var errQueueFull = errors.New("too many commands wait for Redis")

// pipe sends the commands of many callers together: those that are asked while others are under way go next, all in
// one. A lone caller waits for nobody. It takes a third of what a connection for each of them takes, most of which is
// system calls.
//
// Whoever stops waiting before his command is sent has not sent it. That, and deadlines that are the caller's own, is
// why it is not go-redis's AutoPipeline, which sends whatever was once put into its queue, and waits for its answer as
// long as its connection does.
//
// It is for one Redis. In a Cluster, a node that is away would keep waiting who asks the others.
type pipe struct {
	client  *redis.Client
	timeout time.Duration // of a batch

	mu      sync.Mutex
	waiting []*request
	running int // batches
}

type request struct {
	ctx  context.Context
	cmd  redis.Cmder
	done chan struct{} // closed when cmd has its answer
}

// do sends a command and waits for its answer. The command may not be used any more when do fails because ctx ended.
func (p *pipe) do(ctx context.Context, cmd redis.Cmder) error {
	r := &request{ctx: ctx, cmd: cmd, done: make(chan struct{})}
	p.mu.Lock()
	if len(p.waiting) >= queueSize {
		p.mu.Unlock()
		return errQueueFull
	}
	p.waiting = append(p.waiting, r)
	if p.running == 0 || p.running < atOnce && len(p.waiting) >= enough {
		p.running++
		go p.run()
	}
	p.mu.Unlock()
	select {
	case <-r.done:
		return cmd.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run sends until nobody waits.
func (p *pipe) run() {
	for {
		p.mu.Lock()
		batch := p.waiting[:min(len(p.waiting), batchSize)]
		p.waiting = p.waiting[len(batch):]
		if len(batch) == 0 {
			p.running--
		}
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		p.send(batch)
	}
}

func (p *pipe) send(batch []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	pipeline := p.client.Pipeline()
	for _, r := range batch {
		if r.ctx.Err() == nil {
			_ = pipeline.Process(ctx, r.cmd)
		}
	}
	_, _ = pipeline.Exec(ctx) // each command has its own error
	for _, r := range batch {
		close(r.done)
	}
}
