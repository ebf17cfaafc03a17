package embedded

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// defaultDownload is the PostgreSQL that a new cluster is made with when none is
// installed.
const defaultDownload = 17

// downloadable are the releases that the library knows, by major version.
var downloadable = map[int]embeddedpostgres.PostgresVersion{
	14: embeddedpostgres.V14,
	15: embeddedpostgres.V15,
	16: embeddedpostgres.V16,
	17: embeddedpostgres.V17,
	18: embeddedpostgres.V18,
}

// fetchBinaries downloads PostgreSQL of the given major version into store and
// returns it. It is unpacked beside its final place, so an interrupted download
// leaves nothing that looks usable.
func (p *Postgres) fetchBinaries(ctx context.Context, store string, major int, repository string) (binaries, error) {
	version, known := downloadable[major]
	if !known {
		return binaries{}, fmt.Errorf("no PostgreSQL %d to download", major)
	}
	if err := makeReadable(store); err != nil {
		return binaries{}, err
	}
	leftovers, err := filepath.Glob(filepath.Join(escapeGlob(store), "fetch-*"))
	if err != nil {
		return binaries{}, err
	}
	for _, path := range leftovers {
		if err := os.RemoveAll(path); err != nil {
			return binaries{}, err
		}
	}
	work, err := os.MkdirTemp(store, "fetch-*")
	if err != nil {
		return binaries{}, err
	}
	tree := filepath.Join(work, "tree")
	if err := unpackRelease(ctx, version, work, tree, repository); err != nil {
		return binaries{}, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := openToAll(tree); err != nil {
		return binaries{}, err
	}
	final := filepath.Join(store, strconv.Itoa(major))
	if err := os.RemoveAll(final); err != nil { // unusable, or it would have been found
		return binaries{}, err
	}
	if err := os.Rename(tree, final); err != nil {
		return binaries{}, err
	}
	fetched, err := p.account.inspect(ctx, filepath.Join(final, "bin"))
	if err != nil {
		return binaries{}, fmt.Errorf("what was downloaded for %s does not run: %w", runtime.GOOS+"/"+runtime.GOARCH, err)
	}
	if !fetched.suits(major) {
		return binaries{}, fmt.Errorf("asked for PostgreSQL %d, got %s", major, fetched.version)
	}
	return fetched, nil
}

// unpackRelease downloads a release and unpacks it into tree, with the help of
// a library that would rather run it as well, which it cannot do as root and we
// do our own way.
//
// The library's Start does this, in this order: download; unpack into the
// binaries' path; create the runtime path; empty the data path; initdb. It is
// given a data path that ends in "/.", which the system refuses to remove, so
// that it always fails before initdb; the runtime path, which nothing else
// creates, tells that everything before succeeded.
func unpackRelease(ctx context.Context, version embeddedpostgres.PostgresVersion, work, tree, repository string) error {
	runtimePath := filepath.Join(work, "unpacked")
	config := embeddedpostgres.DefaultConfig().
		Version(version).
		Port(0). // Start insists on a free port: 0 always is
		CachePath(filepath.Join(work, "cache")).
		BinariesPath(tree).
		RuntimePath(runtimePath).
		DataPath(work + "/.").
		Logger(io.Discard)
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}

	// The library takes no context: a download that we no longer wait for goes
	// on, and its folder is removed when it ends.
	finished := make(chan error, 1)
	go func() {
		err := startToFail(config)
		if _, statErr := os.Stat(runtimePath); statErr == nil {
			err = nil
		} else if err == nil { // the order above would have changed
			err = fmt.Errorf("the download library did not unpack to %s", tree)
		}
		if err != nil || ctx.Err() != nil {
			_ = os.RemoveAll(work)
		}
		finished <- err
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-finished:
		return err
	}
}

// startToFail runs the library's Start. The library panics when it cannot clean
// up after itself, which is no reason for us to end.
func startToFail(config embeddedpostgres.Config) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the download library failed: %v", r)
		}
	}()
	return embeddedpostgres.NewDatabase(config).Start()
}

// makeReadable creates a directory that every account can read.
func makeReadable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// openToAll lets every account read and run the tree, whatever our umask was
// when it was unpacked.
func openToAll(tree string) error {
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if entry.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}
