package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxSocketPath is the longest path a Unix socket can have on macOS; Linux
	// allows a few bytes more.
	maxSocketPath = 103

	socketName       = ".s.PGSQL." + port
	tempSocketPrefix = "toolgrant-socket-"

	// socketRecord is a file in the data directory that names the temporary
	// socket directory, so that the next start can remove it if we were killed.
	socketRecord = "socket-directory"
)

// socketDir is the private directory of the server's socket. Who can enter it
// can do anything to the database: only the account and root can.
type socketDir struct {
	path   string
	record string // the file that names path; "" if path is in the data directory
}

// makeSocketDir creates the socket directory: in the data directory, or in a
// temporary place when that path will not do for a socket.
func makeSocketDir(dataDir string, a account) (socketDir, error) {
	record := filepath.Join(dataDir, socketRecord)
	if err := removeStaleSocketDir(record); err != nil {
		return socketDir{}, err
	}

	dir := socketDir{path: filepath.Join(dataDir, "socket")}
	if usableForSocket(dir.path) {
		if err := os.Mkdir(dir.path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return socketDir{}, fmt.Errorf("socket directory: %w", err)
		}
	} else {
		temp, err := makeTempSocketDir(a)
		if err != nil {
			return socketDir{}, err
		}
		dir = socketDir{path: temp, record: record}
		if err := os.WriteFile(record, []byte(temp), 0o600); err != nil {
			return socketDir{}, errors.Join(fmt.Errorf("socket directory: %w", err), os.Remove(temp))
		}
	}
	if err := errors.Join(os.Chmod(dir.path, 0o700), a.own(dir.path), dir.clear()); err != nil {
		return socketDir{}, fmt.Errorf("socket directory: %w", errors.Join(err, dir.remove()))
	}
	return dir, nil
}

// usableForSocket tells whether a socket in dir can be created and named: in a
// connection string, a comma separates hosts and cannot be quoted.
func usableForSocket(dir string) bool {
	return len(filepath.Join(dir, socketName)) <= maxSocketPath && !strings.Contains(dir, ",")
}

// makeTempSocketDir finds a temporary place that is short enough and that the
// account can reach: TMPDIR may be neither.
func makeTempSocketDir(a account) (string, error) {
	var problems []error
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		parent, err := filepath.EvalSymlinks(parent)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if closed, err := a.closedAncestor(parent); err != nil || closed != "" {
			problems = append(problems, fmt.Errorf("%s: user %s cannot reach it", parent, a.name))
			continue
		}
		dir, err := os.MkdirTemp(parent, tempSocketPrefix)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if usableForSocket(dir) {
			return dir, nil
		}
		problems = append(problems, fmt.Errorf("%s: too long, or has a comma", parent), os.Remove(dir))
	}
	return "", fmt.Errorf("no place for PostgreSQL's socket, whose path may have %d bytes: %w",
		maxSocketPath, errors.Join(problems...))
}

// removeStaleSocketDir removes the temporary directory that a killed server
// left. Only its own files, and only a directory named as ours: the record is
// a mere file.
func removeStaleSocketDir(record string) error {
	text, err := os.ReadFile(record)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	stale := socketDir{path: string(text), record: record}
	if !strings.HasPrefix(filepath.Base(stale.path), tempSocketPrefix) {
		return os.Remove(record)
	}
	return stale.remove()
}

// clear removes what a server left in the directory. The socket's own lock file
// would stop a new server if its process number had been given to another
// process meanwhile; the data directory's lock already keeps others out.
func (d socketDir) clear() error {
	var errs []error
	for _, name := range []string{socketName, socketName + ".lock"} {
		if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// remove removes the directory and what names it.
func (d socketDir) remove() error {
	errs := []error{d.clear()}
	if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	if d.record != "" {
		if err := os.Remove(d.record); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
