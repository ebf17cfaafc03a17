package embedded

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDataSurvivesStopAndStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newParent(t), "missing", "data")
	first := start(t, Options{DataDir: dir})
	execute(t, first, "CREATE TABLE kept AS SELECT 'héllo' AS word")
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "data_checksums": "on",
		"listen_addresses": "", "max_connections": "200", "server_encoding": "UTF8", "lc_collate": "C",
	} {
		if got := query[string](t, first, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	stop(t, first)
	stop(t, first) // once more does nothing
	if isPostmasterOf(first.PID(), first.cluster) {
		t.Error("still running after Stop")
	}

	second := start(t, Options{DataDir: dir, Parameters: map[string]string{"max_connections": "20"}})
	if got := query[string](t, second, "SELECT word FROM kept"); got != "héllo" {
		t.Errorf("word = %q", got)
	}
	if got := query[string](t, second, "SHOW max_connections"); got != "20" {
		t.Errorf("max_connections = %s: Parameters must override", got)
	}
}

func TestNotice(t *testing.T) {
	t.Parallel()
	p := start(t, fast(newDataDir(t)))
	notice := p.Notice()
	for _, want := range []string{
		p.binaries.version, p.binaries.folder, p.account.name, p.cluster, strconv.Itoa(p.PID()), p.logPath(),
	} {
		if !strings.Contains(notice, want) {
			t.Errorf("the notice does not mention %q:\n%s", want, notice)
		}
	}

	// The command it shows must work as it is.
	if !strings.Contains(notice, p.psqlCommand()) {
		t.Fatalf("the notice does not say how to open the database:\n%s", notice)
	}
	output, err := exec.Command("sh", "-c", p.psqlCommand()+" -Atc 'SELECT current_database()'").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "toolgrant" {
		t.Errorf("%s: %v: %s", p.psqlCommand(), err, output)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	p := start(t, fast(newDataDir(t)))
	info, err := os.Stat(p.socket.path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("the socket's directory has mode %o", mode)
	}
	if owner, ok := ownerOf(p.socket.path); !ok || owner.uid != p.account.uid {
		t.Errorf("the socket's directory belongs to %s, not to %s", owner.name, p.account.name)
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	p := start(t, fast(dir))
	_, err := StartPostgres(testContext(t), fast(dir))
	if err == nil {
		t.Fatal("a second server started on the same directory")
	}
	for _, want := range []string{dir, strconv.Itoa(os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	query[int](t, p, "SELECT 1") // the first one is unharmed

	stop(t, p)
	start(t, fast(dir)) // and the directory is free afterwards
}

func TestBadSettingIsReported(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	opts := fast(dir)
	opts.Parameters["no_such_setting"] = "1"
	_, err := StartPostgres(testContext(t), opts)
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("the error does not quote PostgreSQL's own: %v", err)
	}
	start(t, fast(dir)) // the failure left nothing locked or half-made
}

func TestStartIsBoundedByContext(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // initdb takes longer
	defer cancel()
	p, err := StartPostgres(ctx, fast(dir))
	if err == nil {
		stop(t, p)
		t.Fatal("started in 200 ms")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v is not the context's", err)
	}
	start(t, fast(dir))
}

func TestStopIsBoundedByContext(t *testing.T) {
	t.Parallel()
	p := start(t, fast(newDataDir(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Either it was quick enough, or it says that it was not; it is over
	// in both cases.
	if err := p.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if isPostmasterOf(p.PID(), p.cluster) {
		t.Error("still running after Stop")
	}
}

func TestLongLogIsMovedAsideAtStart(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	path := filepath.Join(dir, "postgres.log")
	if err := os.WriteFile(path, make([]byte, maxLog+1), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, fast(dir))
	if info, err := os.Stat(path); err != nil || info.Size() > maxLog {
		t.Errorf("the log was not cut: %v, %v", info, err)
	}
	if !exists(path + ".old") {
		t.Error("the older log was not kept")
	}
}
