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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// redisProcess is a redis-server on loopback, running or not. On Linux it ends
// with the test process, however that ends.
type redisProcess struct {
	dir         string
	arguments   []string
	environment []string // besides ours
	port        int
	log         redisLog
	process     *os.Process   // nil: not running
	ended       chan struct{} // closed when the process is no more
}

var errPortTaken = errors.New("the port is taken")

// withoutDisk is for servers that keep no data on disk.
var withoutDisk = []string{"--save", "", "--appendonly", "no"}

// startRedis starts a server on a port that is free, in a directory of its own.
func startRedis(dir string, environment []string, arguments ...string) (*redisProcess, error) {
	for {
		// Below the ports that systems give to clients, and so is the one of a
		// Cluster's bus, 10,000 above: nobody is handed ours while the server is
		// down.
		r := &redisProcess{dir: dir, arguments: arguments, environment: environment, port: 10_000 + rand.IntN(12_000)}
		if err := r.start(); !errors.Is(err, errPortTaken) {
			return r, err
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

func (r *redisProcess) address() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

// start returns when the server accepts connections.
func (r *redisProcess) start() error {
	program, err := redisServer()
	if err != nil {
		return fmt.Errorf("no Redis to test with (make setup installs it): %w", err)
	}
	cmd := exec.Command(program, append(slices.Clone(r.arguments), "--bind", "127.0.0.1",
		"--port", strconv.Itoa(r.port), "--dir", r.dir, "--daemonize", "no")...)
	cmd.Env = append(os.Environ(), r.environment...)
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

// kill returns when the process is no more. One that is not running may be
// killed, too.
func (r *redisProcess) kill() error {
	if r.process == nil {
		return nil
	}
	if err := r.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing Redis: %w", err)
	}
	<-r.ended
	r.process = nil
	return nil
}

func (r *redisProcess) signal(sig syscall.Signal) error {
	if r.process == nil {
		return errors.New("redis is not running")
	}
	if err := r.process.Signal(sig); err != nil {
		return fmt.Errorf("%v to Redis: %w", sig, err)
	}
	return nil
}

// redisLog is what a server wrote since it was last started.
type redisLog struct {
	mu    sync.Mutex
	lines []string
}

// follow reads a server's output to its end, and closes ready when it says that
// it accepts connections, or, a Sentinel, who it is. That it does so on the port
// would prove less: another process may have been faster to take it.
func (l *redisLog) follow(output *bufio.Scanner, ready chan struct{}) {
	l.mu.Lock()
	l.lines = nil
	l.mu.Unlock()
	for isReady := false; output.Scan(); {
		line := output.Text()
		l.mu.Lock()
		l.lines = append(l.lines, line)
		l.mu.Unlock()
		if !isReady && (strings.Contains(line, "Ready to accept connections") || strings.Contains(line, "Sentinel ID is")) {
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
