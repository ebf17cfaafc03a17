package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// node runs Wakeups until the test ends, and counts.
type node struct {
	*Wakeups
	t     *testing.T
	woken atomic.Int64
	dials atomic.Int64 // failed ones
	log   lockedBuffer
	stop  func() // ends Run, which must return nil
}

func newNode(t *testing.T, url string, database uint64) *node {
	t.Helper()
	n := &node{t: t}
	client := open(t, url)
	client.AddHook(n)
	n.Wakeups = NewWakeups(client, database, slog.New(slog.NewTextHandler(&n.log, nil)))
	return n
}

func open(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// run starts the node and waits until it has subscribed.
func (n *node) run() *node {
	n.t.Helper()
	n.start(func() {})
	n.awaitWoken(1)
	return n
}

// start starts the node, which calls woken when it has counted.
func (n *node) start(woken func()) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(testkit.Context(n.t))
	ended := make(chan error, 1)
	go func() {
		ended <- n.Run(ctx, func() {
			n.woken.Add(1)
			woken()
		})
	}()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			n.t.Errorf("Run: %v", err)
		}
	})
	n.t.Cleanup(n.stop)
}

func (n *node) awaitWoken(times int64) {
	n.t.Helper()
	await(n.t, fmt.Sprintf("woken %d times", times), func() bool { return n.woken.Load() >= times })
}

// wantWoken fails if the node was woken more often than expected. It is asked after a message that was sent
// later was heard.
func (n *node) wantWoken(times int64) {
	n.t.Helper()
	n.awaitWoken(times)
	if got := n.woken.Load(); got != times {
		n.t.Errorf("woken %d times, want %d", got, times)
	}
}

// DialHook implements redis.Hook.
func (n *node) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			n.dials.Add(1)
		}
		return conn, err
	}
}

