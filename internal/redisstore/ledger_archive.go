package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/toolgrant/toolgrant/internal/quota"
)

const (
	// askTimeout bounds reading the archive. What is charged elsewhere meanwhile may be lost, if Redis just then loses
	// it again.
	askTimeout = time.Second
	// askAtOnce is how many subjects are read at a time, so that a Redis that lost all counters does not take all of
	// the archive's connections.
	askAtOnce = 8
)

// archive is what counters are restored from.
type archive struct {
	quota.Archive
	turns chan struct{}
	asked singleflight.Group
}

// Archive has the ledger keep the counters of rules over an hour or more in an archive, too, and restore them from
// there. The ledger must be closed.
func Archive(a quota.Archive, logger *slog.Logger) LedgerOption {
	return func(l *Ledger) {
		l.archive = &archive{Archive: a, turns: make(chan struct{}, askAtOnce)}
		l.mirror = newMirror(l, logger)
		go l.mirror.run()
	}
}

// Close writes to the archive what it does not have yet, and ends.
func (l *Ledger) Close(ctx context.Context) error {
	if l.mirror == nil {
		return nil
	}
	return l.mirror.close(ctx)
}

// ArchiveStats is how far the archive is behind.
type ArchiveStats struct {
	Waiting int    // counters that changed and are not written yet
	Dropped uint64 // changes, since the start, that are not known to be waiting any more, since too many did
}

// ArchiveStats returns how far the archive is behind; without one, nothing waits.
func (l *Ledger) ArchiveStats() ArchiveStats {
	if l.mirror == nil {
		return ArchiveStats{}
	}
	l.mirror.mu.Lock()
	defer l.mirror.mu.Unlock()
	return ArchiveStats{len(l.mirror.dirty), l.mirror.dropped}
}

// kept reads a subject's counters, once for all who ask at the same time.
func (a *archive) kept(ctx context.Context, subject string) (map[quota.CounterName]quota.ArchivedCounter, error) {
	result := a.asked.DoChan(subject, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		case <-ctx.Done():
			return nil, errors.New("too many counters are to be restored")
		}
		counters, err := a.Kept(ctx, subject)
		if err != nil {
			return nil, err
		}
		known := make(map[quota.CounterName]quota.ArchivedCounter, len(counters))
		for _, c := range counters {
			known[c.CounterName] = c
		}
		return known, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("counters in the archive: %w", context.Cause(ctx))
	case r := <-result:
		if r.Err != nil {
			return nil, unavailable(r.Err)
		}
		return r.Val.(map[quota.CounterName]quota.ArchivedCounter), nil
	}
}

// ask finds out what the archive knows of the rules' counters, for restore.lua.
func (c *call) ask(ctx context.Context) error {
	counters, err := c.ledger.archive.kept(ctx, c.whose.archived())
	if err != nil {
		return err
	}
	c.known = c.known[:0]
	for _, r := range c.rules {
		_, shape := shapeOf(&r.Rule)
		known := ""
		if k, ok := counters[c.whose.counter(r.ID, shape)]; ok {
			known = fmt.Sprintf("%d %d %s", k.Version, k.Expire.UnixMilli(), k.Content)
		}
		c.known = append(c.known, known)
	}
	return nil
}

// archives tells whether a rule's counter is archived.
func (l *Ledger) archives(r *quota.Limited) bool { return l.mirror != nil && r.Archived() }

// changed notes that counters differ from the archive's.
func (l *Ledger) changed(archived []quota.CounterName) {
	if len(archived) > 0 {
		l.mirror.note(archived...)
	}
}
