package main

import (
	"bytes"
	"context"
	"io"
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

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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

func TestAServerWithoutConfigurationRecoversAndStopsCleanly(t *testing.T) {
	// Not t.TempDir: its parent is closed to the user that PostgreSQL runs as when the tests run as root.
	dir, err := os.MkdirTemp("", "toolgrant-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	web := freeAddress(t)
	args := []string{"--data-dir", dir, "--grpc-addr", freeAddress(t), "--http-addr", web}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &output{}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, log) }()
	await(t, "ready", func() bool {
		select {
		case err := <-done:
			t.Fatalf("it ended with: %v\n%s", err, log)
		default:
		}
		return ready(web) == http.StatusOK
	})

	err = run(ctx, []string{"--data-dir", dir, "--grpc-addr", freeAddress(t), "--http-addr", freeAddress(t)}, &output{})
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second server on one data directory: %v", err)
	}

	pid := postmaster(t, dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "not ready while PostgreSQL is away", func() bool { return ready(web) == http.StatusServiceUnavailable })
	await(t, "ready again by itself", func() bool { return ready(web) == http.StatusOK })

	pid = postmaster(t, dir)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with: %v\n%s", err, log)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("PostgreSQL, process %d, outlived the server", pid)
	}
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestOnlyLoopbackWithoutAuthentication(t *testing.T) {
	err := run(t.Context(), []string{"--grpc-addr", "0.0.0.0:1", "--http-addr", "nonsense"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--grpc-addr") || !strings.Contains(err.Error(), "--http-addr") {
		t.Errorf("got %v", err)
	}
}

func TestMigrateSaysWhatIsWrongWithADatabaseURLButNotItsPassword(t *testing.T) {
	t.Setenv("TOOLGRANT_DATABASE_URL", "")
	if err := run(t.Context(), []string{"migrate"}, io.Discard); err == nil || !strings.Contains(err.Error(), "TOOLGRANT_DATABASE_URL") {
		t.Errorf("without a database: %v", err)
	}
	t.Setenv("TOOLGRANT_DATABASE_URL", "host=db password = 'hush' port=x")
	err := run(t.Context(), []string{"migrate"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "invalid port") || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}
