package redisstore

import (
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestLedgerFixedWindowSlides(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitCalls, 10, fixed(time.Minute))
		if d := s.consume("a", 6, rule); !d.Admitted || d.States[0].Remaining != 4 || !d.States[0].Reset.Equal(s.now.Add(61*time.Second)) {
			t.Fatalf("%+v", d)
		}
		s.advance(30 * time.Second)
		if !s.consume("b", 4, rule).Admitted {
			t.Fatal("denied within the limit")
		}
		d := s.consume("c", 1, rule)
		if d.Admitted || len(d.Denied) != 1 || d.Denied[0] != "r" || d.States[0].RetryAfter != 31*time.Second || d.States[0].Used != 10 {
			t.Fatalf("%+v", d)
		}
		if d := s.consume("c", 7, rule); d.Admitted || d.States[0].RetryAfter != 61*time.Second {
			t.Fatalf("%+v", d)
		}
		if d := s.consume("c", 11, rule); d.Admitted || d.States[0].RetryAfter >= 0 {
			t.Fatalf("%+v", d)
		}
		s.advance(31*time.Second - time.Millisecond)
		s.want(rule, 10, 0)
		s.advance(time.Millisecond)
		s.want(rule, 4, 0)
		if !s.consume("c", 6, rule).Admitted || s.consume("d", 1, rule).Admitted {
			t.Error("what came back is not what was used")
		}
		s.advance(time.Hour)
		s.want(rule, 0, 0)
	})
}

// No stretch of a window's length sees more than the limit, whatever is asked when.
func TestLedgerFixedWindowNeverOver(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitCalls, 7, fixed(time.Minute))
		var admitted []time.Time
		for i := range 400 {
			s.advance(time.Duration(i*i%3001) * time.Millisecond)
			if s.consume(numbered("o", i), 1, rule).Admitted {
				admitted = append(admitted, s.now)
			}
		}
		for i := 7; i < len(admitted); i++ {
			if d := admitted[i].Sub(admitted[i-7]); d < time.Minute {
				t.Fatalf("8 calls in %v", d)
			}
		}
		if len(admitted) < 7*8 {
			t.Errorf("only %d were admitted", len(admitted))
		}
	})
}

func TestLedgerCalendar(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		zone, err := time.LoadLocation("Asia/Shanghai")
		if err != nil {
			t.Fatal(err)
		}
		year, month, day := s.now.In(zone).Date()
		midnight := time.Date(year, month, day+1, 0, 0, 0, 0, zone)
		rule := limited("r", quota.UnitTokens, 100, daily("Asia/Shanghai"))
		s.set(midnight.Add(-time.Millisecond)) // further from this node's clock than the periods that it passes
		if d := s.consume("a", 9, rule); !d.Admitted || !d.States[0].Reset.Equal(midnight) {
			t.Fatalf("%+v", d)
		}
		if d := s.consume("b", 2, rule); d.Admitted || d.States[0].RetryAfter != time.Millisecond {
			t.Fatalf("%+v", d)
		}
		s.advance(time.Millisecond)
		if d := s.consume("b", 2, rule); !d.Admitted || d.States[0].Used != 20 || !d.States[0].Reset.Equal(midnight.AddDate(0, 0, 1)) {
			t.Fatalf("%+v", d)
		}
		// What is held stays held across the end, and is charged to the day on which it is committed.
		s.reserve("c", 3, 48*time.Hour, rule)
		s.advance(25 * time.Hour)
		s.want(rule, 0, 30)
		s.commit("c", nil)
		s.want(rule, 30, 0)
	})
}

func TestLedgerTokenBucket(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitCalls, 10, bucketOf(0.7))
		for i := range 10 {
			if !s.consume(numbered("a", i), 1, rule).Admitted {
				t.Fatalf("call %d of a full bucket was denied", i)
			}
		}
		d := s.consume("b", 3, rule)
		if d.Admitted || d.States[0].RetryAfter != 4286*time.Millisecond { // 3 / 0.7
			t.Fatalf("%+v", d)
		}
		s.advance(4285 * time.Millisecond)
		if s.consume("b", 3, rule).Admitted {
			t.Fatal("admitted too soon")
		}
		s.advance(time.Millisecond)
		if !s.consume("b", 3, rule).Admitted {
			t.Fatal("denied after the time to wait")
		}
		// Often asked, it refills as fast.
		admitted := 0
		for i := range 1000 {
			s.advance(100 * time.Millisecond)
			if s.consume(numbered("c", i), 1, rule).Admitted {
				admitted++
			}
		}
		if admitted < 69 || admitted > 70 {
			t.Errorf("%d admitted in 100 s", admitted)
		}
		s.advance(time.Hour)
		s.want(rule, 0, 0)
	})
}

