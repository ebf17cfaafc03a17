package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 10 * time.Second

	// maxFailedStarts bounds the attempts of the first start only: a server
	// that once ran is restarted for as long as we live.
	maxFailedStarts = 6

	// steadyAfter is how long a server must have run for its death not to count
	// as yet another one in a row.
	steadyAfter = time.Minute
)

var errStopped = errors.New("the embedded PostgreSQL was stopped")

// supervise runs the postmaster until Stop, starting it again whenever it ends
// by itself. A restart may fail at first: processes of the dead server can hold
// its shared memory for a moment.
func (p *Postgres) supervise() {
	defer close(p.done)
	// Never unlocked: the kernel ends the postmaster with the thread that
	// started it (see dieWithUs), and this goroutine outlives the postmaster.
	runtime.LockOSThread()

	delay := firstDelay
	for failures := 1; ; failures++ {
		began := time.Now()
		err := p.runServer()
		if p.isStopped() {
			return
		}
		if time.Since(began) > steadyAfter {
			failures, delay = 1, firstDelay
		}
		if !p.ready.Load() && failures >= maxFailedStarts {
			p.giveUp(err)
			return
		}
		p.log.Warn("the embedded PostgreSQL ended by itself; starting it again",
			"after", delay.String(), "log", p.logPath(), "error", err)
		select {
		case <-p.stopping:
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
}

// runServer runs one postmaster to its end. The error says how it ended, in its
// own words.
func (p *Postgres) runServer() error {
	logFile, offset, err := p.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()

	cmd := p.serverCommand()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	dieWithUs(cmd, syscall.SIGINT) // a clean shutdown even when we are killed

	start := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stopped {
			return errStopped
		}
		if err := errors.Join(p.socket.clear(), disarmPidFile(p.cluster, p.account)); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("starting PostgreSQL: %w", err)
		}
		p.process, p.pid = cmd.Process, cmd.Process.Pid
		return nil
	}
	if err := start(); err != nil {
		return err
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.process = nil
	p.mu.Unlock()
	if err == nil {
		err = errors.New("it shut down") // somebody else asked it to
	}
	return fmt.Errorf("PostgreSQL: %w; it logged:\n%s", err, p.logSince(offset))
}

func (p *Postgres) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

func (p *Postgres) giveUp(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// waitUntilReady waits until the server accepts connections and its database
// exists.
func (p *Postgres) waitUntilReady(ctx context.Context) error {
	for {
		err := p.ensureDatabase(ctx)
		if err == nil {
			p.ready.Store(true)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the embedded PostgreSQL accepted no connections in time (see %s): %w: %w",
				p.logPath(), ctx.Err(), err)
		case <-p.done:
			p.mu.Lock()
			defer p.mu.Unlock()
			return fmt.Errorf("the embedded PostgreSQL does not start: %w", p.failure)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ensureDatabase creates Toolgrant's database if it is missing.
func (p *Postgres) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()

	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", databaseName).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{databaseName}.Sanitize())
	return err
}
