package redisstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

var (
	search  = health.Subject{Tool: "search"}
	weather = health.Subject{Server: "weather"}
)

// board is one node's.
type board struct {
	*health.Board
	t *testing.T
}

type boardOptions struct {
	policy  health.Policy
	timeout time.Duration
	now     func() time.Time
}

// newBoard returns the board of one of the nodes of a Redis.
func newBoard(t *testing.T, url string, o boardOptions) board {
	t.Helper()
	if o.policy == (health.Policy{}) {
		o.policy = health.Policy{FailThreshold: 3, Cooldown: 100 * time.Millisecond, ProbeLease: time.Hour}
	}
	if o.timeout == 0 {
		o.timeout = 20 * time.Second // so that a busy machine is no outage
	}
	return board{health.NewBoard(health.Options{Shared: NewHealth(openFor(t, url), 1, o.timeout), Policy: func(health.Subject) health.Policy { return o.policy },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: o.now}), t}
}

// run runs the board until the test ends, or stop is called.
func (b board) run() (stop func()) {
	ctx, cancel := context.WithCancel(testkit.Context(b.t))
	var group sync.WaitGroup
	group.Go(func() { b.Run(ctx) })
	stop = func() { cancel(); group.Wait() }
	b.t.Cleanup(stop)
	return stop
}

func (b board) sync() { b.t.Helper(); b.Sync(testkit.Context(b.t)) }

func (b board) report(s health.Subject, call id.Call, outcomes ...health.Outcome) {
	for _, o := range outcomes {
		b.Report(s, health.Report{Call: call, Outcome: o})
	}
}

// record is what the board knows of a subject.
func (b board) record(s health.Subject) health.Record {
	for _, status := range b.List() {
		if status.Subject == s {
			return status.Record
		}
	}
	return health.Record{}
}

func (b board) state(s health.Subject) health.State { return b.record(s).State(b.Now()) }

func (b board) await(s health.Subject, want health.State) {
	b.t.Helper()
	await(b.t, fmt.Sprintf("%v is %v", s, want), func() bool { return b.state(s) == want })
}

// coolDown waits until a probe may pass.
func (b board) coolDown(s health.Subject) { b.t.Helper(); b.await(s, health.HalfOpen) }

// onRedisKinds runs a test on all kinds of Redis.
func onRedisKinds(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, testkit.Redis(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, testkit.RedisCluster(t).URL) })
	t.Run("miniredis", func(t *testing.T) {
		server := miniredis.RunT(t)
		test(t, "redis://"+server.Addr()+"/0")
	})
}

// What is reported here and there counts together, in one row.
func TestHealthIsShared(t *testing.T) {
	onRedisKinds(t, func(t *testing.T, url string) {
		a, b := newBoard(t, url, boardOptions{}), newBoard(t, url, boardOptions{})
		a.sync()
		b.sync()
		a.report(search, "1", health.Timeout)
		a.report(weather, "1", health.Error)
		a.sync()
		b.report(search, "2", health.Unreachable) // on top of what it does not know yet
		b.sync()
		if got := b.record(search).Failures; got != 2 {
			t.Errorf("the second node knows of %d failures", got)
		}
		a.report(search, "3", health.Timeout)
		a.sync()
		if a.state(search) == health.Closed {
			t.Errorf("not opened: %+v", a.record(search))
		}
		b.sync()
		if a.record(search) != b.record(search) || a.record(weather) != b.record(weather) || len(b.List()) != 2 {
			t.Errorf("they disagree: %+v, %+v", a.List(), b.List())
		}
		if c := b.Health("x")(search); c.State == health.Closed {
			t.Errorf("the second node is told %+v", c)
		}
		third := newBoard(t, url, boardOptions{}) // comes later
		third.sync()
		if third.record(search) != a.record(search) {
			t.Errorf("the third node knows %+v", third.List())
		}
	})
}

// Others hear by themselves, and soon.
func TestHealthIsHeard(t *testing.T) {
	url := testkit.Redis(t)
	policy := health.Policy{FailThreshold: 1, Cooldown: time.Hour, ProbeLease: time.Hour}
	a, b := newBoard(t, url, boardOptions{policy: policy}), newBoard(t, url, boardOptions{policy: policy})
	a.run()
	b.run()
	a.report(search, "1", health.Timeout)
	begin := time.Now()
	b.await(search, health.Open)
	t.Logf("heard after %v", time.Since(begin).Round(time.Millisecond))
}

