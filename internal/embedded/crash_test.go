package embedded

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// startHelper runs this test binary as a program that holds a server, and
// returns it and its postmaster's process number.
func startHelper(t *testing.T, dir string) (helper *exec.Cmd, postmaster int) {
	t.Helper()
	helper = exec.Command(os.Args[0])
	helper.Env = append(os.Environ(), helperDataDir+"="+dir)
	helper.Stderr = os.Stderr
	output, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = helper.Process.Kill() // in case the test did not get to it
		_ = helper.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the helper did not start: %v", err)
	}
	postmaster, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return helper, postmaster
}

func TestKilledServerLeavesDataAndNoOrphan(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	helper, orphan := startHelper(t, dir)
	if _, err := StartPostgres(testContext(t), fast(dir)); err == nil ||
		!strings.Contains(err.Error(), strconv.Itoa(helper.Process.Pid)) {
		t.Errorf("while another process uses the directory: %v", err)
	}

	kill(t, helper.Process.Pid)
	_ = helper.Wait()
	p := start(t, fast(dir))
	if got := query[int](t, p, "SELECT answer FROM kept"); got != 42 {
		t.Errorf("answer = %d", got)
	}
	if isPostmasterOf(orphan, p.cluster) {
		t.Errorf("the killed server's postmaster %d still runs", orphan)
	}
}

func TestKernelStopsPostgresOfKilledServer(t *testing.T) {
	t.Parallel()
	if !kernelEndsChildren {
		t.Skip("only Linux ends children with their parent")
	}
	dir := newDataDir(t)
	helper, orphan := startHelper(t, dir)
	kill(t, helper.Process.Pid)
	_ = helper.Wait()
	eventually(t, "the postmaster's end without any help", func() bool {
		return !isPostmasterOf(orphan, filepath.Join(dir, "postgres"))
	})
}

// TestLeftoverIsStopped covers what happens where the kernel does not end
// children: a postmaster is running when we start.
func TestLeftoverIsStopped(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	p := start(t, fast(dir))
	execute(t, p, "CREATE TABLE kept AS SELECT 42 AS answer")
	stop(t, p)

	if err := os.Mkdir(p.socket.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.account.own(p.socket.path); err != nil {
		t.Fatal(err)
	}
	leftover := p.serverCommand() // without dieWithUs
	if err := leftover.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- leftover.Wait() }()
	t.Cleanup(func() { _ = leftover.Process.Kill() })
	eventually(t, "the leftover accepts connections", func() bool {
		return p.ensureDatabase(testContext(t)) == nil
	})

	next := start(t, fast(dir))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the leftover did not shut down cleanly: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the leftover still runs")
	}
	if got := query[int](t, next, "SELECT answer FROM kept"); got != 42 {
		t.Errorf("answer = %d", got)
	}
}

// TestForeignProcessNumber covers a stale postmaster.pid whose number meanwhile
// belongs to another process, of the account PostgreSQL runs as.
func TestForeignProcessNumber(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	p := start(t, fast(dir))
	stop(t, p)

	bystander := exec.Command("sleep", "60")
	p.account.apply(bystander)
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bystander.Wait() }()
	t.Cleanup(func() { _ = bystander.Process.Kill(); <-ended }) //nolint:errcheck // how it ended does not matter

	for name, text := range map[string]string{
		"foreign": strconv.Itoa(bystander.Process.Pid) + "\n" + p.cluster + "\n",
		"empty":   "",
	} {
		path := filepath.Join(p.cluster, "postmaster.pid")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.account.own(path); err != nil {
			t.Fatal(err)
		}
		next, err := StartPostgres(testContext(t), fast(dir))
		if err != nil {
			t.Fatalf("%s process number: %v", name, err)
		}
		stop(t, next)
	}
	select {
	case <-ended: //nolint:errcheck // how it ended does not matter
		t.Error("a process that is not PostgreSQL was ended")
		ended <- nil
	default:
	}
}

func TestDeadPostgresIsRestarted(t *testing.T) {
	t.Parallel()
	p := start(t, Options{DataDir: newDataDir(t), Logger: fast("").Logger})
	ctx := testContext(t)
	pool, err := pgxpool.New(ctx, p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE kept AS SELECT 42 AS answer"); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		before := p.PID()
		kill(t, before)
		eventually(t, "the pool reconnects to a new server", func() bool {
			var answer int
			err := pool.QueryRow(ctx, "SELECT answer FROM kept").Scan(&answer)
			return err == nil && answer == 42 && p.PID() != before
		})
	}
}

func TestStopWhileRestarting(t *testing.T) {
	t.Parallel()
	p := start(t, fast(newDataDir(t)))
	kill(t, p.PID())
	stop(t, p)
	if isPostmasterOf(p.PID(), p.cluster) {
		t.Error("still running after Stop")
	}
}
