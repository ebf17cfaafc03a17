// Package embedded runs a private PostgreSQL server for people who configured
// none: it finds (or, as a last resort, downloads) the PostgreSQL binaries,
// creates a cluster in Toolgrant's data directory, keeps the server running for
// as long as Toolgrant runs, and leaves nothing behind when Toolgrant ends,
// however it ends.
//
// The server listens on a Unix socket in a private directory only, and keeps
// PostgreSQL's default durability.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	// databaseName is the database that Toolgrant uses, superuser the only role
	// of the cluster.
	databaseName = "toolgrant"
	superuser    = "toolgrant"

	// port only names the socket file: nothing listens on TCP.
	port = "5432"
)

// Options says where the private PostgreSQL keeps its data and how it runs.
type Options struct {
	// DataDir is Toolgrant's data directory. It is created if missing; the
	// cluster lives in its sub-directory "postgres". Required.
	DataDir string

	// Logger receives what an operator should know: starts, restarts,
	// downloads. The default is slog.Default().
	Logger *slog.Logger

	// Parameters are extra PostgreSQL settings. They override the defaults of
	// this package, except those that say where the server listens.
	Parameters map[string]string

	// Environment are variables of the server's environment, which is not ours,
	// as NAME=value. Tests preload a library with it that lets its clock jump.
	Environment []string

	// BinaryRepositoryURL is the Maven repository from which the binaries are
	// downloaded when none is installed. Empty means the download library's
	// default, Maven Central.
	BinaryRepositoryURL string

	// folders lists the folders in which to look for installed binaries; nil
	// means installedFolders. Tests use it to hide what is installed.
	folders func() []string

	// downloadMajor is the PostgreSQL to download for a new cluster; 0 means
	// defaultDownload. Tests serve the one they have.
	downloadMajor int
}

// Postgres is a running private PostgreSQL server.
type Postgres struct {
	dataDir     string
	cluster     string
	parameters  map[string]string
	environment []string
	log         *slog.Logger
	account     account
	binaries    binaries
	lock        *flock.Flock
	socket      socketDir

	ready    atomic.Bool   // the server accepted connections at least once
	stopping chan struct{} // closed when Stop is called
	done     chan struct{} // closed when the supervisor has ended

	mu      sync.Mutex
	stopped bool        // Stop was called: launch nothing more
	process *os.Process // the current postmaster, nil while there is none
	pid     int         // its process number; the last one's while there is none
	failure error       // why the supervisor gave up, if it did

	release sync.Once
}

// StartPostgres starts the private PostgreSQL of opts.DataDir and returns when
// it accepts connections and the database exists. It fails if another server
// uses the same data directory. ctx bounds the start only, not the server's
// life: call Stop to end it.
func StartPostgres(ctx context.Context, opts Options) (_ *Postgres, err error) {
	log := opts.Logger
	if log == nil {
		log = slog.Default()
	}
	if opts.folders == nil {
		opts.folders = installedFolders
	}
	if opts.downloadMajor == 0 {
		opts.downloadMajor = defaultDownload
	}
	if opts.DataDir == "" {
		return nil, errors.New("embedded PostgreSQL: no data directory given")
	}
	dataDir, err := makeDataDir(opts.DataDir)
	if err != nil {
		return nil, err
	}
	lock, err := acquireLock(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Unlock()
		}
	}()

	p := &Postgres{
		dataDir:     dataDir,
		cluster:     filepath.Join(dataDir, "postgres"),
		parameters:  opts.Parameters,
		environment: opts.Environment,
		log:         log,
		lock:        lock,
		stopping:    make(chan struct{}),
		done:        make(chan struct{}),
	}
	if p.account, err = pickAccount(p.cluster); err != nil {
		return nil, err
	}
	if err := p.account.openDataDir(dataDir); err != nil {
		return nil, err
	}
	major, err := clusterMajor(p.cluster)
	if err != nil {
		return nil, err
	}
	if p.binaries, err = p.findOrFetchBinaries(ctx, opts, major); err != nil {
		return nil, err
	}
	// The leftover goes first: it may still be writing to the cluster.
	if err := stopLeftover(ctx, p.cluster, log); err != nil {
		return nil, err
	}
	if err := p.prepareCluster(ctx, major); err != nil {
		return nil, err
	}
	if p.socket, err = makeSocketDir(dataDir, p.account); err != nil {
		return nil, err
	}

	go p.supervise()
	if err := p.waitUntilReady(ctx); err != nil {
		return nil, errors.Join(err, p.abandon())
	}
	return p, nil
}

