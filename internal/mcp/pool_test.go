package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// pooling is a pool that runs, and a server that is a child process and tells what happens to it.
type pooling struct {
	*mcp.Pool
	ctx    context.Context
	events string
	server *catalog.MCPServer
}

func pool(t *testing.T, o mcp.PoolOptions) pooling {
	t.Helper()
	p := pooling{ctx: testkit.Context(t), events: filepath.Join(t.TempDir(), "events")}
	t.Setenv("TOOLGRANT_TEST_EVENTS", p.events)
	p.server = child(t, "honest")
	p.server.HeadersFromEnv["EVENTS"] = "TOOLGRANT_TEST_EVENTS"
	o.Dialer.Stdio = true
	p.Pool = mcp.NewPool(o)
	running, stop := context.WithCancel(p.ctx)
	stopped := make(chan struct{})
	go func() {
		p.Run(running)
		close(stopped)
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
	})
	return p
}

// call calls a function of the child, and returns its text.
func (p pooling) call(ctx context.Context, server *catalog.MCPServer, function string) (string, error) {
	result, err := p.Call(ctx, server, function, nil, nil, nil)
	if err != nil {
		return "", err
	}
	return result.Content[0].(*sdk.TextContent).Text, nil
}

func (p pooling) pid(t *testing.T, server *catalog.MCPServer) int {
	t.Helper()
	text, err := p.call(p.ctx, server, "pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func (p pooling) touch(t *testing.T, suffix string) {
	t.Helper()
	if err := os.WriteFile(p.events+suffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// A process that nobody needs is ended, and started again when it is needed; one with a call under way is not.
func TestIdleProcessesAreEnded(t *testing.T) {
	p := pool(t, mcp.PoolOptions{Idle: 40 * time.Millisecond})
	busy := *p.server
	busy.ID = "busy"
	answered := make(chan error, 1)
	held := ""
	go func() {
		var err error
		held, err = p.call(p.ctx, &busy, "hold")
		answered <- err
	}()
	await(t, p.ctx, "the call", func() bool { return told(p.events, "hold") == 1 })
	seen := map[int]bool{}
	for range 3 {
		pid := p.pid(t, p.server)
		if seen[pid] {
			t.Errorf("process %d answers again after it ended", pid)
		}
		seen[pid] = true
		await(t, p.ctx, "the process's end", func() bool { return gone(pid) })
	}
	p.touch(t, ".release")
	if err := <-answered; err != nil || held == "" {
		t.Errorf("the call that took longer: %q, %v", held, err)
	}
}

// A server gets so many calls at a time. Others wait, or give up.
func TestAServerGetsSoManyCallsAtATime(t *testing.T) {
	const limit = 3
	p := pool(t, mcp.PoolOptions{Concurrent: limit})
	var group sync.WaitGroup
	for range limit {
		group.Go(func() {
			if _, err := p.call(p.ctx, p.server, "hold"); err != nil {
				t.Error(err)
			}
		})
	}
	await(t, p.ctx, "the calls", func() bool { return told(p.events, "hold") == limit })
	impatient, cancel := context.WithTimeout(p.ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := p.call(impatient, p.server, "hold"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more call: %v", err)
	}
	other := *p.server
	other.ID = "other"
	p.pid(t, &other) // which does not wait for the first
	for range limit {
		group.Go(func() {
			if _, err := p.call(p.ctx, p.server, "hold"); err != nil {
				t.Error(err)
			}
		})
	}
	if calls := told(p.events, "hold"); calls != limit {
		t.Errorf("the server got %d calls at a time", calls)
	}
	p.touch(t, ".release")
	group.Wait()
	if calls := told(p.events, "hold"); calls != 2*limit {
		t.Errorf("the server got %d calls in all: one more was made, though nobody waited for it, or some were not", calls)
	}
}

var leftAlone = regexp.MustCompile(`left alone for (\S+):`)

// A server that is away is asked ever later, and is used as soon as it is there again; one that crashes is started again.
func TestServersAreReconnectedEverLater(t *testing.T) {
	const backoff = 40 * time.Millisecond
	p := pool(t, mcp.PoolOptions{Backoff: backoff})
	p.touch(t, ".away")
	await(t, p.ctx, "a longer rest", func() bool {
		_, err := p.call(p.ctx, p.server, "pid")
		unreachable := (*mcp.UnreachableError)(nil)
		if !errors.As(err, &unreachable) {
			t.Fatalf("it is answered, with %v", err)
		}
		if found := leftAlone.FindStringSubmatch(err.Error()); found != nil {
			rest, parseErr := time.ParseDuration(found[1])
			return parseErr == nil && rest > 2*backoff
		}
		return false
	})
	if starts := told(p.events, "start"); starts > 12 {
		t.Errorf("it was started %d times", starts)
	}
	if err := os.Remove(p.events + ".away"); err != nil {
		t.Fatal(err)
	}
	first := ""
	await(t, p.ctx, "the server", func() bool {
		var err error
		first, err = p.call(p.ctx, p.server, "pid")
		return err == nil
	})
	unreachable := (*mcp.UnreachableError)(nil)
	if _, err := p.call(p.ctx, p.server, "crash"); !errors.As(err, &unreachable) {
		t.Errorf("a crash: %v", err)
	}
	second := ""
	await(t, p.ctx, "another process", func() bool {
		var err error
		second, err = p.call(p.ctx, p.server, "pid")
		return err == nil
	})
	if first == second {
		t.Error("the process that crashed answers")
	}
}
