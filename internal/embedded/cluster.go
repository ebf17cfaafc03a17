package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// unfinishedPrefix names clusters that initdb is still making.
const unfinishedPrefix = "postgres.unfinished-"

// clusterMajor returns the major version of the PostgreSQL that made the
// cluster, 0 if there is no cluster.
func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(cluster)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("PostgreSQL's data: %w", err)
		}
		if len(entries) > 0 {
			return 0, fmt.Errorf("%s is not a PostgreSQL data directory (it has no PG_VERSION) but is not empty: "+
				"move it away, or set TOOLGRANT_DATA_DIR (flag --data-dir) elsewhere", cluster)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("PostgreSQL's data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || major <= 0 {
		return 0, fmt.Errorf("%s/PG_VERSION holds %q, which is no PostgreSQL version this program knows",
			cluster, strings.TrimSpace(string(text)))
	}
	return major, nil
}

// prepareCluster makes the cluster if there is none (major 0), and gives it to
// the account. initdb works in a folder beside it that gets the cluster's name
// only when complete, so an interrupted initdb leaves nothing that looks like a
// cluster; what it leaves is removed here.
func (p *Postgres) prepareCluster(ctx context.Context, major int) error {
	unfinished, err := filepath.Glob(filepath.Join(escapeGlob(p.dataDir), unfinishedPrefix+"*"))
	if err != nil {
		return fmt.Errorf("looking for unfinished clusters: %w", err)
	}
	for _, path := range unfinished {
		p.log.Warn("removing a PostgreSQL data directory whose creation was interrupted", "path", path)
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing an unfinished cluster: %w", err)
		}
	}
	if major != 0 {
		// A copy restored by root, for example, belongs to root.
		if owner, ok := ownerOf(p.cluster); ok && owner.uid != p.account.uid {
			if err := p.account.ownAll(p.cluster); err != nil {
				return fmt.Errorf("giving %s to user %s: %w", p.cluster, p.account.name, err)
			}
		}
		return nil
	}
	return p.initCluster(ctx)
}

func (p *Postgres) initCluster(ctx context.Context) (err error) {
	work, err := os.MkdirTemp(p.dataDir, unfinishedPrefix+"*")
	if err != nil {
		return fmt.Errorf("creating PostgreSQL's data directory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(work)
		}
	}()
	if err := p.account.own(work); err != nil {
		return fmt.Errorf("giving %s to user %s: %w", work, p.account.name, err)
	}

	args := []string{
		"--pgdata=" + work,
		"--username=" + superuser,
		"--auth=trust", // who may reach the socket is decided by its directory
		"--encoding=UTF8",
		// The same order and index behaviour on every machine, whatever its
		// system libraries are upgraded to.
		"--locale=C",
		"--data-checksums",
	}
	if p.parameters["fsync"] == "off" {
		args = append(args, "--no-sync")
	}
	if _, err := p.account.run(ctx, p.binaries.initdb(), args...); err != nil {
		return fmt.Errorf("creating PostgreSQL's data directory: %w", err)
	}

	if err := os.Remove(p.cluster); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replacing the empty %s: %w", p.cluster, err)
	}
	if err := os.Rename(work, p.cluster); err != nil {
		return fmt.Errorf("creating PostgreSQL's data directory: %w", err)
	}
	return syncDir(p.dataDir)
}

// syncDir makes a rename in dir survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// escapeGlob quotes a path for use in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
