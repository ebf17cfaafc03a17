package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperDataDir, when set, turns the test binary into a program that only holds
// an embedded server, for tests to kill.
const helperDataDir = "TOOLGRANT_TEST_EMBEDDED_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDataDir); dir != "" {
		os.Exit(holdServer(dir))
	}
	os.Exit(runTests(m))
}

// runTests gives the tests a temporary directory of their own and checks that
// no socket directories remain in it.
func runTests(m *testing.M) int {
	temp, err := os.MkdirTemp("", "toolgrant-")
	if err == nil {
		err = errors.Join(os.Chmod(temp, 0o711), os.Setenv("TMPDIR", temp))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if sockets, _ := filepath.Glob(filepath.Join(temp, tempSocketPrefix+"*")); len(sockets) > 0 {
		fmt.Fprintln(os.Stderr, "socket directories left behind:", sockets)
		code = 1
	}
	if err := os.RemoveAll(temp); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// holdServer starts a server, writes a row, says so on standard output, and
// waits to be killed.
func holdServer(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := StartPostgres(ctx, Options{DataDir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	conn, err := pgx.Connect(ctx, p.URL())
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE TABLE kept AS SELECT 42 AS answer")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	<-ctx.Done()
	return 1
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newDataDir is a directory as mktemp -d makes it: of mode 0700. t.TempDir will
// not do, because its parent cannot be entered by PostgreSQL's account.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newParent is a directory in which PostgreSQL's account can reach others.
func newParent(t *testing.T) string {
	t.Helper()
	dir := newDataDir(t)
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fast makes a server that trades durability for speed, in the given directory.
func fast(dir string) Options {
	return Options{
		DataDir:    dir,
		Logger:     slog.New(slog.DiscardHandler),
		Parameters: map[string]string{"fsync": "off"},
	}
}

func start(t *testing.T, opts Options) *Postgres {
	t.Helper()
	p, err := StartPostgres(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

func stop(t *testing.T, p *Postgres) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func execute(t *testing.T, p *Postgres, sql string) {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](t *testing.T, p *Postgres, sql string) T {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var value T
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// eventually waits for something that happens in another process.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if happened() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: did not happen", what)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill -9 %d: %v", pid, err)
	}
}
