package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/postgres"
)

const (
	// maxPruneInterval is how often old rows are deleted at least.
	maxPruneInterval = time.Hour
	// sweepInterval is how often it is looked for what was written of users after they were erased.
	sweepInterval = time.Minute
)

// pruning deletes what is older than it is kept.
type pruning struct {
	what      string
	forget    func(ctx context.Context, before time.Time) error
	retention time.Duration // 0: nothing is deleted
	interval  time.Duration // 0: some share of the retention
}

// prunings are all of a server.
func prunings(c *config.Config, store *postgres.Store) []pruning {
	return []pruning{
		{what: "changes", forget: store.PruneChanges, retention: c.ChangesRetention},
		{what: "searches", forget: store.PruneSearches, retention: c.CallOutcomesRetention},
		{what: "outcomes of calls", forget: store.PruneOutcomes, retention: c.CallOutcomesRetention},
		{what: "chats", forget: store.PruneChats, retention: c.ChatRetention},
		{what: "history of quotas", forget: store.PruneHistory, retention: c.QuotaHistoryRetention},
		{what: "vectors", forget: store.PruneVectors, retention: c.EmbeddingRetention},
		{what: "traces of users who were erased", forget: store.SweepErasures, retention: postgres.Straggling, interval: sweepInterval},
	}
}

// run deletes what is old, now and then, until ctx ends.
func (p pruning) run(ctx context.Context, log *slog.Logger) {
	if p.retention == 0 {
		return
	}
	interval := p.interval
	if interval == 0 {
		interval = min(p.retention/10, maxPruneInterval)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := p.forget(ctx, now.Add(-p.retention)); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "old "+p.what+" could not be deleted; it will be tried again", "error", err)
			}
		}
	}
}
