package embedded

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testBinaries are the installed ones, which the tests use and serve.
func testBinaries(t *testing.T) binaries {
	t.Helper()
	a, err := pickAccount("/nonexistent")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range installedFolders() {
		folder, err := realBinFolder(folder)
		if err != nil {
			continue
		}
		if found, err := a.inspect(testContext(t), folder); err == nil && found.suits(0) {
			return found
		}
	}
	t.Fatal("no PostgreSQL is installed to test with")
	return binaries{}
}

// packBinaries makes a tar.xz of the installed binaries: bin and, where they are
// beside it, lib and share. (Debian's share is elsewhere, but its binaries know
// its absolute path.)
func packBinaries(t *testing.T) []byte {
	t.Helper()
	installed := testBinaries(t)
	root := filepath.Dir(installed.folder)
	archive := filepath.Join(t.TempDir(), "postgres.txz")
	args := []string{"--create", "--dereference", "--file=" + archive, "--use-compress-program=xz -0 -T0",
		"--exclude=bitcode", "--exclude=pgxs", "--exclude=llvmjit*", // large, and not needed to run
		"--directory=" + root, "bin/postgres", "bin/initdb"}
	for _, folder := range []string{"lib", "share"} {
		if root != "/usr" && exists(filepath.Join(root, folder)) { // not a whole system's
			args = append(args, folder)
		}
	}
	if output, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
		t.Fatalf("packing (needs tar and xz): %v: %s", err, output)
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// makeJar wraps an archive the way the repository does: in a zip file.
func makeJar(t *testing.T, archive []byte) []byte {
	t.Helper()
	var jar bytes.Buffer
	zipped := zip.NewWriter(&jar)
	entry, err := zipped.Create("postgres-test.txz")
	if err == nil {
		_, err = entry.Write(archive)
	}
	if err = errors.Join(err, zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

// serveJar is a Maven repository that holds the jar in every version, and
// counts how often it was asked for it.
func serveJar(t *testing.T, jar []byte, checksum string) (url string, downloads *atomic.Int32) {
	t.Helper()
	downloads = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/io/zonky/test/postgres/embedded-postgres-binaries-"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".jar"):
			downloads.Add(1)
			_, _ = w.Write(jar)
		case strings.HasSuffix(r.URL.Path, ".jar.sha256"):
			_, _ = w.Write([]byte(checksum))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, downloads
}

func checksum(jar []byte) string {
	sum := sha256.Sum256(jar)
	return hex.EncodeToString(sum[:])
}

// withoutInstalled hides what is installed and downloads from url instead.
func withoutInstalled(t *testing.T, dir, url string) Options {
	t.Helper()
	opts := fast(dir)
	opts.folders = func() []string { return nil }
	opts.BinaryRepositoryURL = url
	opts.downloadMajor = testBinaries(t).major
	return opts
}

func TestDownload(t *testing.T) {
	t.Parallel()
	archive := packBinaries(t)
	jar := makeJar(t, archive)
	t.Run("good", func(t *testing.T) { testGoodDownload(t, jar) })

	half := makeJar(t, archive[:len(archive)/2])
	for name, bad := range map[string]struct {
		jar      []byte
		checksum string
	}{
		"truncated":         {jar[:len(jar)/2], ""},
		"truncated archive": {half, checksum(half)},
		"tampered":          {jar, checksum([]byte("another jar"))},
	} {
		t.Run(name, func(t *testing.T) {
			repository, _ := serveJar(t, bad.jar, bad.checksum)
			testBadDownload(t, repository)
		})
	}
	t.Run("missing", func(t *testing.T) {
		repository := httptest.NewServer(http.NotFoundHandler())
		defer repository.Close()
		testBadDownload(t, repository.URL)
	})
}

func testGoodDownload(t *testing.T, jar []byte) {
	repository, downloads := serveJar(t, jar, checksum(jar))
	dir := newDataDir(t)
	opts := withoutInstalled(t, dir, repository)

	p := start(t, opts)
	execute(t, p, "CREATE TABLE kept AS SELECT 42 AS answer")
	if !strings.HasPrefix(p.binaries.folder, filepath.Join(dir, "postgres-binaries")) {
		t.Errorf("runs %s, not what was downloaded", p.binaries)
	}
	stop(t, p)

	// The second start needs no repository.
	p = start(t, opts)
	if got := query[int](t, p, "SELECT answer FROM kept"); got != 42 {
		t.Errorf("answer = %d", got)
	}
	if got := downloads.Load(); got != 1 {
		t.Errorf("downloaded %d times", got)
	}
	noLeftovers(t, dir)
}

func testBadDownload(t *testing.T, repository string) {
	dir := newDataDir(t)
	p, err := StartPostgres(testContext(t), withoutInstalled(t, dir, repository))
	if err == nil {
		stop(t, p)
		t.Fatal("started")
	}
	if !strings.Contains(err.Error(), "downloading it failed") {
		t.Errorf("error = %v", err)
	}
	if exists(filepath.Join(dir, "postgres")) {
		t.Error("a cluster was made")
	}
	noLeftovers(t, dir)
}

func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	if leftovers, _ := filepath.Glob(filepath.Join(dir, "postgres-binaries", "fetch-*")); len(leftovers) > 0 {
		t.Errorf("left behind: %v", leftovers)
	}
}

func TestDownloadIsBoundedByContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := StartPostgres(ctx, withoutInstalled(t, newDataDir(t), server.URL))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
}
