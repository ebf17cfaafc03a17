package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Redis returns the address of an empty Redis of the test's own. It needs a
// redis-server on the PATH, or where tools/install-redis unpacks one, and fails
// the test where there is none.
func Redis(t testing.TB) string {
	t.Helper()
	return RedisServer(t).URL
}

// RedisServer is Redis for tests that disturb it: kill it, pause it, start it
// again. It ends with the test, and on Linux also when the test process is
// killed. Arguments are those of redis-server, for what cannot be set later.
func RedisServer(t testing.TB, arguments ...string) *PrivateRedis {
	t.Helper()
	program, err := redisServer()
	if err != nil {
		t.Fatalf("testkit: no Redis to test with (make setup installs it): %v", err)
	}
	r := &PrivateRedis{t: t, program: program, dir: t.TempDir(), arguments: arguments}
	t.Cleanup(func() {
		r.Kill()
		if t.Failed() {
			t.Logf("testkit: Redis at %s logged:\n%s", r.URL, r.log.text())
		}
	})
	for {
		// Below the ports that systems give to clients: nobody is handed ours
		// while the server is down.
		r.port = 10_000 + rand.IntN(20_000)
		r.URL = fmt.Sprintf("redis://127.0.0.1:%d/0", r.port)
		err := r.start()
		if err == nil {
			return r
		}
		if !errors.Is(err, errPortTaken) {
			t.Fatalf("testkit: %v", err)
		}
	}
}

// redisServer is the program.
func redisServer() (string, error) {
	program, missing := exec.LookPath("redis-server")
	if missing == nil {
		return program, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", missing
	}
	unpacked := filepath.Join(cache, "toolgrant", "redis", "bin", "redis-server")
	if _, err := os.Stat(unpacked); err != nil {
		return "", missing
	}
	return unpacked, nil
}

// PrivateRedis is a redis-server of a test's own. It keeps no data on disk: one
// that is started again is empty. Its methods are for the test's goroutine.
type PrivateRedis struct {
	URL string // stays the same when it is started again

	t         testing.TB
	program   string
	dir       string
	arguments []string
	port      int
	log       redisLog
	process   *os.Process   // nil: not running
	ended     chan struct{} // closed when the process is no more
}

// Start starts the server after Kill, and returns when it accepts connections.
func (r *PrivateRedis) Start() {
	r.t.Helper()
	if r.process != nil {
		r.t.Fatal("testkit: Redis is running already")
	}
	if err := r.start(); err != nil {
		r.t.Fatalf("testkit: %v", err)
	}
}

// Kill is kill -9. It returns when the process is no more. A server that is not
// running may be killed, too.
func (r *PrivateRedis) Kill() {
	r.t.Helper()
	if r.process == nil {
		return
	}
	if err := r.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Errorf("testkit: killing Redis: %v", err)
	}
	<-r.ended
	r.process = nil
}

// Pause stops the process where it is: connections stay, and new ones are even
// accepted by the kernel, but nobody answers.
func (r *PrivateRedis) Pause() { r.t.Helper(); r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *PrivateRedis) Resume() { r.t.Helper(); r.signal(syscall.SIGCONT) }

func (r *PrivateRedis) signal(sig syscall.Signal) {
	r.t.Helper()
	if r.process == nil {
		r.t.Fatal("testkit: Redis is not running")
	}
	if err := r.process.Signal(sig); err != nil {
		r.t.Fatalf("testkit: %v to Redis: %v", sig, err)
	}
}

var errPortTaken = errors.New("the port is taken")

func (r *PrivateRedis) start() error {
	cmd := exec.Command(r.program, append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port),
		"--dir", r.dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, r.arguments...)...)
	cmd.Stderr = os.Stderr
	dieWithUs(cmd)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started, ready, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		// Never unlocked: the kernel ends the server with the thread that
		// started it (see dieWithUs), and this goroutine outlives the server.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		r.log.follow(bufio.NewScanner(output), ready)
		_ = cmd.Wait() // its status is that it was killed
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting Redis: %w", err)
	}
	r.process, r.ended = cmd.Process, ended
	select {
	case <-ready:
		return nil
	case <-ended:
		r.process = nil
		if strings.Contains(r.log.text(), "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("starting Redis: it ended; it logged:\n%s", r.log.text())
	case <-time.After(testDeadline):
		return fmt.Errorf("starting Redis: not ready in time; it logged:\n%s", r.log.text())
	}
}

// redisLog is what a server wrote since it was last started.
type redisLog struct {
	mu    sync.Mutex
	lines []string
}

// follow reads a server's output to its end, and closes ready when it says that
// it accepts connections. That it does so on the port would prove less: another
// process may have been faster to take it.
func (l *redisLog) follow(output *bufio.Scanner, ready chan struct{}) {
	l.mu.Lock()
	l.lines = nil
	l.mu.Unlock()
	for isReady := false; output.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, output.Text())
		l.mu.Unlock()
		if !isReady && strings.Contains(output.Text(), "Ready to accept connections") {
			isReady = true
			close(ready)
		}
	}
}

func (l *redisLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
