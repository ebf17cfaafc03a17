package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// acquireLock makes the data directory ours. The kernel frees the lock when our
// process ends, whichever way; the file itself stays.
func acquireLock(dataDir string) (*flock.Flock, error) {
	path := filepath.Join(dataDir, "lock")
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking data directory %s: %w", dataDir, err)
	}
	if !locked {
		holder := "another server"
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) != "" {
			holder += " (process " + strings.TrimSpace(string(text)) + ")"
		}
		return nil, fmt.Errorf("data directory %s is in use by %s", dataDir, holder)
	}
	// For whoever is refused; the lock does not depend on it.
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		_ = lock.Unlock()
		return nil, fmt.Errorf("locking data directory %s: %w", dataDir, err)
	}
	return lock, nil
}

// releaseLock frees the data directory. The file is not removed: a server that
// just opened it would lock a file that nobody else sees.
func releaseLock(lock *flock.Flock) error {
	if err := lock.Unlock(); err != nil {
		return fmt.Errorf("unlocking %s: %w", lock.Path(), err)
	}
	return nil
}