// Of 64 calls on two nodes one probes; the next one only when that is reported, on any node.
func TestHealthOneProbeAmongNodes(t *testing.T) {
	onRedisKinds(t, func(t *testing.T, url string) {
		nodes := []board{newBoard(t, url, boardOptions{}), newBoard(t, url, boardOptions{})}
		nodes[0].sync()
		nodes[1].sync()
		nodes[0].report(search, "", health.Timeout, health.Timeout, health.Timeout)
		for round := range 10 {
			for _, n := range nodes {
				n.sync()
				n.sync()
				n.coolDown(search)
			}
			var probes atomic.Int64
			var probe atomic.Value
			var group sync.WaitGroup
			for i := range 64 {
				call := id.Call(fmt.Sprintf("%d-%d", round, i))
				group.Go(func() {
					switch c := nodes[i%2].Claim(testkit.Context(t), search, call); c.State {
					case health.HalfOpen:
						probes.Add(1)
						probe.Store(call)
					case health.Closed:
						t.Error("closed")
					default:
						if c.RetryAfter <= 0 {
							t.Errorf("refused without a time: %+v", c)
						}
					}
				})
			}
			group.Wait()
			if got := probes.Load(); got != 1 {
				t.Fatalf("round %d: %d probes", round, got)
			}
			call := probe.Load().(id.Call)
			for _, n := range nodes { // it may ask again, anywhere
				if c := n.Claim(testkit.Context(t), search, call); c.State != health.HalfOpen {
					t.Errorf("round %d: the probe is told %+v", round, c)
				}
			}
			// The other node reports it.
			nodes[round%2].report(search, call, health.Cancelled)
			nodes[round%2].sync()
		}
		for _, n := range nodes {
			n.sync()
		}
		if c := nodes[1].Claim(testkit.Context(t), search, "last"); c.State != health.HalfOpen {
			t.Fatalf("%+v", c)
		}
		nodes[0].sync()
		nodes[0].report(search, "last", health.Success)
		nodes[0].sync()
		nodes[1].sync()
		if nodes[1].state(search) != health.Closed {
			t.Errorf("%+v", nodes[1].record(search))
		}
	})
}

// Many reports at once on several nodes: none is lost, none counts twice.
func TestHealthCountsEachReportOnce(t *testing.T) {
	url := testkit.Redis(t)
	policy := health.Policy{FailThreshold: 1_000_000, Cooldown: time.Hour, ProbeLease: time.Hour}
	var nodes []board
	var group sync.WaitGroup
	for range 4 {
		n := newBoard(t, url, boardOptions{policy: policy})
		n.sync()
		n.run()
		nodes = append(nodes, n)
	}
	const each = 500
	for _, n := range nodes {
		group.Go(func() {
			for range each {
				n.report(search, "", health.Timeout)
				time.Sleep(200 * time.Microsecond) // so that it takes several exchanges
			}
		})
	}
	group.Wait()
	for i, n := range nodes {
		await(t, fmt.Sprintf("node %d knows of all", i), func() bool { return n.record(search).Failures >= 4*each })
		if got := n.record(search).Failures; got != 4*each {
			t.Errorf("node %d knows of %d failures, want %d", i, got, 4*each)
		}
	}
	var conflicts uint64
	for _, n := range nodes {
		conflicts += n.Stats().Exchanges
	}
	t.Logf("%d exchanges for %d reports", conflicts, 4*each)
}

// A node whose clock is wrong, and jumps, decides as the others do.
func TestHealthClocksOfNodesDoNotMatter(t *testing.T) {
	url := testkit.Redis(t)
	policy := health.Policy{FailThreshold: 1, Cooldown: time.Minute, ProbeLease: time.Hour}
	right := newBoard(t, url, boardOptions{policy: policy})
	right.sync()
	right.report(search, "", health.Timeout)
	right.sync()
	for _, wrong := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		var skew atomic.Int64
		skew.Store(int64(wrong))
		skewed := newBoard(t, url, boardOptions{policy: policy, now: func() time.Time { return time.Now().Round(0).Add(time.Duration(skew.Load())) }})
		// What it dates before it ever heard of the clock of Redis is dated again.
		skewed.report(weather, "", health.Timeout)
		check := func(when string) {
			t.Helper()
			for _, s := range []health.Subject{search, weather} {
				if c := skewed.Health("x")(s); c.State != health.Open || c.RetryAfter > 73*time.Second || c.RetryAfter < 10*time.Second {
					t.Errorf("skewed by %v, %s: %v: %+v", wrong, when, s, c)
				}
			}
			right.sync()
			if c := right.Health("x")(weather); c.State != health.Open || c.RetryAfter > 73*time.Second {
				t.Errorf("skewed by %v, %s: the other: %+v", wrong, when, c)
			}
		}
		skewed.sync()
		check("at first")
		skew.Store(int64(-wrong)) // it jumps
		skewed.sync()
		check("when it jumped")
		skewed.report(search, "", health.Timeout)
		skewed.sync()
		check("after a report")
	}
}
