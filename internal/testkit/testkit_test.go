package testkit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
)

// failOnPurpose makes TestFailsOnPurpose fail, in a process of its own.
const failOnPurpose = "TOOLGRANT_TEST_TESTKIT_FAIL"

func TestMain(m *testing.M) { Main(m) }

func query[T any](t *testing.T, address, sql string, args ...any) T {
	t.Helper()
	ctx := Context(t)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var value T
	if err := conn.QueryRow(ctx, sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

const countTables = "SELECT count(*)::int FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')"

func databaseExists(t *testing.T, name string) bool {
	t.Helper()
	return query[bool](t, start(t), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name)
}

func TestDatabaseIsMigratedAndItsOwn(t *testing.T) {
	first, second := Database(t), Database(t)
	if got := query[int](t, first, countTables); got == 0 {
		t.Error("no tables: not migrated")
	}
	if err := execute(Context(t), first, "CREATE TABLE only_here ()"); err != nil {
		t.Fatal(err)
	}
	if query[bool](t, second, "SELECT to_regclass('only_here') IS NOT NULL") {
		t.Error("two databases share a table")
	}
}

func TestEmptyDatabaseHasNoTables(t *testing.T) {
	if got := query[int](t, EmptyDatabase(t), countTables); got != 0 {
		t.Errorf("%d tables", got)
	}
}

func TestDatabasesInParallel(t *testing.T) {
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			query[int](t, Database(t), "SELECT 1")
		})
	}
}

func TestDatabaseOfPassedTestIsDropped(t *testing.T) {
	var name string
	t.Run("passes", func(t *testing.T) {
		address := Database(t)
		name = query[string](t, address, "SELECT current_database()")
		// A connection left open must not keep it.
		conn, err := pgx.Connect(context.Background(), address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn
	})
	if databaseExists(t, name) {
		t.Errorf("%s still exists", name)
	}
}

func TestFailsOnPurpose(t *testing.T) {
	if os.Getenv(failOnPurpose) == "" {
		t.Skip("run by TestDatabaseOfFailedTestIsKept")
	}
	t.Errorf("database=%s", query[string](t, EmptyDatabase(t), "SELECT current_database()"))
}

// rerun runs TestFailsOnPurpose in another process, which uses this one's
// server or the one given.
func rerun(t *testing.T, server string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailsOnPurpose$")
	cmd.Env = append(os.Environ(), failOnPurpose+"=1", serverVariable+"="+server)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestDatabaseOfFailedTestIsKept(t *testing.T) {
	admin := start(t)
	output, err := rerun(t, admin)
	if err == nil {
		t.Fatalf("the failing test passed: %s", output)
	}
	_, name, _ := strings.Cut(output, "database=")
	name, _, _ = strings.Cut(name, "\n")
	address, err := withDatabase(admin, name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(output, "is kept: "+address) {
		t.Errorf("the output does not say where the database is:\n%s", output)
	}
	if !databaseExists(t, name) {
		t.Errorf("%s does not exist", name)
	}
	if err := execute(Context(t), admin, "DROP DATABASE IF EXISTS "+quote(name)); err != nil {
		t.Error(err)
	}
}

func TestUnreachableServerFailsTests(t *testing.T) {
	output, err := rerun(t, "postgres://nobody@/none?host="+t.TempDir())
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(output, "--- FAIL: TestFailsOnPurpose") {
		t.Errorf("error %v, output:\n%s", err, output)
	}
}

func TestTemplateIsMadeOnce(t *testing.T) {
	admin, name := start(t), "toolgrant_template_of_test"
	dropTemplate(t, admin, name)

	// What an interrupted process leaves: a database that is no template.
	if err := execute(Context(t), admin, "CREATE DATABASE "+quote(name)); err != nil {
		t.Fatal(err)
	}
	var migrations atomic.Int32
	migrate := func(ctx context.Context, address string) error {
		migrations.Add(1)
		return execute(ctx, address, "CREATE TABLE migrated ()")
	}
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if err := makeTemplate(Context(t), admin, name, migrate); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := migrations.Load(); got != 1 {
		t.Errorf("migrated %d times", got)
	}
	if query[bool](t, create(t, admin, name), "SELECT to_regclass('migrated') IS NULL") {
		t.Error("the clone is not migrated")
	}
}

func TestFailedMigrationMakesNoTemplate(t *testing.T) {
	admin, name := start(t), "toolgrant_template_of_failed_test"
	dropTemplate(t, admin, name)
	broken := errors.New("broken migration")
	migrate := func(context.Context, string) error { return broken }
	for range 2 {
		if err := makeTemplate(Context(t), admin, name, migrate); !errors.Is(err, broken) {
			t.Errorf("error = %v", err)
		}
	}
}

func dropTemplate(t *testing.T, admin, name string) {
	t.Cleanup(func() {
		ctx := context.Background()
		// DROP refuses templates; a database that is missing is none.
		_ = execute(ctx, admin, "ALTER DATABASE "+quote(name)+" WITH IS_TEMPLATE false")
		if err := execute(ctx, admin, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
}

func TestContextEndsWithTheTest(t *testing.T) {
	var ctx context.Context
	t.Run("inner", func(t *testing.T) {
		ctx = Context(t)
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < time.Minute {
			t.Errorf("deadline = %v, %v", deadline, ok)
		}
		if ctx.Err() != nil {
			t.Error(ctx.Err())
		}
	})
	if ctx.Err() == nil {
		t.Error("not cancelled")
	}
}

func TestAbandonedServersAreRemoved(t *testing.T) {
	parent := t.TempDir()
	hoursAgo := time.Now().Add(-2 * abandonedAfter)
	for name, when := range map[string]time.Time{"old": hoursAgo, "locked": hoursAgo, "new": time.Now()} {
		dir := filepath.Join(parent, dirPrefix+name)
		if err := os.MkdirAll(filepath.Join(dir, "postgres"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "locked" {
			lock := flock.New(filepath.Join(dir, "lock"))
			if err := lock.Lock(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lock.Unlock() }()
		}
		if err := os.Chtimes(dir, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(parent, dirPrefix+"locked"), filepath.Join(parent, dirPrefix+"new")}
	if !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

func TestWithDatabase(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:p@host:1/a?sslmode=disable": "postgres://u:p@host:1/b?sslmode=disable",
		"postgresql:///a?host=%2Fs%20x":           "postgresql:///b?host=%2Fs%20x",
		"host=h dbname=a":                         "host=h dbname=a dbname=b",
	} {
		if got, err := withDatabase(address, "b"); err != nil || got != want {
			t.Errorf("%s: got %s, %v", address, got, err)
		}
	}
	for _, address := range []string{"postgres://h/a?dbname=c", "postgres://h:x y/"} {
		if got, err := withDatabase(address, "b"); err == nil {
			t.Errorf("%s: got %s", address, got)
		}
	}
}
