package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// stopLeftover stops the postmaster of the cluster that a killed Toolgrant left
// behind. We hold the data directory's lock, so nobody else uses it.
func stopLeftover(ctx context.Context, cluster string, log *slog.Logger) error {
	pid, _, err := readPidFile(cluster)
	if err != nil || pid == 0 || !isPostmasterOf(pid, cluster) {
		return err
	}
	log.Warn("stopping the PostgreSQL that an earlier Toolgrant, which was killed, left running", "pid", pid)

	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, 30 * time.Second},  // "fast": write everything, then end
		{syscall.SIGQUIT, 15 * time.Second}, // "immediate": end, recover at the next start
	} {
		if err := syscall.Kill(pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping the leftover PostgreSQL, process %d: %w", pid, err)
		}
		gone, err := waitUntilGone(ctx, pid, cluster, step.wait)
		if gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("a PostgreSQL left by an earlier Toolgrant, process %d, still uses %s and does not stop", pid, cluster)
}

func waitUntilGone(ctx context.Context, pid int, cluster string, limit time.Duration) (bool, error) {
	deadline := time.After(limit)
	for isPostmasterOf(pid, cluster) {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for the leftover PostgreSQL, process %d, to stop: %w", pid, ctx.Err())
		case <-deadline:
			return false, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return true, nil
}

// readPidFile reads the cluster's postmaster.pid: the process number on its
// first line (0 if there is none) and the lines after it.
func readPidFile(cluster string) (pid int, rest []byte, err error) {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("reading PostgreSQL's process number: %w", err)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if pid, err = strconv.Atoi(string(bytes.TrimSpace(first))); err != nil || pid <= 0 {
		return 0, rest, nil
	}
	return pid, rest, nil
}

// disarmPidFile keeps the process number in a dead server's postmaster.pid from
// stopping a new one: after a reboot, another process may have that number, and
// PostgreSQL would take it for a running server.
//
// The file is not removed, because its other lines let PostgreSQL check that no
// process of the dead server still uses its shared memory. Instead it gets our
// own number, which PostgreSQL ignores, being its parent's. An unusable file (a
// power failure can truncate it) is removed.
func disarmPidFile(cluster string, a account) error {
	path := filepath.Join(cluster, "postmaster.pid")
	pid, rest, err := readPidFile(cluster)
	if err != nil {
		return err
	}
	if pid == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing an unusable postmaster.pid: %w", err)
		}
		return nil
	}
	disarmed := path + ".toolgrant"
	text := append([]byte(strconv.Itoa(os.Getpid())+"\n"), rest...)
	if err := writeNew(disarmed, text, a); err != nil {
		return fmt.Errorf("replacing a stale postmaster.pid: %w", err)
	}
	if err := os.Rename(disarmed, path); err != nil {
		return fmt.Errorf("replacing a stale postmaster.pid: %w", err)
	}
	return nil
}

// writeNew writes a file of the account's in a directory of the account's. As
// root, we must not be led elsewhere by a link that the account put there: the
// file is always a new one, and is handed over through its descriptor.
func writeNew(path string, text []byte, a account) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if a.switched {
		err = errors.Join(err, file.Chown(a.uid, a.gid))
	}
	return errors.Join(err, file.Close())
}

// servesCluster tells whether a command line is that of the cluster's
// postmaster. A process number alone proves nothing: it may belong to another
// process by now.
func servesCluster(args []string, cluster string) bool {
	if len(args) == 0 || filepath.Base(args[0]) != "postgres" {
		return false
	}
	for i, arg := range args[1:] {
		if arg == "-D" && i+2 < len(args) && args[i+2] == cluster {
			return true
		}
	}
	return false
}
