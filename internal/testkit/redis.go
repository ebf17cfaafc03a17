package testkit

import (
	"slices"
	"syscall"
	"testing"
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
	return serveRedis(t, nil, arguments...)
}

// RedisServerBy is RedisServer by a clock that jumps.
func RedisServerBy(t testing.TB, clock *Clock, arguments ...string) *PrivateRedis {
	t.Helper()
	return serveRedis(t, clock.environment, arguments...)
}

func serveRedis(t testing.TB, environment []string, arguments ...string) *PrivateRedis {
	t.Helper()
	process, err := startRedis(t.TempDir(), environment, append(slices.Clone(withoutDisk), arguments...)...)
	if err != nil {
		t.Fatalf("testkit: %v", err)
	}
	r := lend(t, process)
	t.Cleanup(func() {
		r.Kill()
		r.logIfFailed()
	})
	return r
}

// PrivateRedis is a redis-server of a test's own. It keeps no data on disk: one
// that is started again is empty. Its methods are for the test's goroutine.
type PrivateRedis struct {
	URL string // stays the same when it is started again

	t       testing.TB
	process *redisProcess
}

// lend gives a process to a test, which hears of what fails.
func lend(t testing.TB, process *redisProcess) *PrivateRedis {
	return &PrivateRedis{URL: "redis://" + process.address() + "/0", t: t, process: process}
}

// Address returns the server's host and port.
func (r *PrivateRedis) Address() string { return r.process.address() }

// Start starts the server after Kill, and returns when it accepts connections.
func (r *PrivateRedis) Start() {
	r.t.Helper()
	if r.process.process != nil {
		r.t.Fatal("testkit: Redis is running already")
	}
	if err := r.process.start(); err != nil {
		r.t.Fatalf("testkit: %v", err)
	}
}

// Kill is kill -9. It returns when the process is no more. A server that is not
// running may be killed, too.
func (r *PrivateRedis) Kill() {
	r.t.Helper()
	if err := r.process.kill(); err != nil {
		r.t.Errorf("testkit: %v", err)
	}
}

// Pause stops the process where it is: connections stay, and new ones are even
// accepted by the kernel, but nobody answers.
func (r *PrivateRedis) Pause() { r.t.Helper(); r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *PrivateRedis) Resume() { r.t.Helper(); r.signal(syscall.SIGCONT) }

func (r *PrivateRedis) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.process.signal(sig); err != nil {
		r.t.Fatalf("testkit: %v", err)
	}
}

func (r *PrivateRedis) logIfFailed() {
	if r.t.Failed() {
		r.t.Logf("testkit: Redis at %s logged:\n%s", r.URL, r.process.log.text())
	}
}
