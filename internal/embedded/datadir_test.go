package embedded

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLongDataDir(t *testing.T) {
	t.Parallel()
	long := filepath.Join(newParent(t), strings.Repeat("long/", 30), "with space, comma and 'quote'")
	p := start(t, fast(long))
	query[int](t, p, "SELECT 1")
	if strings.HasPrefix(p.socket.path, long) {
		t.Errorf("the socket is in %s: the test's path is not long enough", p.socket.path)
	}

	// A killed server cannot remove it; the next one does.
	killed := p.socket
	stop(t, p)
	if exists(killed.path) || exists(killed.record) {
		t.Errorf("%s or %s was not removed by Stop", killed.path, killed.record)
	}
	if err := os.Mkdir(killed.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(killed.record, []byte(killed.path), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, fast(long))
	if exists(killed.path) {
		t.Errorf("%s was not removed by the next start", killed.path)
	}
}

func TestStrangeDataDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newParent(t), `a "b" + 'c' [d] $e%20&`)
	p := start(t, fast(dir))
	if !strings.HasPrefix(p.socket.path, dir) {
		t.Errorf("the socket is in %s: the test's path is too long", p.socket.path)
	}
	query[int](t, p, "SELECT 1")
}

func TestRelativeAndLinkedDataDir(t *testing.T) {
	base := newParent(t)
	if err := os.Mkdir(filepath.Join(base, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(base)
	p := start(t, fast("link"))
	if want := filepath.Join(base, "real", "postgres"); p.cluster != want {
		t.Errorf("cluster = %s, want %s", p.cluster, want)
	}
}

func TestUnreachableDataDir(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs PostgreSQL as another user")
	}
	base := newDataDir(t) // 0700: PostgreSQL's account cannot enter
	_, err := StartPostgres(testContext(t), fast(filepath.Join(base, "data")))
	if err == nil {
		t.Fatal("started in an unreachable directory")
	}
	for _, want := range []string{"may not enter " + base + " ", "TOOLGRANT_DATA_DIR", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
}

func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	unfinished := filepath.Join(dir, unfinishedPrefix+"123")
	for _, path := range []string{filepath.Join(unfinished, "base"), filepath.Join(dir, "postgres")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(unfinished, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, fast(dir))
	if exists(unfinished) {
		t.Errorf("%s was not removed", unfinished)
	}
}

func TestForeignFilesAreNotTaken(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	precious := filepath.Join(dir, "postgres", "precious")
	if err := os.Mkdir(filepath.Dir(precious), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := StartPostgres(testContext(t), fast(dir))
	if err == nil || !strings.Contains(err.Error(), "PG_VERSION") {
		t.Errorf("error = %v", err)
	}
	if !exists(precious) {
		t.Error("somebody's file is gone")
	}
}

func TestOtherMajorVersionIsRefused(t *testing.T) {
	t.Parallel()
	repository := httptest.NewServer(http.NotFoundHandler())
	defer repository.Close()
	for version, want := range map[string][]string{
		"9.6":  {"9.6"},
		"7":    {"belongs to PostgreSQL 7", "no PostgreSQL 7 to download"},
		"18":   {"belongs to PostgreSQL 18", "install PostgreSQL 18"},
		"junk": {"junk"},
	} {
		dir := newDataDir(t)
		opts := fast(dir)
		opts.BinaryRepositoryURL = repository.URL
		opts.folders = func() []string { return []string{testBinaries(t).folder} }
		if version == "18" && testBinaries(t).major == 18 {
			continue
		}
		cluster := filepath.Join(dir, "postgres")
		if err := os.Mkdir(cluster, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte(version+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := StartPostgres(testContext(t), opts)
		if err == nil {
			stop(t, p)
			t.Fatalf("%s: started", version)
		}
		for _, text := range append(want, cluster) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error does not mention %q: %v", version, text, err)
			}
		}
	}
}

func TestClusterOfRootIsHandedOver(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can restore a copy as root")
	}
	dir := newDataDir(t)
	p := start(t, fast(dir))
	execute(t, p, "CREATE TABLE kept AS SELECT 42 AS answer")
	stop(t, p)
	if err := (account{switched: true}).ownAll(p.cluster); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, start(t, fast(dir)), "SELECT answer FROM kept"); got != 42 {
		t.Errorf("answer = %d", got)
	}
}

// TestClusterKeepsItsOwner: a cluster made by one user, started by root.
func TestClusterKeepsItsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := newDataDir(t)
	p := start(t, fast(dir))
	stop(t, p)
	other := account{name: "uid 12345", uid: 12345, gid: 12345, switched: true}
	if err := other.ownAll(p.cluster); err != nil {
		t.Fatal(err)
	}
	next := start(t, fast(dir))
	query[int](t, next, "SELECT 1")
	if next.account != other {
		t.Errorf("runs as %+v, want %+v", next.account, other)
	}
}
