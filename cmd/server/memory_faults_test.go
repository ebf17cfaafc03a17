package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// retitle writes to the catalogue.
func retitle(ctx context.Context, t *testing.T, c client, title string) (revision string) {
	t.Helper()
	r, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{Tools: []*v1.Tool{tool("t0", title)}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetRevision()
}

// title is what a server answers of the tool that retitle changes.
func title(ctx context.Context, t *testing.T, c client, consistency *v1.Consistency) string {
	t.Helper()
	r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "never-created", UserId: "u", Surface: web, Consistency: consistency})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetTools()[0].GetTitle()
}

func atLeast(revision string) *v1.Consistency {
	return &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: revision}}
}

// pair starts two servers of a database, with a world in it.
func pair(ctx context.Context, t *testing.T, url string, settings ...string) (servers [2]*child, clients [2]client) {
	t.Helper()
	for i := range servers {
		servers[i] = newChild(t, append([]string{"TOOLGRANT_DATABASE_URL=" + url}, settings...)...)
		servers[i].start()
	}
	for i := range servers {
		servers[i].awaitReady()
		clients[i] = servers[i].connect()
	}
	if _, err := clients[0].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	return servers, clients
}

// The servers hardly poll, so only Redis can make a write of the one visible on the other, unless the other is
// asked for it.
func TestWithoutRedisOnlyWakeUpsAreLost(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	redis := testkit.RedisServer(t)
	_, c := pair(ctx, t, testkit.Database(t), "TOOLGRANT_REDIS_URL="+redis.URL, "TOOLGRANT_MAX_STALENESS=1h")
	visible := func(want string) {
		t.Helper()
		await(t, "the other server answers "+want, func() bool { return title(ctx, t, c[1], nil) == want })
	}
	retitle(ctx, t, c[0], "with Redis")
	visible("with Redis")

	redis.Kill()
	revision := retitle(ctx, t, c[0], "without Redis")
	if got := title(ctx, t, c[1], atLeast(revision)); got != "without Redis" {
		t.Errorf("asked for the write, the other answers %q", got)
	}
	retitle(ctx, t, c[0], "still without Redis")

	redis.Start() // the other is deaf no more, and looks for what it missed
	visible("still without Redis")
	retitle(ctx, t, c[0], "with Redis again")
	visible("with Redis again")
}

// A server is stopped for longer than its answers may be old, and goes on. What was asked of it meanwhile is
// answered with what was written meanwhile.
func TestAServerThatWasPausedAnswersNothingStale(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	const bound = 300 * time.Millisecond
	servers, c := pair(ctx, t, testkit.Database(t), "TOOLGRANT_MAX_STALENESS="+bound.String())
	retitle(ctx, t, c[0], "before")
	await(t, "both know it", func() bool { return title(ctx, t, c[1], nil) == "before" })
	watch, err := c[1].WatchTools(ctx, &v1.WatchToolsRequest{ChatId: "never-created", UserId: "u", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetTools()[0].GetTitle() != "before" {
		t.Fatalf("%v, %v", first, err)
	}

	servers[1].signal(syscall.SIGSTOP)
	retitle(ctx, t, c[0], "meanwhile")
	time.Sleep(2 * bound)
	const questions = 20
	answers := make(chan string, questions)
	for range questions {
		go func() { answers <- title(ctx, t, c[1], nil) }()
	}
	time.Sleep(bound) // they wait in its sockets
	servers[1].signal(syscall.SIGCONT)
	for range questions {
		if got := <-answers; got != "meanwhile" {
			t.Errorf("answered %q", got)
		}
	}
	for {
		told, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !told.GetCheckpoint() {
			if got := told.GetTools()[0].GetTitle(); got != "meanwhile" {
				t.Errorf("the watcher was told %q", got)
			}
			return
		}
	}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.process.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// PostgreSQL is killed and comes back. Who watched goes on watching.
func TestWatchersOutliveARestartOfPostgres(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	dir := newDataDir(t)
	server := newChild(t, "TOOLGRANT_DATA_DIR="+dir, "TOOLGRANT_CHECKPOINT_INTERVAL=200ms")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	watch, err := c.WatchTools(ctx, &v1.WatchToolsRequest{ChatId: "never-created", UserId: "u", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "once", "twice"} {
		if i > 0 {
			await(t, "it says that PostgreSQL is away", func() bool {
				killPostgres(t, dir, server.process.Process.Pid)
				return server.saysNotReady(ctx, c)
			})
			await(t, "it says that PostgreSQL is back", func() bool { return server.saysReady(ctx, c) })
			retitle(ctx, t, c, want)
		}
		checkpoints := 0
		for got := "nothing"; got != want || checkpoints == 0; {
			told, err := watch.Recv()
			switch {
			case err != nil:
				t.Fatal(err)
			case told.GetCheckpoint():
				checkpoints++
			default:
				got, checkpoints = told.GetTools()[0].GetTitle(), 0
			}
		}
	}
}

// The operator chose answers from memory while there is no database. They say that they may be stale.
func TestServeStale(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	relay, url := newRelay(t, testkit.Database(t))
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_SERVE_STALE=true", "TOOLGRANT_MAX_STALENESS=200ms")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	revision := retitle(ctx, t, c, "known")
	stale := func() bool {
		r, err := resolve(ctx, c, "never-created")
		if err != nil || r.GetTools()[0].GetTitle() != "known" {
			t.Fatalf("%v, %v", r, err)
		}
		return r.GetStale()
	}
	if stale() {
		t.Error("stale, with a database")
	}
	relay.silent.Store(true)
	relay.cut()
	await(t, "answers are stale", stale)
	if !server.saysReady(ctx, c) {
		t.Error("it is not ready, though it answers")
	}
	if _, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "unknown", UserId: "u", Surface: web}); !databaseAway(err) {
		t.Errorf("a chat that is not in memory: %v", err)
	}
	_, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "never-created", UserId: "u", Surface: web, Consistency: full})
	if !databaseAway(err) {
		t.Errorf("fully consistent: %v", err)
	}
	if got := title(ctx, t, c, atLeast(revision)); got != "known" {
		t.Errorf("what is known to be in it: %q", got)
	}
	relay.speak()
	await(t, "answers are fresh", func() bool { return !stale() })
	if strings.Contains(server.log.String(), "panic") {
		t.Error("it panicked")
	}
}

var full = &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}}
