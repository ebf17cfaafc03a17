package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestAServerWithoutConfigurationRecoversAndStopsCleanly(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	web := freeAddress(t)
	args := []string{"--database-url=", "--data-dir", dir, "--grpc-addr", freeAddress(t), "--http-addr", web}
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

	err := run(ctx, []string{"--database-url=", "--data-dir", dir, "--grpc-addr", freeAddress(t), "--http-addr", freeAddress(t)}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second server on one data directory: %v", err)
	}

	await(t, "not ready while PostgreSQL is away", func() bool {
		killPostgres(t, dir, os.Getpid())
		return ready(web) == http.StatusServiceUnavailable
	})
	await(t, "ready again by itself", func() bool { return ready(web) == http.StatusOK })

	pid := postmaster(dir)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with: %v\n%s", err, log)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("PostgreSQL, process %d, outlived the server", pid)
	}
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
