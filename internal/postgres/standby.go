package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

const (
	// standbyTimeout bounds a read of the standby. The primary is asked after it.
	standbyTimeout = 250 * time.Millisecond
	// behindFor is for how long a standby is not asked that has not replayed far enough, failedFor one that did not answer:
	// meanwhile nobody pays for asking twice.
	behindFor = 20 * time.Millisecond
	failedFor = time.Second
)

// standby is a streaming replica of the database, where users and chats may be read as long as it has replayed what the
// reader knows of. The primary is asked for what it does not have, and while it is away. (A replica.Replica is something
// else: a server's memory.)
//
// Snapshots of a standby do not list the transactions that are in progress. So of those between xmin and xmax none counts
// as included: while long transactions write, more is read from the primary.
type standby struct {
	pool  *pgxpool.Pool
	began time.Time
	// asleep is until when it is not asked, in nanoseconds after began.
	asleep                 atomic.Int64
	served, behind, failed atomic.Uint64
}

// StandbyStats counts reads of a standby.
type StandbyStats struct {
	Served uint64 // answered by it
	Behind uint64 // not replayed far enough
	Failed uint64 // no answer in time, or not of a standby of this database
}

// WithStandby has users and chats read from a standby, where that has replayed far enough. It need not be there. An empty
// url is none.
func WithStandby(url string) Option {
	return func(o *options) { o.standby = url }
}

// StandbyStats tells how the standby does. There must be one.
func (s *Store) StandbyStats() StandbyStats {
	return StandbyStats{s.standby.served.Load(), s.standby.behind.Load(), s.standby.failed.Load()}
}

func newStandby(ctx context.Context, config *pgxpool.Config) (*standby, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config) // which does not connect yet
	if err != nil {
		return nil, err
	}
	return &standby{pool: pool, began: time.Now()}, nil
}

// checkStandby refuses a connection to what is no copy of this database.
func (s *Store) checkStandby(ctx context.Context, conn *pgx.Conn, of db.DatabaseIdentityRow) error {
	found, err := s.queries.DatabaseIdentity(ctx, conn)
	if err == nil && found != of {
		err = errors.New("the standby is not one of this database")
	}
	return err
}

// facts reads what one statement of the standby tells; false: ask the primary.
func (b *standby) facts(ctx context.Context, s *Store, chat id.Chat, user id.User, atLeast revision.Revision) (facts, bool) {
	if b == nil || time.Since(b.began) < time.Duration(b.asleep.Load()) {
		return facts{}, false
	}
	limited, cancel := context.WithTimeout(ctx, standbyTimeout)
	defer cancel()
	row, err := s.facts(limited, b.pool, chat, user)
	switch {
	case err != nil && ctx.Err() != nil:
		return facts{}, false // the caller went away, or was too late: that says nothing
	case err != nil || !row.standby: // one that was promoted is another database from now on
		b.failed.Add(1)
		b.sleep(failedFor)
		return facts{}, false
	}
	seen := revision.Revision{Database: row.revision.Database, Xmin: row.revision.Xmin, Xmax: row.revision.Xmin}
	if !seen.Includes(atLeast) {
		b.behind.Add(1)
		b.sleep(behindFor)
		return facts{}, false
	}
	b.served.Add(1)
	return row, true
}

func (b *standby) sleep(d time.Duration) { b.asleep.Store(int64(time.Since(b.began) + d)) }

func (b *standby) close() {
	if b != nil {
		b.pool.Close()
	}
}
