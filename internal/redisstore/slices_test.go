package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// newSlices is a node's, with time enough for a busy machine.
func newSlices(t testing.TB, url string) *Slices {
	t.Helper()
	return slicesWithin(t, url, 20*time.Second)
}

func slicesWithin(t testing.TB, url string, timeout time.Duration) *Slices {
	t.Helper()
	s := NewSlices(NewLedger(openFor(t, url), 1, timeout))
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(over) // dies, if the test did not close it
	})
	return s
}

// everywhere runs a test on a Redis, on a Cluster, and on that of a server which was given none.
func everywhere(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(t, testkit.Redis(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, testkit.RedisCluster(t).URL) })
	t.Run("miniredis", func(t *testing.T) {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		test(t, "redis://"+server.Addr()+"/0")
	})
}

func costOf(n int64) quota.Cost { return quota.Cost{Calls: n, Tokens: 10 * n} }

func (s *Slices) must(t testing.TB, n int64, rules ...quota.Limited) quota.Decision {
	t.Helper()
	return must(t)(s.Spend(testkit.Context(t), rules, costOf(n)))
}

// inRedis is how a rule stands there.
func inRedis(t testing.TB, l *Ledger, rule quota.Limited) quota.State {
	t.Helper()
	states, err := l.look(testkit.Context(t), l.scripts.states, systemSubject(rule.ID), []quota.Limited{rule})
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

// Nodes that spend as fast as they can are admitted exactly as often as the limit says, or a few times less.
func TestSlicesOfManyNodes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		for name, window := range map[string]quota.Window{"fixed": fixed(time.Hour), "daily": daily("Asia/Shanghai"), "bucket": bucketOf(0.001)} {
			const nodes, callers, limit = 4, 64, 10_000
			rule := system(limited(name, quota.UnitCalls, limit, window))
			var admitted atomic.Int64
			var group sync.WaitGroup
			all := make([]*Slices, nodes)
			for i := range all {
				all[i] = newSlices(t, url)
				for range callers {
					group.Go(func() {
						for {
							d, err := all[i].Spend(testkit.Context(t), []quota.Limited{rule}, costOf(1))
							if err != nil {
								t.Error(err)
								return
							}
							if !d.Admitted {
								return
							}
							admitted.Add(1)
						}
					})
				}
			}
			group.Wait()
			requests := int64(0)
			for _, s := range all {
				r := s.find(&rule)
				if r == nil { // it is idle already
					continue
				}
				r.mu.Lock()
				requests += r.slice.sequence
				r.mu.Unlock()
			}
			for _, s := range all {
				s.Close(testkit.Context(t))
			}
			got := admitted.Load()
			t.Logf("%s: %d of %d admitted, with %d requests", rule.ID, got, limit, requests)
			if got > limit || got < limit-limit/100 {
				t.Errorf("%d of %d were admitted", got, limit)
			}
			if state := inRedis(t, all[0].ledger, rule); state.Used != got || state.Held != 0 {
				t.Errorf("%d were admitted: %+v", got, state)
			}
		}
	})
}

