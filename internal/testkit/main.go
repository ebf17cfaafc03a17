// Package testkit gives tests databases of their own on a real PostgreSQL, and
// Redis servers of their own. It may only be imported by tests.
//
// A package that uses databases, or RedisCluster, says so in its TestMain:
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// Their server is a private one, started when the first test asks for a database
// and stopped with the test process, unless TOOLGRANT_TEST_DATABASE_URL names
// another: that one's user must be allowed to create databases.
package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/embedded"
)

// serverVariable names a server to use instead of a private one.
const serverVariable = "TOOLGRANT_TEST_DATABASE_URL"

// testDeadline bounds every context of a test: far longer than any test takes,
// far shorter than anybody's patience.
const testDeadline = 2 * time.Minute

// Main runs the tests of a package and then ends the process, as os.Exit does.
// Call it from TestMain.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.managed = true
	shared.mu.Unlock()

	code := m.Run()
	if err := errors.Join(shared.stop(), sharedCluster.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Context returns a context that is cancelled when the test ends, just before
// its cleanups run, or after two minutes.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// shared is the server of this test process.
var shared server

// server is the PostgreSQL that a test process uses, started when first needed.
type server struct {
	mu      sync.Mutex
	managed bool // Main runs the tests, and will stop the server

	started  bool
	url      string // of a database to administer the server from
	err      error  // why the start failed
	postgres *embedded.Postgres
	dir      string

	templateMade bool
	templateErr  error
}

var errNoMain = errors.New("testkit.Main was not called: add func TestMain(m *testing.M) { testkit.Main(m) }")

func (s *server) isManaged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.managed
}

// adminURL starts the server if it is not yet and returns its address. A failed
// start is not tried again: every test would wait for the same failure.
func (s *server) adminURL() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.managed {
		return "", errNoMain
	}
	if !s.started {
		s.started = true
		s.err = s.start()
	}
	return s.url, s.err
}

func (s *server) start() error {
	if url := os.Getenv(serverVariable); url != "" {
		s.url = url
		return nil
	}
	if err := removeAbandoned(os.TempDir()); err != nil {
		// No reason not to test: this server has a directory of its own.
		fmt.Fprintln(os.Stderr, "testkit:", err)
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return err
	}
	s.dir = dir
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	s.postgres, err = embedded.StartPostgres(ctx, embedded.Options{
		DataDir: dir,
		Parameters: map[string]string{
			// The data need not survive anything.
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
		},
	})
	if err != nil {
		return err
	}
	// A busy machine may take longer to let somebody in than whoever connects waits by default.
	s.url = s.postgres.URL() + "&connect_timeout=60"
	return nil
}

// stop stops the private server, if there is one, and removes its data.
func (s *server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
		defer cancel()
		if err := s.postgres.Stop(ctx); err != nil {
			return err
		}
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
