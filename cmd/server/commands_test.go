package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// command runs a command of the server, with settings as flags.
func command(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	err = run(testkit.Context(t), args, &b)
	return b.String(), err
}

func TestConfigCheckTellsWhatIsSetAndHidesSecrets(t *testing.T) {
	out, err := command(t, "config", "check", "--database-url=postgres://ann:hunter2@db/x", "--redis-url=redis://:hunter2@r/0", "--max-calls=7")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"max_calls", "7", "--max-calls", "(hidden)", "grpc_addr", "127.0.0.1:7700", "default"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told in\n%s", want, out)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Errorf("a password is told:\n%s", out)
	}
	if _, err := command(t, "config", "check", "--max-calls=-1", "--call-timeout=soon"); err == nil ||
		!strings.Contains(err.Error(), "--max-calls") || !strings.Contains(err.Error(), "--call-timeout") {
		t.Errorf("two faults: %v", err)
	}
}

// doctor tells what is well; then one thing after the other is broken.
func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	database, redis := testkit.Database(t), testkit.RedisServer(t, "--appendonly", "yes", "--maxmemory-policy", "noeviction")
	well := []string{"doctor", "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0"}
	with := func(database, redis string) []string {
		return append(append([]string(nil), well...), "--database-url="+database, "--redis-url="+redis)
	}
	out, err := command(t, with(database, redis.URL)...)
	if err != nil || strings.Contains(out, "BAD") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"ok    PostgreSQL: version", "ok    PostgreSQL: clock", "ok    PostgreSQL: schema", "ok    Redis: maxmemory-policy", "ok    Redis: appendonly", "ok    Redis: scripts", "ok    Redis: clock"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told in\n%s", want, out)
		}
	}
	password := "hunter2"
	evicting := testkit.RedisServer(t, "--maxmemory-policy", "allkeys-lru")
	locked := testkit.RedisServer(t, "--requirepass", password)
	nobody, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	nobody.Path = "/no_such_database"
	for _, broken := range []struct {
		name, database, redis, want string
	}{
		{"no database", nobody.String(), redis.URL, "BAD   PostgreSQL: "},
		{"nobody there", "postgres://ann:" + password + "@127.0.0.1:1/x", redis.URL, "BAD   PostgreSQL: "},
		{"no Redis", database, "redis://:" + password + "@127.0.0.1:1/0", "BAD   Redis: "},
		{"no password", database, locked.URL, "BAD   Redis: NOAUTH"},
		{"evicting", database, evicting.URL, "BAD   Redis: maxmemory-policy: allkeys-lru"},
	} {
		out, err := command(t, with(broken.database, broken.redis)...)
		if err == nil || !strings.Contains(out, broken.want) {
			t.Errorf("%s: %v\n%s", broken.name, err, out)
		}
		if strings.Contains(out+fmt.Sprint(err), password) {
			t.Errorf("%s: a password is told:\n%s", broken.name, out)
		}
	}
	if _, err := os.Stat("/proc/self"); err == nil { // as root, any folder can be written
		out, err := command(t, append(append([]string(nil), well...), "--data-dir=/proc/nowhere")...)
		if err == nil || !strings.Contains(out, "BAD   data_dir") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func TestDoctorComparesSchemas(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	empty := testkit.EmptyDatabase(t)
	look := func() string {
		out, err := command(t, "doctor", "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--database-url="+empty, "--redis-url=")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	if out := look(); !strings.Contains(out, "note  PostgreSQL: schema: at migration 0") {
		t.Error(out)
	}
	if _, err := command(t, "migrate", "--database-url="+empty); err != nil {
		t.Fatal(err)
	}
	if out := look(); !strings.Contains(out, "ok    PostgreSQL: schema") {
		t.Error(out)
	}
	conn, err := pgx.Connect(ctx, empty)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	if out := look(); !strings.Contains(out, "note  PostgreSQL: schema: at migration 99999") {
		t.Error(out)
	}
	// A server of an older version starts on what a newer one has migrated.
	if _, err := command(t, "migrate", "--database-url="+empty); err != nil {
		t.Error(err)
	}
}