// All or nothing, with every rule's state; what one rule denies is charged nowhere.
func TestSlicesAllOrNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		s := newSlices(t, url)
		wide, narrow := system(limited("a", quota.UnitTokens, 1000, fixed(time.Hour))), system(limited("b", quota.UnitCalls, 3, daily("")))
		shadow := system(limited("c", quota.UnitCalls, 1, fixed(time.Hour)))
		shadow.Shadow = true
		rules := []quota.Limited{wide, narrow, shadow}
		for range 3 {
			if d := s.must(t, 1, rules...); !d.Admitted || len(d.States) != 3 {
				t.Fatalf("%+v", d)
			}
		}
		for range 20 {
			d := s.must(t, 1, rules...)
			if d.Admitted || len(d.Denied) != 1 || d.Denied[0] != "b" || d.States[1].RetryAfter <= 0 || d.States[1].Used != 3 ||
				d.States[0].Used != 30 || d.States[0].RetryAfter != 0 || d.States[2].Used != 3 {
				t.Fatalf("%+v", d)
			}
		}
		if d := s.must(t, 4, rules...); d.Admitted || d.States[1].RetryAfter >= 0 {
			t.Fatalf("%+v", d)
		}
		if d := s.must(t, 2, wide, shadow); !d.Admitted {
			t.Fatalf("%+v", d)
		}
		s.GiveBack([]quota.Limited{wide, shadow}, costOf(2))
		await(t, "this node knows what the shadow rule's counter is", func() bool {
			_, known, err := s.find(&shadow).look(&shadow)
			return known && err == nil
		})
		states, err := s.States(testkit.Context(t), rules)
		if err != nil || states[0].Used != 30 || states[1].Used != 3 || states[1].Remaining != 0 || states[2].Used != 3 {
			t.Fatalf("%+v, %v", states, err)
		}
		s.Close(testkit.Context(t))
		for i, want := range []int64{30, 3, 3} {
			if got := inRedis(t, s.ledger, rules[i]); got.Used != want || got.Held != 0 {
				t.Errorf("%+v, want %d used", got, want)
			}
		}
		_, err = s.Spend(testkit.Context(t), rules, costOf(1))
		wantFault(t, err, fault.ReasonCountersUnavailable)
	})
}

// A slice that nobody needs goes back, and is forgotten.
func TestSlicesGoBackWhenIdle(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		s := newSlices(t, url)
		rule := system(limited("r", quota.UnitCalls, 100_000, fixed(time.Hour)))
		for range 1000 {
			s.must(t, 1, rule)
		}
		begin := time.Now()
		await(t, "the slice goes back", func() bool {
			got := inRedis(t, s.ledger, rule)
			return got.Used == 1000 && got.Held == 0
		})
		t.Logf("it went back after %v", time.Since(begin))
		await(t, "it is forgotten", func() bool {
			s.mu.RLock()
			defer s.mu.RUnlock()
			return len(s.active) == 0
		})
		if d := s.must(t, 1, rule); !d.Admitted || d.States[0].Used != 1001 {
			t.Errorf("%+v", d)
		}
	})
}

// What a node that died had leased is charged when its lease has run out.
func TestSlicesOfADeadNode(t *testing.T) {
	t.Parallel()
	url := testkit.Redis(t)
	dead, alive := newSlices(t, url), newSlices(t, url)
	rule := system(limited("r", quota.UnitCalls, 10_000, fixed(time.Hour)))
	for range 500 {
		dead.must(t, 1, rule)
	}
	dead.stop() // no goroutine of it lives on
	dead.running.Wait()
	held := inRedis(t, alive.ledger, rule)
	var got quota.State
	await(t, "the lease runs out", func() bool { got = inRedis(t, alive.ledger, rule); return got.Held == 0 })
	t.Logf("of 500 spent, %d held: %d lost", held.Held, got.Used-500)
	if got.Used < 500 || got.Used > 3*500 {
		t.Errorf("%+v", got)
	}
	admitted := int64(0)
	for alive.must(t, 1, rule).Admitted {
		admitted++
	}
	if admitted != 10_000-got.Used {
		t.Errorf("%d admitted after %d were charged", admitted, got.Used)
	}
}

