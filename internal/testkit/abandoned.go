package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// dirPrefix names the data directories of private servers.
	dirPrefix = "toolgrant-testkit-"

	// abandonedAfter spares directories whose server is only just starting,
	// and has not locked its directory yet.
	abandonedAfter = time.Hour
)

// removeAbandoned removes the data directories in parent whose test process
// ended without stopping its server: it was killed, or a test panicked or ran
// into go test's time limit. Nobody else ever would.
func removeAbandoned(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for abandoned servers: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		lock := flock.New(filepath.Join(dir, "lock")) // the embedded server's
		if free, err := lock.TryLock(); err != nil || !free {
			continue // in use, or another user's
		}
		errs = append(errs, os.RemoveAll(dir), lock.Unlock())
	}
	return errors.Join(errs...)
}
