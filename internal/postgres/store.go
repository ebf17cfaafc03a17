package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Store reads and writes Toolgrant's data in one database. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	queries  *db.Queries
	database uint64 // identifies the database in revisions
	compiled atomic.Pointer[compiledCatalog]
	timeline atomic.Pointer[string] // of the poll before
	standby  *standby               // nil: there is none

	committed func(context.Context) // see OnCommit
}

// leastConnections is how many connections a pool may have, unless the URL says otherwise.
const leastConnections = 16

func poolSize(url string, config *pgxpool.Config) int32 {
	if strings.Contains(url, "pool_max_conns") {
		return config.MaxConns
	}
	return max(config.MaxConns, leastConnections) // pgx's default, 4, is few for a server: callers would queue
}

// Option changes how a store connects.
type Option func(*options)

type options struct {
	tracer  pgx.QueryTracer
	standby string
}

// WithTracer has a tracer told of all statements; nil: nobody is.
func WithTracer(tracer pgx.QueryTracer) Option {
	return func(o *options) { o.tracer = tracer }
}

// Open connects to a migrated database.
func Open(ctx context.Context, url string, with ...Option) (*Store, error) {
	var o options
	for _, option := range with {
		option(&o)
	}
	config, err := o.poolConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, queries: db.New(), committed: func(context.Context) {}}
	identity, err := s.queries.DatabaseIdentity(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", identity.SystemIdentifier, identity.DatabaseOid)
	s.database = h.Sum64()
	if o.standby != "" {
		if config, err = o.poolConfig(o.standby); err == nil {
			config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return s.checkStandby(ctx, conn, identity) }
			s.standby, err = newStandby(ctx, config)
		}
		if err != nil {
			pool.Close()
			return nil, fmt.Errorf("the standby: %w", err)
		}
	}
	return s, nil
}

// poolConfig is how connections to a database are made.
func (o *options) poolConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, hideURL(err)
	}
	limitConnecting(config.ConnConfig)
	config.MaxConns = poolSize(url, config)
	// All queries look up by key, so that planning them anew for each key takes longer than it saves.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.ConnConfig.Tracer = o.tracer
	return config, nil
}

// Database identifies the database, as revisions do.
func (s *Store) Database() uint64 { return s.database }

// OnCommit sets what is called after each write, before its caller is answered. It must be set before the
// first write.
func (s *Store) OnCommit(do func(context.Context)) { s.committed = do }

// Close closes all connections. It blocks until they are free.
func (s *Store) Close() {
	s.standby.close()
	s.pool.Close()
}

// PoolStat tells how the connections do.
func (s *Store) PoolStat() *pgxpool.Stat { return s.pool.Stat() }

// readRevision is the revision that a statement of this snapshot is complete through.
func (s *Store) readRevision(snapshot string) (revision.Revision, error) {
	return revision.FromSnapshot(s.database, snapshot)
}

// writeRevision names the writes of a transaction. It must be the transaction's last statement but its
// commit, and the transaction must have written.
func (s *Store) writeRevision(ctx context.Context, tx pgx.Tx) (revision.Revision, error) {
	row, err := s.queries.Snapshot(ctx, tx)
	if err != nil {
		return revision.Revision{}, err
	}
	r, err := s.readRevision(row.Snapshot)
	if err != nil || row.Xid == "" {
		return r, err
	}
	xid, err := strconv.ParseUint(row.Xid, 10, 64)
	if err != nil {
		return revision.Revision{}, err
	}
	return r.With(xid), nil
}

// readSnapshot runs do in a read-only transaction that sees one snapshot of the database. It may run more
// than once.
func (s *Store) readSnapshot(ctx context.Context, do func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	for {
		err := pgx.BeginTxFunc(ctx, s.pool, options, do)
		if !errors.Is(err, errOutrun) {
			return translate(err)
		}
	}
}

// write runs do in a transaction and commits, or changes nothing. Deadlocks and serialization failures are
// tried again, so do may run more than once.
func (s *Store) write(ctx context.Context, do func(pgx.Tx) error) error {
	err := s.writeAside(ctx, do)
	if err == nil {
		s.committed(ctx)
	}
	return err
}

// writeAside is write of what answers do not depend on: nobody is told.
func (s *Store) writeAside(ctx context.Context, do func(pgx.Tx) error) error {
	const tries = 5
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, s.pool, do)
		var sqlError *pgconn.PgError
		if err == nil {
			return nil
		}
		again := errors.As(err, &sqlError) && (sqlError.Code == "40001" || sqlError.Code == "40P01")
		if !again || try == tries {
			return translate(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rand.IntN(20*try)) * time.Millisecond):
		}
	}
}

// translate turns errors of PostgreSQL into faults, by SQLSTATE and constraint, never by text. Others pass.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	var sqlError *pgconn.PgError
	if !errors.As(err, &sqlError) {
		// Not the server's answer: there was none, in time or at all. Whether it was the caller's time that
		// ran out, its context tells.
		return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable,
			Message: "the database cannot be reached", Cause: err}
	}
	switch class := sqlError.Code[:2]; {
	case class == "08" || class == "57" || class == "53":
		return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable,
			Message: "the database cannot be used now", Cause: err}
	case class == "40":
		return &fault.Fault{Kind: fault.Aborted, Reason: fault.ReasonConflict,
			Message: "lost against concurrent writers: try again", Cause: err}
	case sqlError.Code == "23503":
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonInUse,
			Message: fmt.Sprintf("%s refers to it, or it refers to what is gone (%s)", sqlError.TableName, sqlError.ConstraintName), Cause: err}
	case sqlError.Code == "23505":
		return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonAlreadyExists,
			Message: "it exists already (" + sqlError.ConstraintName + ")", Cause: err}
	}
	return err
}
