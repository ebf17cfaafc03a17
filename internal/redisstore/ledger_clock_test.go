package redisstore

import (
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// ofAllKinds is a rule of each kind of window, of which ten calls are allowed, and one of which one place is.
func ofAllKinds() []quota.Limited {
	return []quota.Limited{limited("hour", quota.UnitCalls, 10, fixed(time.Hour)), limited("day", quota.UnitCalls, 10, daily("")),
		limited("bucket", quota.UnitCalls, 10, bucketOf(0.1)), limited("place", quota.UnitConcurrentCalls, 1, quota.Window{})}
}

// onClocks runs a test on each ledger there is, with a clock to move.
func onClocks(t *testing.T, test func(t *testing.T, l quota.Ledger, advance func(time.Duration))) {
	t.Helper()
	onServers(t, func(t *testing.T, s *suite) { // miniredis lets keys expire sooner if its clock goes back and forth
		s.set(s.now.Truncate(24 * time.Hour).Add(12 * time.Hour))
		test(t, s.Ledger, s.advance)
	})
	t.Run("memory", func(t *testing.T) {
		now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		test(t, quota.NewMemory(func() time.Time { return now }), func(by time.Duration) { now = now.Add(by) })
	})
}

// A clock that was far ahead, and is right again, locks nobody out until it comes there again: what was taken meanwhile
// counts as if it had been taken when it went back.
func TestLedgerClockWasAhead(t *testing.T) {
	onClocks(t, func(t *testing.T, l quota.Ledger, advance func(time.Duration)) {
		ctx := testkit.Context(t)
		rules := ofAllKinds()
		take := func(name string, n int64, lease time.Duration, rules ...quota.Limited) quota.Decision {
			t.Helper()
			return must(t)(l.Take(ctx, operation(name, n, lease, rules...)))
		}
		const year = 365 * 24 * time.Hour
		take("before", 5, 0, rules[:3]...)
		advance(year)
		if !take("ahead", 10, 0, rules[:3]...).Admitted || !take("held", 1, time.Hour, rules[3]).Admitted {
			t.Fatal("denied within the limits")
		}
		advance(-year)
		for i, most := range []time.Duration{time.Hour + time.Minute, 12 * time.Hour, 11 * time.Second, 24 * time.Hour} {
			rule := rules[i]
			d := take("after "+string(rule.ID), 1, time.Second, rule)
			if d.Admitted {
				t.Errorf("%s: what was used is forgotten", rule.ID)
				continue
			}
			wait := d.States[0].RetryAfter
			if wait <= 0 || wait > most {
				t.Errorf("%s: to be asked again after %v, want %v at most", rule.ID, wait, most)
			}
			advance(wait)
			if !take("after "+string(rule.ID), 1, time.Second, rule).Admitted {
				t.Errorf("%s: denied after %v still", rule.ID, wait)
			}
			advance(-wait)
		}
	})
}

// A clock that goes back gives nothing back, neither then nor when it is set right.
func TestLedgerClockWasBehind(t *testing.T) {
	onClocks(t, func(t *testing.T, l quota.Ledger, advance func(time.Duration)) {
		ctx := testkit.Context(t)
		rules := ofAllKinds()
		for i, by := range []time.Duration{50 * time.Minute, 20 * time.Hour, 90 * time.Second, 10 * time.Minute} {
			rule := rules[i]
			n, lease := int64(10), time.Duration(0)
			if rule.Unit == quota.UnitConcurrentCalls {
				n, lease = 1, time.Hour
			}
			if !must(t)(l.Take(ctx, operation("first "+string(rule.ID), n, lease, rule))).Admitted {
				t.Fatal("denied within the limit")
			}
			for _, move := range []time.Duration{-by, time.Second, by - time.Second} {
				advance(move)
				if d := must(t)(l.Take(ctx, operation("more "+string(rule.ID), 1, time.Second, rule))); d.Admitted || d.States[0].RetryAfter <= 0 {
					t.Errorf("%s: admitted over the limit, %v later: %+v", rule.ID, move, d)
				}
			}
		}
	})
}
