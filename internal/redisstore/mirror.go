package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
)

const (
	// mirrorEvery is how long changes are gathered. They are in the archive in less than 500 ms, if it is well.
	mirrorEvery = 200 * time.Millisecond
	// mirrorAgain is how long it rests after a failure.
	mirrorAgain = time.Second
	// mirrorBatch is how many counters are read and written at once.
	mirrorBatch = 500
	// mirrorTimeout bounds each batch.
	mirrorTimeout = 5 * time.Second
	// mirrorAtMost is how many counters may wait, some 30 MB. The archive is told of others when they next change.
	mirrorAtMost = 100_000

	pruneEvery = time.Hour
	// pruneAfter is far longer than clocks differ.
	pruneAfter = 24 * time.Hour
)

// mirror writes counters that changed to the archive: as they stand by then, however often they changed. While the
// archive or Redis is away they wait.
type mirror struct {
	ledger *Ledger
	logger *slog.Logger
	closed chan struct{} // by close
	ended  chan struct{} // by run

	flushing sync.Mutex
	mu       sync.Mutex
	dirty    map[quota.CounterName]struct{}
	dropped  uint64 // for which there was no room
}

func newMirror(l *Ledger, logger *slog.Logger) *mirror {
	return &mirror{ledger: l, logger: logger, closed: make(chan struct{}), ended: make(chan struct{}),
		dirty: make(map[quota.CounterName]struct{})}
}

// note remembers that counters changed.
func (m *mirror) note(names ...quota.CounterName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if _, noted := m.dirty[name]; !noted && len(m.dirty) >= mirrorAtMost {
			m.dropped++
			continue
		}
		m.dirty[name] = struct{}{}
	}
}

// noted takes some of what was noted.
func (m *mirror) noted() []quota.CounterName {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]quota.CounterName, 0, min(len(m.dirty), mirrorBatch))
	for name := range m.dirty {
		if len(names) == mirrorBatch {
			break
		}
		names = append(names, name)
		delete(m.dirty, name)
	}
	return names
}

func (m *mirror) run() {
	defer close(m.ended)
	failing, pruned := false, time.Now()
	for wait := mirrorEvery; ; {
		select {
		case <-m.closed:
			return
		case <-time.After(wait):
		}
		err := m.flush(context.Background())
		wait = mirrorEvery
		if err != nil {
			wait = mirrorAgain
		}
		switch {
		case err != nil && !failing:
			m.logger.Warn("Counters of quotas are not written to the database: if Redis loses them now, they begin from what was written before", "error", err)
		case err == nil && failing:
			m.logger.Info("Counters of quotas are written to the database again")
		}
		failing = err != nil
		if time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			if err := m.ledger.archive.Prune(context.Background(), pruned.Add(-pruneAfter)); err != nil {
				m.logger.Warn("Counters of quotas that expired are not deleted", "error", err)
			}
		}
	}
}

func (m *mirror) close(ctx context.Context) error {
	close(m.closed)
	select {
	case <-m.ended:
		return m.flush(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush writes all that was noted, or notes it again. Nothing is on its way any more when it returns.
func (m *mirror) flush(ctx context.Context) error {
	m.flushing.Lock()
	defer m.flushing.Unlock()
	for {
		names := m.noted()
		if len(names) == 0 {
			return nil
		}
		if err := m.write(ctx, names); err != nil {
			m.note(names...)
			return err
		}
	}
}

// write reads counters from Redis and writes them to the archive.
func (m *mirror) write(ctx context.Context, names []quota.CounterName) error {
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	counters, err := m.read(ctx, names)
	if err != nil || len(counters) == 0 {
		return err
	}
	return m.ledger.archive.Keep(ctx, counters)
}

// read leaves out counters that are not there: the archive knows more of them.
func (m *mirror) read(ctx context.Context, names []quota.CounterName) ([]quota.ArchivedCounter, error) {
	hashes, expiries := make([]*redis.MapStringStringCmd, len(names)), make([]*redis.DurationCmd, len(names))
	_, err := m.ledger.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			key := m.ledger.prefix + "{" + name.Subject + "}:c:" + string(name.Rule) + ":" + name.Shape
			hashes[i], expiries[i] = p.HGetAll(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("counters in Redis: %w", err)
	}
	counters := make([]quota.ArchivedCounter, 0, len(names))
	for i, name := range names {
		fields := hashes[i].Val()
		version, _ := strconv.ParseInt(fields["v"], 10, 64)
		if version > 0 {
			expire := time.Now().Add(max(0, expiries[i].Val()))
			counters = append(counters, quota.ArchivedCounter{CounterName: name, Version: version, Content: contentOf(fields), Expire: expire})
		}
	}
	return counters, nil
}

// contentOf writes down the fields of a counter, without what is held, its version and its master,
// and how long it lasts.
func contentOf(fields map[string]string) string {
	var content strings.Builder
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if value := fields[field]; field != "h" && field != "v" && field != "m" && field != "e" && value != "0" {
			fmt.Fprintf(&content, "%s %s ", field, value)
		}
	}
	return strings.TrimSuffix(content.String(), " ")
}