func TestLedgerCallsAtATime(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitConcurrentCalls, 2, quota.Window{})
		if d := s.reserve("a", 1, time.Minute, rule); !d.Admitted || !d.Expire.Equal(s.now.Add(time.Minute)) {
			t.Fatalf("%+v", d)
		}
		s.advance(time.Second)
		s.reserve("b", 1, time.Minute, rule)
		if d := s.reserve("c", 1, time.Minute, rule); d.Admitted || d.States[0].RetryAfter != 59*time.Second || d.States[0].Held != 2 {
			t.Fatalf("%+v", d)
		}
		if s.consume("d", 1, rule).Admitted {
			t.Fatal("no place is free")
		}
		s.commit("b", nil)
		s.want(rule, 0, 1)
		if !s.consume("d", 1, rule).Admitted {
			t.Fatal("a place is free")
		}
		s.want(rule, 0, 1)
		s.advance(59 * time.Second)
		s.want(rule, 0, 0)
		s.commit("a", nil) // its place went back already
		s.want(rule, 0, 0)
	})
}

func TestLedgerSettles(t *testing.T) {
	windows := map[string]quota.Window{"fixed": fixed(24 * time.Hour), "daily": daily(""), "bucket": bucketOf(1e-6)}
	onAll(t, func(t *testing.T, s *suite) {
		s.advance(26*time.Hour - s.now.Sub(s.now.Truncate(24*time.Hour))) // early in a day
		for name, window := range windows {
			rule := limited(name, quota.UnitTokens, 100, window)
			cost := func(n int64) *int64 { return &n }
			s.reserve(name+"1", 5, time.Minute, rule)
			s.want(rule, 0, 50)
			s.commit(name+"1", cost(30))
			s.want(rule, 30, 0)
			s.reserve(name+"2", 5, time.Minute, rule)
			s.release(name + "2")
			s.want(rule, 30, 0)
			s.reserve(name+"3", 5, time.Minute, rule)
			if d := s.commit(name+"3", cost(90)); d.States[0].Used != 120 || d.States[0].Remaining != 0 {
				t.Errorf("%s: debt: %+v", name, d)
			}
			if s.consume(name+"4", 1, rule).Admitted {
				t.Errorf("%s: admitted in debt", name)
			}
			if state, err := s.Reset(testkit.Context(t), "u", rule); err != nil || state.Used != 0 {
				t.Errorf("%s: reset: %+v, %v", name, state, err)
			}
			s.reserve(name+"5", 5, time.Minute, rule)
			s.advance(time.Minute)
			s.want(rule, 0, 0) // given back
			s.commit(name+"5", cost(10))
			s.want(rule, 10, 0)
			kept := charged(rule)
			s.reserve(name+"6", 5, time.Minute, kept)
			s.reserve(name+"7", 1, time.Minute, kept)
			s.reserve(name+"8", 1, time.Minute, kept)
			s.advance(2 * time.Minute)
			s.want(kept, 80, 0) // charged
			s.commit(name+"6", cost(20))
			s.want(kept, 50, 0)
			s.release(name + "7")
			s.want(kept, 40, 0)
			s.commit(name+"8", cost(12))
			s.want(kept, 42, 0)
		}
	})
}

func TestLedgerChangesOfRules(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
		s.consume("a", 6, rule)
		s.reserve("b", 2, time.Minute, rule)
		lower := limited("r", quota.UnitCalls, 7, fixed(time.Hour))
		if d := s.consume("c", 1, lower); d.Admitted || d.States[0].Used != 6 || d.States[0].Remaining != 0 {
			t.Errorf("a lower limit: %+v", d)
		}
		other := limited("r", quota.UnitCalls, 7, fixed(2*time.Hour))
		if d := s.consume("c", 1, other); !d.Admitted || d.States[0].Used != 1 {
			t.Errorf("another window: %+v", d)
		}
		s.commit("b", nil) // counts where it was reserved
		s.want(rule, 8, 0)
		s.want(other, 1, 0)
	})
}

func TestLedgerAllOrNothing(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		a := limited("a", quota.UnitCalls, 10, fixed(time.Hour))
		b := limited("b", quota.UnitTokens, 15, daily(""))
		c := limited("c", quota.UnitCalls, 10, bucketOf(0.001))
		shadow := limited("d", quota.UnitCalls, 0, fixed(time.Hour))
		shadow.Shadow = true
		if d := s.consume("1", 1, a, b, c, shadow); !d.Admitted || d.States[3].Used != 1 {
			t.Fatalf("%+v", d)
		}
		d := s.consume("2", 1, a, b, c, shadow)
		if d.Admitted || len(d.Denied) != 1 || d.Denied[0] != "b" || d.States[0].RetryAfter != 0 {
			t.Fatalf("%+v", d)
		}
		if d := s.reserve("3", 1, time.Minute, a, b, c, shadow); d.Admitted {
			t.Fatalf("%+v", d)
		}
		for rule, used := range map[*quota.Limited]int64{&a: 1, &b: 10, &c: 1, &shadow: 1} {
			s.want(*rule, used, 0)
		}
	})
}