// ProcessHook implements redis.Hook.
func (n *node) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (n *node) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for ctx := testkit.Context(t); !condition(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

// calls counts how often a Redis has executed a command.
func calls(t *testing.T, client redis.UniversalClient, command string) int {
	t.Helper()
	stats, err := client.Info(testkit.Context(t), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(stats, "cmdstat_"+command+":calls=")
	if !ok {
		return 0
	}
	var calls int
	if _, err := fmt.Sscanf(after, "%d", &calls); err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestNodesOfADatabaseHearOneAnother(t *testing.T) {
	url := testkit.Redis(t)
	a, b, other := newNode(t, url, 1).run(), newNode(t, url, 1).run(), newNode(t, url, 2).run()
	a.Publish()
	b.awaitWoken(2)
	b.Publish()
	a.awaitWoken(2)

	// What others' messages and their own did not do shows when the next one is heard.
	for _, n := range []*node{a, other} {
		if err := n.client.Publish(testkit.Context(t), n.channel, "a node").Err(); err != nil {
			t.Fatal(err)
		}
	}
	a.wantWoken(3)
	other.wantWoken(2)
}

func TestManyNotesAreOneMessage(t *testing.T) {
	url := testkit.Redis(t)
	b := newNode(t, url, 1).run()
	a := newNode(t, url, 1)
	for range 1000 {
		a.Publish()
	}
	a.run()
	b.wantWoken(2)
	a.Publish()
	b.wantWoken(3)
	if got := calls(t, b.client, "publish"); got != 2 {
		t.Errorf("published %d messages, want 2", got)
	}
}

func TestMessagesWhileWokenRunsAreOneCall(t *testing.T) {
	const messages = 1000
	n := newNode(t, testkit.Redis(t), 1)
	goOn := make(chan struct{})
	var running atomic.Int64
	n.start(func() {
		if running.Add(1) > 1 {
			t.Error("calls overlap")
		}
		<-goOn
		running.Add(-1)
	})
	n.awaitWoken(1)
	for range messages {
		if err := n.client.Publish(testkit.Context(t), n.channel, "a node").Err(); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	n.awaitWoken(2)
	n.stop()
	// One call, if the last message was heard before the first call ended. Only Redis knows.
	if got := n.woken.Load(); got > messages/2 {
		t.Errorf("woken %d times by %d messages", got, messages)
	}
}

func TestAnOutageIsOutlasted(t *testing.T) {
	t.Parallel()
	server := testkit.RedisServer(t)
	a, b := newNode(t, server.URL, 1).run(), newNode(t, server.URL, 1).run()
	server.Kill()
	a.Publish()
	await(t, "some attempts failed", func() bool { return b.dials.Load() >= 4 })
	server.Start()
	b.awaitWoken(2) // it may have missed something

	// What was published meanwhile arrived by now, or b hears it now.
	await(t, "b hears a again", func() bool { return calls(t, b.client, "publish") >= 1 })
	before := b.woken.Load()
	a.Publish()
	b.awaitWoken(before + 1)

	await(t, "the end of the outage is logged", func() bool { return strings.Contains(b.log.String(), "answers again") })
	if log := b.log.String(); strings.Count(log, "\n") != 2 || strings.Count(log, "does not answer") != 1 {
		t.Errorf("the log of an outage with %d failed connections:\n%s", b.dials.Load(), log)
	}
}

func TestItStartsWithoutRedis(t *testing.T) {
	server := testkit.RedisServer(t)
	server.Kill()
	n := newNode(t, server.URL, 1)
	n.start(func() {})
	await(t, "an attempt failed", func() bool { return n.dials.Load() >= 1 })
	server.Start()
	n.awaitWoken(1)
}

func TestPublishDoesNotWaitForRedis(t *testing.T) {
	server := testkit.RedisServer(t)
	a, b := newNode(t, server.URL, 1).run(), newNode(t, server.URL, 1).run()
	server.Pause()
	for range 10_000 { // hours, if each waited for an answer
		a.Publish()
	}
	server.Resume()
	b.awaitWoken(2)
}

func TestRunEndsWhileRedisIsSilent(t *testing.T) {
	server := testkit.RedisServer(t)
	n := newNode(t, server.URL, 1).run()
	server.Pause()
	n.Publish()
	n.stop()
}

func TestASilentRedisIsNoticed(t *testing.T) {
	t.Parallel()
	server := testkit.RedisServer(t)
	n := newNode(t, server.URL, 1)
	n.idleFor = 10 * time.Millisecond
	n.run()
	await(t, "the idle connection is tested", func() bool { return calls(t, n.client, "ping") >= 2 })
	server.Pause()
	await(t, "the outage is noticed", func() bool { return strings.Contains(n.log.String(), "does not answer") })
	server.Resume()
	n.awaitWoken(2)
	await(t, "its end is noticed", func() bool { return strings.Contains(n.log.String(), "answers again") })
}

func TestRunFailsWithAClosedClient(t *testing.T) {
	n := newNode(t, testkit.Redis(t), 1)
	if err := n.client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.Run(testkit.Context(t), func() {}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

// awaitHearing waits until b hears again what a publishes.
func awaitHearing(t *testing.T, a, b *node) {
	t.Helper()
	before := b.woken.Load()
	await(t, "b hears a", func() bool { a.Publish(); return b.woken.Load() >= before+10 })
}

func TestThroughACluster(t *testing.T) {
	cluster := testkit.RedisCluster(t)
	a, b := newNode(t, cluster.URL, 1).run(), newNode(t, "redis-cluster://"+cluster.Nodes[0].Address(), 1).run()
	a.Publish()
	b.awaitWoken(2)
	b.Publish()
	a.awaitWoken(2)

	cluster.Hasten()
	cluster.Primary(b.channel).Kill() // both have subscribed there
	b.awaitWoken(3)
	a.awaitWoken(3)
	awaitHearing(t, a, b)
	awaitHearing(t, b, a)
}
