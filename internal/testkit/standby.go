package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/postgres"
)

// Pair is a PostgreSQL of a test's own and a streaming standby of it, with a migrated database.
type Pair struct {
	t       testing.TB
	primary *embedded.Postgres
	standby *embedded.Postgres
}

// PostgresPair starts both. With synchronous, a write is acknowledged when the standby has replayed it, too.
func PostgresPair(t testing.TB, synchronous bool) *Pair {
	t.Helper()
	p := &Pair{t: t}
	parameters := map[string]string{"max_connections": "100", "shared_buffers": "32MB"}
	p.primary = p.start(p.dir(), parameters)
	if err := postgres.Migrate(Context(t), p.PrimaryURL()); err != nil {
		t.Fatal(err)
	}
	dir := p.dir()
	var folder string
	p.query(p.PrimaryURL(), "SELECT setting FROM pg_config WHERE name = 'BINDIR'", &folder)
	copied := exec.CommandContext(Context(t), filepath.Join(folder, "pg_basebackup"), "--dbname="+p.PrimaryURL(), "--pgdata="+filepath.Join(dir, "postgres"),
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	if output, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("testkit: %v: %s", err, output)
	}
	p.standby = p.start(dir, parameters)
	if synchronous {
		p.exec(p.PrimaryURL(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
		p.exec(p.PrimaryURL(), "ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
		p.exec(p.PrimaryURL(), "SELECT pg_reload_conf()")
	}
	return p
}

func (p *Pair) dir() string { p.t.Helper(); return postgresDir(p.t) }

// postgresDir is not a t.TempDir: its parent is closed to the user that PostgreSQL runs as when tests run as root.
func postgresDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *Pair) start(dir string, parameters map[string]string) *embedded.Postgres {
	p.t.Helper()
	server, err := embedded.StartPostgres(Context(p.t), embedded.Options{DataDir: dir, Parameters: parameters})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { stopAtOnce(server) })
	return server
}

// stopAtOnce does not wait for connections, nor for a standby.
func stopAtOnce(server *embedded.Postgres) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = server.Stop(now) // says that it had no time
}

// PrimaryURL is the address of the database where it is written.
func (p *Pair) PrimaryURL() string { return p.primary.URL() }

// StandbyURL is that of its copy.
func (p *Pair) StandbyURL() string { return p.standby.URL() }

// URL is the address of the one of both that can be written.
func (p *Pair) URL() string {
	hosts, ports := make([]string, 2), make([]string, 2)
	var both *url.URL
	for i, address := range []string{p.PrimaryURL(), p.StandbyURL()} {
		u, err := url.Parse(address)
		if err != nil {
			p.t.Fatal(err)
		}
		both, hosts[i], ports[i] = u, u.Query().Get("host"), u.Query().Get("port")
	}
	q := both.Query()
	q.Set("host", strings.Join(hosts, ","))
	q.Set("port", strings.Join(ports, ","))
	q.Set("target_session_attrs", "read-write")
	both.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return both.String()
}

// KillPrimary ends the primary with SIGKILL; it does not come back.
func (p *Pair) KillPrimary() {
	p.t.Helper()
	if err := syscall.Kill(p.primary.PID(), syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	stopAtOnce(p.primary)
}

// Promote makes the standby a primary.
func (p *Pair) Promote() {
	p.t.Helper()
	var done bool
	p.query(p.StandbyURL(), "SELECT pg_promote()", &done)
	if !done {
		p.t.Fatal("the standby was not promoted")
	}
}

// Disconnect has the standby receive nothing more.
func (p *Pair) Disconnect() {
	p.t.Helper()
	p.exec(p.StandbyURL(), "ALTER SYSTEM SET primary_conninfo = ''")
	p.exec(p.StandbyURL(), "SELECT pg_reload_conf()")
	for receives := true; receives; {
		p.query(p.StandbyURL(), "SELECT EXISTS (SELECT 1 FROM pg_stat_wal_receiver)", &receives)
	}
}

// PauseReplay has the standby receive and not show; ResumeReplay ends that.
func (p *Pair) PauseReplay() {
	p.t.Helper()
	p.exec(p.StandbyURL(), "SELECT pg_wal_replay_pause()")
	for state := ""; state != "paused"; {
		p.query(p.StandbyURL(), "SELECT pg_get_wal_replay_pause_state()", &state)
	}
}

// ResumeReplay has it show what it received.
func (p *Pair) ResumeReplay() {
	p.t.Helper()
	p.exec(p.StandbyURL(), "SELECT pg_wal_replay_resume()")
}

// CatchUp waits until the standby shows what the primary has.
func (p *Pair) CatchUp() {
	p.t.Helper()
	var end string
	p.query(p.PrimaryURL(), "SELECT pg_current_wal_flush_lsn()::text", &end)
	for replayed := false; !replayed; {
		p.query(p.StandbyURL(), fmt.Sprintf("SELECT pg_last_wal_replay_lsn() >= '%s'::pg_lsn", end), &replayed)
	}
}

func (p *Pair) exec(address, sql string) {
	p.t.Helper()
	if err := execute(Context(p.t), address, sql); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Pair) query(address, sql string, into any) {
	p.t.Helper()
	ctx := Context(p.t)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, sql).Scan(into); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}
