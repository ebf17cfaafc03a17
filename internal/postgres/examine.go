package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolgrant/toolgrant/internal/checkup"
	"github.com/toolgrant/toolgrant/sql/schema"
)

// oldestVersion is the oldest PostgreSQL that tests run on.
const oldestVersion = 15

// slowRoundTrip is what makes each answer that is not in memory slow.
const slowRoundTrip = 10 * time.Millisecond

// Examine tells what is wrong with a database. It changes nothing, and needs no schema.
func Examine(ctx context.Context, url string) checkup.Report {
	var r checkup.Report
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		r.Bad("PostgreSQL", hideURL(err).Error(), "database_url must be a URL such as postgres://user:password@host:5432/toolgrant")
		return r
	}
	limitConnecting(config.ConnConfig)
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		r.Bad("PostgreSQL", err.Error(), connectAdvice(err))
		return r
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	config.MaxConns = poolSize(url, config)
	e := examination{conn: conn, report: &r}
	for _, look := range []func(context.Context, *pgxpool.Config) error{e.server, e.clock, e.durability, e.schema, e.connections} {
		if err := look(ctx, config); err != nil {
			r.Bad("PostgreSQL", err.Error(), "the checks after this one were left out")
			return r
		}
	}
	return r
}

func connectAdvice(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return "see whether it runs, listens on that address, and can be reached from here"
	}
	switch refused.Code {
	case "28P01", "28000":
		return "see whether user and password of database_url are right, and whether pg_hba.conf lets them in from here"
	case "3D000":
		return "create it: createdb --encoding UTF8 --template template0, as a user who may"
	case "53300":
		return "raise max_connections, or lower pool_max_conns of database_url at each server"
	case "57P03":
		return "wait until it has started, or recovered"
	}
	return ""
}

type examination struct {
	conn   *pgx.Conn
	report *checkup.Report
}

func (e *examination) server(ctx context.Context, _ *pgxpool.Config) error {
	var number int
	var version, encoding string
	var standby bool
	if err := e.conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&number, &version, &encoding, &standby); err != nil {
		return err
	}
	if number/10_000 < oldestVersion {
		e.report.Bad("PostgreSQL: version", version, fmt.Sprintf("use %d or newer", oldestVersion))
	} else {
		e.report.OK("PostgreSQL: version", "%s", version)
	}
	if encoding != "UTF8" {
		e.report.Bad("PostgreSQL: encoding", encoding, "make the database anew with --encoding UTF8: titles and prompts are any text")
	}
	if standby {
		e.report.Bad("PostgreSQL: role", "it is a standby, and takes no writes", "name the primary, or several hosts with target_session_attrs=read-write")
	}
	return nil
}

func (e *examination) clock(ctx context.Context, _ *pgxpool.Config) error {
	trips := make([]time.Duration, 0, 5)
	var before, theirs, after time.Time
	for range cap(trips) {
		begin := time.Now()
		var now time.Time
		if err := e.conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
			return err
		}
		end := time.Now()
		if len(trips) == 0 || end.Sub(begin) < slices.Min(trips) { // the shortest is the surest
			before, theirs, after = begin, now, end
		}
		trips = append(trips, end.Sub(begin))
	}
	e.report.Clock("PostgreSQL: clock", before, theirs, after)
	slices.Sort(trips)
	if trip := trips[len(trips)/2]; trip > slowRoundTrip {
		e.report.Note("PostgreSQL: round trip", trip.String(), "each answer that is not in memory takes one: run servers near the database")
	} else {
		e.report.OK("PostgreSQL: round trip", "%s", trip)
	}
	return nil
}

func (e *examination) durability(ctx context.Context, _ *pgxpool.Config) error {
	for _, s := range []struct{ name, advice string }{
		{"fsync", "turn it on: a crash of the machine destroys the database otherwise"},
		{"full_page_writes", "turn it on: a crash of the machine may destroy pages otherwise"},
		{"synchronous_commit", "turn it on: a crash loses writes that were acknowledged otherwise"},
	} {
		var value string
		if err := e.conn.QueryRow(ctx, "SELECT current_setting($1)", s.name).Scan(&value); err != nil {
			return err
		}
		if value == "off" {
			e.report.Note("PostgreSQL: "+s.name, "off", s.advice)
		}
	}
	return nil
}

func (e *examination) schema(ctx context.Context, _ *pgxpool.Config) error {
	known, err := schema.Versions()
	if err != nil {
		return err
	}
	newest := slices.Max(known)
	var there bool
	var applied int64
	if err := e.conn.QueryRow(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&there); err != nil {
		return err
	}
	if there {
		if err := e.conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&applied); err != nil {
			return err
		}
	}
	switch detail := fmt.Sprintf("at migration %d, this server's newest is %d", applied, newest); {
	case applied == newest:
		e.report.OK("PostgreSQL: schema", "%s", detail)
		return nil
	case applied > newest:
		e.report.Note("PostgreSQL: schema", detail, "a newer server has migrated it: as long as servers are being replaced, this one works with it")
		return nil
	default:
		e.report.Note("PostgreSQL: schema", detail, "it is migrated when a server starts, or by `server migrate`")
	}
	var may bool
	if err := e.conn.QueryRow(ctx, `SELECT has_schema_privilege(current_schema(), 'CREATE')`).Scan(&may); err != nil {
		return err
	}
	if !may {
		e.report.Bad("PostgreSQL: rights", "this user may not create tables", "migrate as the owner of the database: server migrate --database-url=...")
	}
	return nil
}

func (e *examination) connections(ctx context.Context, config *pgxpool.Config) error {
	var limit, used int
	var own string
	if err := e.conn.QueryRow(ctx, `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
		(SELECT rolconnlimit::text FROM pg_roles WHERE rolname = current_user)`).Scan(&limit, &used, &own); err != nil {
		return err
	}
	if n, err := strconv.Atoi(own); err == nil && n >= 0 {
		limit = min(limit, n)
	}
	pool := int(config.MaxConns)
	if detail := fmt.Sprintf("%d of %d used; a server takes up to %d", used, limit, pool); used+pool > limit {
		e.report.Note("PostgreSQL: connections", detail, "raise max_connections, or set pool_max_conns in database_url: of all servers together they must fit")
	} else {
		e.report.OK("PostgreSQL: connections", "%s", detail)
	}
	return nil
}
