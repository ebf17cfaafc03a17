package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/postgres"
)

// Clock is the clock of real servers, which jumps while they run: libfaketime, preloaded into them, adds a difference to
// the machine's clock whenever they read it. What they measure with the monotonic clock is not changed, as it isn't
// when the clock of a machine is set. Programs that read the clock without the C library, as those written in Go do,
// cannot be deceived so.
type Clock struct {
	t           testing.TB
	dir         string
	environment []string
}

// NewClock returns a clock that is right.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	library, err := libfaketime()
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	c := &Clock{t: t, dir: postgresDir(t)}
	if err := os.Chmod(c.dir, 0o755); err != nil { // readers may be another user
		t.Fatal(err)
	}
	c.Ahead(0)
	c.environment = []string{
		// jemalloc, which Debian's Redis is linked with, reads the clock before libfaketime knows how to: the C library's
		// malloc, found first, is taken instead.
		"LD_PRELOAD=" + library + " libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + c.file(),
		"FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
	return c
}

func (c *Clock) file() string { return filepath.Join(c.dir, "clock") }

// Ahead sets by how much the clock is ahead of the machine's; behind it, if that is negative.
func (c *Clock) Ahead(by time.Duration) {
	c.t.Helper()
	next := c.file() + ".next" // nobody reads half of it
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f\n", by.Seconds()), 0o644); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.file()); err != nil {
		c.t.Fatal(err)
	}
}

// libfaketime finds the library where Debian's package has it, or where tools/install-faketime unpacks it.
func libfaketime() (string, error) {
	roots := []string{"/"}
	if cache, err := os.UserCacheDir(); err == nil {
		roots = append(roots, filepath.Join(cache, "toolgrant", "faketime"))
	}
	for _, root := range roots {
		found, err := filepath.Glob(filepath.Join(root, "usr/lib/*/faketime/libfaketimeMT.so.1"))
		if err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("no libfaketime to let clocks jump with (make setup installs it)")
}

// DatabaseBy returns the address of a migrated database on a PostgreSQL of the test's own, by a clock that jumps.
func DatabaseBy(t testing.TB, clock *Clock) string {
	t.Helper()
	server, err := embedded.StartPostgres(Context(t), embedded.Options{DataDir: postgresDir(t), Environment: clock.environment,
		Parameters: map[string]string{"max_connections": "100", "shared_buffers": "32MB", "fsync": "off"}})
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	t.Cleanup(func() { stopAtOnce(server) })
	if err := postgres.Migrate(Context(t), server.URL()); err != nil {
		t.Fatalf("testkit: %v", err)
	}
	return server.URL()
}
