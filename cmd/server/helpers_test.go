package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output is what a server logs, safe to read while it logs.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer.Reset()
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// handedOut are the ports that freeAddress has handed out.
var handedOut sync.Map

// freeAddress is one that nobody listens on, and that nobody is handed meanwhile: it is below the ports that systems
// give to clients.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, taken := handedOut.LoadOrStore(address, true); !taken {
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// ready returns the status of /readyz; 0 if nobody answers.
func ready(address string) int {
	response, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("in vain: " + what)
}

// newDataDir is not a t.TempDir: its parent is closed to the user that PostgreSQL runs as when the tests run
// as root.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toolgrant-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// postmaster is the process number of a data directory's PostgreSQL. It is 0, or that of the server, while
// there is none.
func postmaster(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// killPostgres kills the PostgreSQL of a server, if there is one now.
func killPostgres(t *testing.T, dir string, server int) {
	t.Helper()
	if pid := postmaster(dir); pid != 0 && pid != server {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
}