// A limit that changes holds at once; a rule that counts something else counts anew, and leaves nothing held.
func TestSlicesOfRulesThatChange(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		s := newSlices(t, url)
		rule := system(limited("r", quota.UnitCalls, 1000, fixed(time.Hour)))
		for range 500 {
			s.must(t, 1, rule)
		}
		lower, higher, other := rule, rule, rule
		lower.Own, higher.Own, other.Window = 400, 600, daily("")
		if d := s.must(t, 1, lower); d.Admitted || d.States[0].Limit != 400 || d.States[0].Used != 500 {
			t.Errorf("%+v", d)
		}
		for range 100 {
			if d := s.must(t, 1, higher); !d.Admitted {
				t.Fatalf("%+v", d)
			}
		}
		if d := s.must(t, 1, higher); d.Admitted {
			t.Errorf("%+v", d)
		}
		if d := s.must(t, 1, other); !d.Admitted || d.States[0].Used != 1 {
			t.Errorf("%+v", d)
		}
		await(t, "the old slice goes back", func() bool {
			got := inRedis(t, s.ledger, higher)
			return got.Used == 600 && got.Held == 0
		})
	})
}

// Calls at a time are reserved, never spent; spending needs a free place, as far as this node knows.
func TestSlicesOfPlaces(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		s := newSlices(t, url)
		rule := system(limited("p", quota.UnitConcurrentCalls, 2, quota.Window{}))
		ctx := testkit.Context(t)
		for _, name := range []string{"a", "b"} {
			if d := s.must(t, 1, rule); !d.Admitted {
				t.Fatalf("%+v", d)
			}
			must(t)(s.ledger.Take(ctx, operation(name, 1, time.Hour, rule)))
		}
		await(t, "no place is free", func() bool { return !s.must(t, 1, rule).Admitted })
		if d := s.must(t, 2, rule); d.Admitted || d.States[0].Held != 2 || d.States[0].RetryAfter <= 0 {
			t.Errorf("%+v", d)
		}
		must(t)(s.ledger.Release(ctx, "a"))
		await(t, "a place is free", func() bool { return s.must(t, 1, rule).Admitted })
		if d := s.must(t, 2, rule); d.Admitted {
			t.Errorf("%+v", d)
		}
	})
}

// A caller who goes leaves nothing taken.
func TestSlicesAndTheCallersContext(t *testing.T) {
	t.Parallel()
	server := testkit.RedisServer(t)
	s := newSlices(t, server.URL)
	rule := system(limited("r", quota.UnitCalls, 10, fixed(time.Hour)))
	s.must(t, 1, rule)
	server.Pause()
	ctx, cancel := context.WithCancel(testkit.Context(t))
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if _, err := s.Spend(ctx, []quota.Limited{rule}, costOf(2)); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	await(t, "all wait", func() bool {
		r := s.find(&rule)
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.slice.queue) == 5
	})
	cancel()
	group.Wait()
	server.Resume()
	s.Close(testkit.Context(t))
	if got := inRedis(t, s.ledger, rule); got.Used != 1 || got.Held != 0 {
		t.Errorf("%+v", got)
	}
}

// While Redis is silent or dead, callers wait once and then fail at once; units that are leased can be spent.
func TestSlicesInAnOutage(t *testing.T) {
	t.Parallel()
	server := testkit.RedisServer(t)
	s := slicesWithin(t, server.URL, 80*time.Millisecond)
	patient := NewLedger(openFor(t, server.URL), 1, 20*time.Second)
	ctx := testkit.Context(t)
	rules := []quota.Limited{system(limited("a", quota.UnitCalls, 1e6, fixed(time.Hour))), system(limited("b", quota.UnitCalls, 1e6, daily("")))}
	spend := func() bool { d, err := s.Spend(ctx, rules, costOf(1)); return err == nil && d.Admitted }
	for how, outage := range map[string][2]func(){"paused": {server.Pause, server.Resume}, "killed": {server.Kill, server.Start}} {
		for range 300 {
			await(t, "spent", spend)
		}
		outage[0]()
		for deadline := time.Now().Add(10 * time.Second); ; {
			_, err := s.Spend(ctx, rules, costOf(1))
			if f, ok := fault.As(err); ok && f.Kind == fault.Unavailable {
				break
			} else if err != nil || time.Now().After(deadline) {
				t.Fatalf("%s: %v", how, err)
			}
		}
		slow, most := 0, time.Duration(0)
		for range 2000 {
			begin := time.Now()
			_, err := s.Spend(ctx, rules, costOf(1))
			wantFault(t, err, fault.ReasonCountersUnavailable)
			d := time.Since(begin)
			if most = max(most, d); d > 20*time.Millisecond {
				slow++
			}
		}
		t.Logf("%s: %d of 2000 waited, at most %v", how, slow, most)
		if slow > 100 {
			t.Errorf("%d callers waited", slow)
		}
		outage[1]()
		await(t, "it goes on", spend)
		await(t, "nothing is held", func() bool { return inRedis(t, patient, rules[0]).Held == 0 })
	}
}

