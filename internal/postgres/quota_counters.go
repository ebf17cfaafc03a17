package postgres

import (
	"context"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// QuotaCounters keeps the counters of quotas.
type QuotaCounters struct{ store *Store }

var _ quota.Archive = QuotaCounters{}

// QuotaCounters returns the archive of counters.
func (s *Store) QuotaCounters() QuotaCounters { return QuotaCounters{s} }

// Keep writes counters in one statement, except those of which the database has a version that is as new. They are
// no part of what nodes keep in memory, so it makes no revision and wakes nobody.
func (a QuotaCounters) Keep(ctx context.Context, counters []quota.ArchivedCounter) error {
	var rows db.KeepQuotaCountersParams
	for _, c := range counters {
		rows.Subjects = append(rows.Subjects, c.Subject)
		rows.QuotaIds = append(rows.QuotaIds, string(c.Rule))
		rows.Shapes = append(rows.Shapes, c.Shape)
		rows.Versions = append(rows.Versions, c.Version)
		rows.Contents = append(rows.Contents, c.Content)
		rows.ExpireTimes = append(rows.ExpireTimes, c.Expire)
	}
	return translate(a.store.queries.KeepQuotaCounters(ctx, a.store.pool, rows))
}

// Kept returns a subject's counters.
func (a QuotaCounters) Kept(ctx context.Context, subject string) ([]quota.ArchivedCounter, error) {
	rows, err := a.store.queries.KeptQuotaCounters(ctx, a.store.pool, subject)
	if err != nil {
		return nil, translate(err)
	}
	counters := make([]quota.ArchivedCounter, len(rows))
	for i, row := range rows {
		counters[i] = quota.ArchivedCounter{
			CounterName: quota.CounterName{Subject: row.Subject, Rule: id.Quota(row.QuotaID), Shape: row.Shape},
			Version:     row.Version, Content: row.Content, Expire: row.ExpireTime,
		}
	}
	return counters, nil
}

// Prune deletes counters that had expired by then.
func (a QuotaCounters) Prune(ctx context.Context, before time.Time) error {
	return translate(a.store.queries.PruneQuotaCounters(ctx, a.store.pool, before))
}
