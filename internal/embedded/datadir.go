package embedded

import (
	"fmt"
	"os"
	"path/filepath"
)

// makeDataDir creates the data directory if it is missing and returns its
// absolute path without symbolic links: PostgreSQL needs the one, checking who
// may reach it needs the other.
func makeDataDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || !os.IsNotExist(err) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	if os.Geteuid() == 0 {
		// What root creates here must let PostgreSQL's account pass, whatever
		// the umask is.
		for _, d := range missing {
			if err := os.Chmod(d, 0o711); err != nil {
				return "", fmt.Errorf("data directory: %w", err)
			}
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return dir, nil
}

// openDataDir lets the account pass through the data directory (not list it)
// and makes sure that it can get there.
func (a account) openDataDir(dataDir string) error {
	if !a.switched {
		return nil
	}
	info, err := os.Stat(dataDir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if !a.mayEnter(info) {
		if err := os.Chmod(dataDir, info.Mode().Perm()|0o111); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	closed, err := a.closedAncestor(dataDir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if closed != "" {
		return fmt.Errorf("PostgreSQL does not run as root; it would run as user %s, who may not enter %s "+
			"and so cannot reach the data directory %s: set TOOLGRANT_DATA_DIR (flag --data-dir) to a directory elsewhere",
			a.name, closed, dataDir)
	}
	return nil
}