// Redis that forgets all: nodes that live report what it did not hear of, and what they leased is held again.
func TestSlicesWhenRedisForgets(t *testing.T) {
	t.Parallel()
	s := newSlices(t, testkit.Redis(t))
	ctx := testkit.Context(t)
	rule := system(limited("r", quota.UnitCalls, 1000, fixed(time.Hour)))
	for range 100 {
		s.must(t, 1, rule)
	}
	if err := s.ledger.client.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	admitted := int64(0)
	for s.must(t, 1, rule).Admitted {
		admitted++
	}
	s.Close(ctx)
	got := inRedis(t, s.ledger, rule)
	t.Logf("100 were spent before, and %d after; %d are charged", admitted, got.Used)
	if got.Used > 1000 || got.Used < admitted || admitted+100 < 1000 || got.Held != 0 {
		t.Errorf("%+v", got)
	}
}

// What was charged is not charged again when answers are lost.
func TestSlicesLoseAnswers(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		url, lossy := testkit.Redis(t), &loss{every: 3}
		client := openFor(t, url)
		client.AddHook(lossy)
		spendLosing(t, client, url, lossy)
	})
	t.Run("cluster", func(t *testing.T) {
		url, lossy := testkit.RedisCluster(t).URL, &loss{every: 3}
		client := openFor(t, url)
		client.(*redis.ClusterClient).OnNewNode(func(node *redis.Client) { node.AddHook(lossy) })
		spendLosing(t, client, url, lossy)
	})
}

func spendLosing(t *testing.T, client redis.UniversalClient, url string, lossy *loss) {
	s := NewSlices(NewLedger(client, 1, 20*time.Second))
	rule := system(limited("r", quota.UnitCalls, 1e6, fixed(time.Hour)))
	spent := int64(0)
	await(t, "ten answers are lost", func() bool {
		for range 100 {
			if d, err := s.Spend(testkit.Context(t), []quota.Limited{rule}, costOf(1)); err == nil && d.Admitted {
				spent++
			}
		}
		return lossy.lost() >= 10
	})
	s.Close(testkit.Context(t))
	if got := inRedis(t, NewLedger(openFor(t, url), 1, 20*time.Second), rule); got.Used != spent || got.Held != 0 {
		t.Errorf("%d were spent: %+v", spent, got)
	}
}

// Reservations and slices share one counter.
func TestSlicesBesideReservations(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, url string) {
		s := newSlices(t, url)
		ctx := testkit.Context(t)
		rule := system(limited("r", quota.UnitTokens, 1000, fixed(time.Hour)))
		must(t)(s.ledger.Take(ctx, operation("a", 60, time.Hour, rule)))
		spent := int64(0)
		for s.must(t, 1, rule).Admitted {
			spent += 10
		}
		if spent != 400 {
			t.Errorf("%d were spent beside 600", spent)
		}
		if d := must(t)(s.ledger.Take(ctx, operation("b", 1, time.Hour, rule))); d.Admitted {
			t.Errorf("%+v", d)
		}
		must(t)(s.ledger.Release(ctx, "a"))
		await(t, "there are some", func() bool { return s.must(t, 1, rule).Admitted })
		if got := s.must(t, 0, rule).States[0]; got.Used != 410 || got.Remaining != 590 {
			t.Errorf("%+v", got)
		}
	})
}