func TestLedgerRepeats(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		ctx := testkit.Context(t)
		rule := limited("r", quota.UnitTokens, 100, fixed(time.Hour))
		repeat := func(what string, d quota.Decision) {
			t.Helper()
			if !d.Repeated || !d.Admitted {
				t.Errorf("%s: %+v", what, d)
			}
		}
		s.consume("a", 5, rule)
		repeat("consume", s.consume("a", 5, rule))
		s.want(rule, 50, 0)
		_, err := s.Take(ctx, operation("a", 6, 0, rule))
		wantFault(t, err, fault.ReasonRequestIDReused)
		_, err = s.Take(ctx, operation("a", 5, time.Minute, rule))
		wantFault(t, err, fault.ReasonRequestIDReused)
		_, err = s.Commit(ctx, "a", nil)
		wantFault(t, err, fault.ReasonNotFound)

		s.reserve("b", 5, time.Minute, rule)
		repeat("reserve", s.reserve("b", 5, time.Minute, rule))
		s.want(rule, 50, 50)
		// A denial is decided again.
		if d := s.consume("c", 1, rule); d.Admitted || d.Repeated {
			t.Errorf("%+v", d)
		}
		other := operation("b", 5, time.Minute, rule)
		other.User = "v"
		_, err = s.Take(ctx, other)
		wantFault(t, err, fault.ReasonRequestIDReused)
		n := int64(20)
		s.commit("b", &n)
		repeat("commit", s.commit("b", &n))
		repeat("reserve after commit", s.reserve("b", 5, time.Minute, rule))
		s.want(rule, 70, 0)
		_, err = s.Commit(ctx, "b", nil)
		wantFault(t, err, fault.ReasonRequestIDReused)
		_, err = s.Release(ctx, "b")
		wantFault(t, err, fault.ReasonOperationSettled)
		if d := s.consume("c", 1, rule); !d.Admitted || d.Repeated {
			t.Errorf("%+v", d)
		}

		s.reserve("d", 1, time.Minute, rule)
		s.release("d")
		repeat("release", s.release("d"))
		repeat("reserve after release", s.reserve("d", 1, time.Minute, rule))
		_, err = s.Commit(ctx, "d", nil)
		wantFault(t, err, fault.ReasonOperationSettled)
		s.want(rule, 80, 0)
		_, err = s.Release(ctx, "e")
		wantFault(t, err, fault.ReasonNotFound)
	})
}

func TestLedgerKeysExpire(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		ctx := testkit.Context(t)
		rules := []quota.Limited{limited("a", quota.UnitCalls, 10, fixed(time.Hour)), limited("b", quota.UnitCalls, 10, daily("")),
			limited("c", quota.UnitCalls, 10, bucketOf(1)), limited("d", quota.UnitConcurrentCalls, 10, quota.Window{})}
		s.consume("1", 1, rules...)
		s.reserve("2", 1, time.Minute, rules...)
		s.reserve("3", 11, time.Minute, rules...)
		keys, want := s.keys("toolgrant:*"), 4+4+2+1 // counters, leases, operations, users of reservations
		if s.pipe == nil {
			want++ // a Cluster writes down a user before anything is taken
		}
		if len(keys) != want {
			t.Errorf("%d keys, want %d: %v", len(keys), want, keys)
		}
		for _, key := range keys {
			if ttl, err := s.client.PTTL(ctx, key).Result(); err != nil || ttl <= 0 {
				t.Errorf("%s: %v, %v", key, ttl, err)
			}
		}
	})
}

// One script settles a thousand abandoned reservations at most; the others are held until the next.
func TestLedgerSettlesManyAbandoned(t *testing.T) {
	onServers(t, func(t *testing.T, s *suite) {
		rule := charged(limited("r", quota.UnitCalls, 10_000, fixed(time.Hour)))
		for i := range 1200 {
			s.reserve(numbered("a", i), 1, time.Second, rule)
		}
		s.advance(time.Minute)
		s.want(rule, 1000, 200)
		s.consume("b", 1, rule)
		s.want(rule, 1201, 0)
		s.consume("c", 1, rule)
		s.want(rule, 1202, 0)
	})
}

// The clock of a Redis that took over may be behind: nothing that was used comes back early.
func TestLedgerClockGoesBack(t *testing.T) {
	onAll(t, func(t *testing.T, s *suite) {
		s.advance(12 * time.Hour)
		rules := []quota.Limited{limited("a", quota.UnitCalls, 10, fixed(time.Minute)), limited("b", quota.UnitCalls, 10, daily("")),
			limited("c", quota.UnitCalls, 10, bucketOf(0.1))}
		s.consume("1", 5, rules...)
		s.advance(-25 * time.Hour)
		if d := s.consume("2", 6, rules...); d.Admitted || len(d.Denied) != 3 {
			t.Errorf("%+v", d)
		}
		if !s.consume("2", 5, rules...).Admitted {
			t.Error("denied within the limits")
		}
		s.advance(27 * time.Hour)
		s.want(rules[0], 0, 0)
		s.want(rules[2], 0, 0)
	})
}
