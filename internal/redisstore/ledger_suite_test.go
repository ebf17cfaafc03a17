package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// suite is a ledger whose clock the test sets. It stands still otherwise.
type suite struct {
	*Ledger
	t     testing.TB
	now   time.Time
	clock func(time.Time)
	slow  bool // it runs scripts in this process, under the race detector
}

// onAll runs a test on a real Redis and on a Cluster, whose scripts are told the time, and on miniredis, which has a clock
// of its own to set. miniredis knows no memory limit, no Cluster that moves slots, and runs one command at a time.
func onAll(t *testing.T, test func(t *testing.T, s *suite)) {
	t.Helper()
	onServers(t, test)
	t.Run("miniredis", func(t *testing.T) { test(t, onMiniredis(t)) })
}

// onServers spares miniredis what takes it long.
func onServers(t *testing.T, test func(t *testing.T, s *suite)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, onRedis(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, onCluster(t)) })
}

func onRedis(t testing.TB) *suite {
	client := openFor(t, testkit.Redis(t))
	s := newSuite(t, client)
	s.scripts = newScripts(strings.NewReplacer(text("moving"), "", readsTheTime, toldTheTime))
	s.clock = func(at time.Time) {
		if err := client.HSet(testkit.Context(t), "clock", "s", at.Unix(), "us", at.Nanosecond()/1000).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.set(s.now)
	return s
}

// Scripts of tests read the time from a key.
const readsTheTime, toldTheTime = "redis.call('TIME')", "redis.call('HMGET', 'clock', 's', 'us')"

func onMiniredis(t testing.TB) *suite {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := newSuite(t, openFor(t, "redis://"+server.Addr()+"/0"))
	s.clock, s.slow = server.SetTime, true
	s.set(s.now)
	server.ClockTTL(true)
	return s
}

func newSuite(t testing.TB, client redis.UniversalClient) *suite {
	// Ahead of the real clock, by which a real Redis lets keys expire; on the hour.
	return &suite{Ledger: NewLedger(client, 1, 20*time.Second), t: t, now: time.Now().Add(48 * time.Hour).UTC().Truncate(time.Hour)}
}

func openFor(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	client, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *suite) set(at time.Time) { s.now = at; s.clock(at) }

func (s *suite) advance(d time.Duration) { s.set(s.now.Add(d)) }

// each does something on every server that has keys.
func (s *suite) each(do func(context.Context, redis.UniversalClient) error) {
	s.t.Helper()
	ctx, err := testkit.Context(s.t), error(nil)
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	} else {
		err = do(ctx, s.client)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// empty deletes all keys.
func (s *suite) empty() {
	s.t.Helper()
	s.each(func(ctx context.Context, server redis.UniversalClient) error { return server.FlushAll(ctx).Err() })
}

func (s *suite) keys(pattern string) (keys []string) {
	s.t.Helper()
	var mu sync.Mutex
	s.each(func(ctx context.Context, server redis.UniversalClient) error {
		some, err := server.Keys(ctx, pattern).Result()
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, some...)
		return err
	})
	return keys
}

// consume takes calls, and tokens ten times as many.
func (s *suite) consume(name string, n int64, rules ...quota.Limited) quota.Decision {
	s.t.Helper()
	return s.mustTake(operation(name, n, 0, rules...))
}

func (s *suite) reserve(name string, n int64, lease time.Duration, rules ...quota.Limited) quota.Decision {
	s.t.Helper()
	return s.mustTake(operation(name, n, lease, rules...))
}

func (s *suite) mustTake(operation quota.Operation) quota.Decision {
	s.t.Helper()
	return must(s.t)(s.Take(testkit.Context(s.t), operation))
}

func (s *suite) commit(name string, tokens *int64) quota.Decision {
	s.t.Helper()
	return must(s.t)(s.Commit(testkit.Context(s.t), name, tokens))
}

func (s *suite) release(name string) quota.Decision {
	s.t.Helper()
	return must(s.t)(s.Release(testkit.Context(s.t), name))
}

func (s *suite) state(rule quota.Limited) quota.State {
	s.t.Helper()
	states, err := s.States(testkit.Context(s.t), "u", []quota.Limited{rule})
	if err != nil {
		s.t.Fatal(err)
	}
	return states[0]
}

// want checks used and held units.
func (s *suite) want(rule quota.Limited, used, held int64) {
	s.t.Helper()
	if got := s.state(rule); got.Used != used || got.Held != held {
		s.t.Errorf("rule %s: used %d, held %d; want %d, %d", rule.ID, got.Used, got.Held, used, held)
	}
}

func must(t testing.TB) func(quota.Decision, error) quota.Decision {
	return func(d quota.Decision, err error) quota.Decision {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func wantFault(t interface {
	Errorf(string, ...any)
	Helper()
}, err error, reason fault.Reason) {
	t.Helper()
	if f, ok := fault.As(err); !ok || f.Reason != reason {
		t.Errorf("got %v, want %s", err, reason)
	}
}

func operation(name string, n int64, lease time.Duration, rules ...quota.Limited) quota.Operation {
	return quota.Operation{ID: name, User: "u", Tool: "t", Rules: rules, Cost: quota.Cost{Calls: n, Tokens: 10 * n}, Lease: lease}
}

func limited(name string, unit quota.Unit, limit int64, window quota.Window) quota.Limited {
	return quota.Limited{Own: limit, Rule: quota.Rule{ID: id.Quota(name), Scope: quota.ScopeUser, Unit: unit, Limit: limit,
		Window: window, OnAbandoned: quota.AbandonedGiveBack}}
}

func charged(rule quota.Limited) quota.Limited {
	rule.OnAbandoned = quota.AbandonedCharge
	return rule
}

func fixed(d time.Duration) quota.Window { return quota.Window{Fixed: d} }

func daily(zone string) quota.Window {
	return quota.Window{Calendar: &quota.Calendar{Period: quota.PeriodDay, Zone: zone}}
}

func bucketOf(refill float64) quota.Window {
	return quota.Window{TokenBucket: &quota.TokenBucket{RefillPerSecond: refill}}
}

func numbered(prefix string, n int) string { return fmt.Sprint(prefix, n) }