// abandon ends a server whose start failed. Its own bound, rather than the
// start's context, because that one may be the reason of the failure.
func (p *Postgres) abandon() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return p.Stop(ctx)
}

// URL is a pgx and libpq connection string for the database "toolgrant". It
// stays valid when the server is restarted.
func (p *Postgres) URL() string {
	return p.url(databaseName)
}

func (p *Postgres) url(database string) string {
	query := url.Values{"host": {p.socket.path}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme: "postgres",
		User:   url.User(superuser),
		Path:   "/" + database,
		// libpq and pgx take a plus sign literally, not for a space.
		RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20"),
	}
	return u.String()
}

// PID is the process number of the current postmaster. It changes when the
// server is restarted after dying by itself.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// Notice says in plain words what was started, where its data is and how to
// look into it, to be shown when Toolgrant starts.
func (p *Postgres) Notice() string {
	return fmt.Sprintf(`No database is configured, so Toolgrant runs its own PostgreSQL %s:
  process   %d, as user %s, with the binaries in %s
  data      %s
  log       %s
  open it   %s`,
		p.binaries.version, p.PID(), p.account.name, p.binaries.folder,
		p.cluster, p.logPath(), p.psqlCommand())
}

// psqlCommand is a complete shell command that opens the database.
func (p *Postgres) psqlCommand() string {
	psql := filepath.Join(p.binaries.folder, "psql")
	if _, err := os.Stat(psql); err != nil {
		psql = "psql" // the downloaded binaries have none
	}
	words := []string{psql, "-h", p.socket.path, "-p", port, "-U", superuser, databaseName}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	return strings.Join(words, " ")
}

func shellQuote(word string) string {
	if !strings.ContainsAny(word, " \t\n'\"\\$`!*?[]{}()<>|&;~#=%") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Stop shuts the server down cleanly: open transactions are rolled back,
// everything is written to disk, and the data directory is free again when Stop
// returns. When ctx ends first, the server is stopped at once and will recover
// at its next start; nothing that was committed is lost either way. Calling
// Stop again does nothing more.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stopping)
		p.signal(syscall.SIGINT) // "fast" shutdown
	}
	p.mu.Unlock()

	var late error
	select {
	case <-p.done:
	case <-ctx.Done():
		late = fmt.Errorf("the embedded PostgreSQL did not shut down in time and was stopped at once: %w", ctx.Err())
		p.mu.Lock()
		p.signal(syscall.SIGQUIT) // "immediate" shutdown
		p.mu.Unlock()
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			// Keep the lock: the data directory is still in use.
			return fmt.Errorf("the embedded PostgreSQL (process %d) does not stop: %w", p.PID(), ctx.Err())
		}
	}

	var err error
	p.release.Do(func() {
		err = errors.Join(p.socket.remove(), releaseLock(p.lock))
	})
	return errors.Join(late, err)
}

// signal sends sig to the postmaster if there is one; p.mu must be held, so
// that no postmaster is launched meanwhile.
func (p *Postgres) signal(sig os.Signal) {
	if p.process == nil {
		return
	}
	if err := p.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.log.Error("could not signal the embedded PostgreSQL", "pid", p.pid, "signal", sig.String(), "error", err)
	}
}

// serverCommand is the command line of the postmaster. Settings are given here
// rather than in postgresql.conf, so that a cluster made by an older Toolgrant
// gets today's settings.
func (p *Postgres) serverCommand() *exec.Cmd {
	settings := map[string]string{
		"max_connections": "200",
		"shared_buffers":  sharedBuffers(memory()),
		// English, so that the log can be searched for and reported.
		"lc_messages": "C",
		// The log file is opened by us: a collector would be one more process
		// that outlives the postmaster.
		"logging_collector": "off",
		"log_destination":   "stderr",
	}
	for name, value := range p.parameters {
		settings[name] = value
	}
	settings["listen_addresses"] = ""
	settings["unix_socket_directories"] = `"` + strings.ReplaceAll(p.socket.path, `"`, `""`) + `"`
	settings["unix_socket_permissions"] = "0700"
	settings["port"] = port

	args := []string{"-D", p.cluster}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	// Not bound to a context: the server ends through signals only.
	cmd := exec.Command(p.binaries.postgres(), args...)
	p.account.apply(cmd)
	cmd.Env = append(cmd.Env, p.environment...)
	return cmd
}
