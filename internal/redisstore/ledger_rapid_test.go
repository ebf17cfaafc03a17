package redisstore

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// modelRules are some of every kind. What refills has rates that doubles hold exactly.
func modelRules() []quota.Limited {
	shadow := limited("shadow", quota.UnitCalls, 2, fixed(time.Minute))
	shadow.Shadow = true
	return []quota.Limited{
		limited("calls", quota.UnitCalls, 5, fixed(time.Minute)),
		charged(limited("tokens", quota.UnitTokens, 120, fixed(10*time.Minute))),
		limited("day", quota.UnitTokens, 200, daily("Europe/Berlin")),
		charged(limited("days", quota.UnitCalls, 12, daily("Asia/Kathmandu"))),
		limited("bucket", quota.UnitTokens, 90, bucketOf(0.5)),
		charged(limited("buckets", quota.UnitCalls, 6, bucketOf(0.25))),
		limited("places", quota.UnitConcurrentCalls, 3, quota.Window{}),
		shadow,
	}
}

// The ledger agrees with the model after any sequence of operations.
func TestLedgerAgreesWithModel(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		begin, rounds := s.now, 0
		rapid.Check(t, func(rt *rapid.T) {
			if rounds++; s.slow && rounds%3 != 0 {
				return
			}
			s.empty()
			s.set(begin)
			compareWithModel(rt, s)
		})
	})
}

type comparison struct {
	*rapid.T
	s     *suite
	m     *model
	rules []quota.Limited
	count int
}

func compareWithModel(t *rapid.T, s *suite) {
	c := &comparison{T: t, s: s, m: &model{operations: map[string]*modelOperation{}}, rules: modelRules()}
	for _, r := range c.rules {
		c.m.rules = append(c.m.rules, &modelRule{Limited: r, empty: new(big.Rat)})
	}
	t.Repeat(map[string]func(*rapid.T){
		"":        func(*rapid.T) { c.compare() },
		"consume": func(t *rapid.T) { c.take(t, 0) },
		"reserve": func(t *rapid.T) {
			c.take(t, rapid.SampledFrom([]time.Duration{time.Second, 40 * time.Second, time.Hour}).Draw(t, "lease"))
		},
		"commit":  func(t *rapid.T) { c.settle(t, 'C') },
		"release": func(t *rapid.T) { c.settle(t, 'R') },
		"reset": func(t *rapid.T) {
			i := rapid.IntRange(0, len(c.rules)-1).Draw(t, "rule")
			if _, err := s.Reset(testkit.Context(s.t), "u", c.rules[i]); err != nil {
				t.Fatal(err)
			}
			r := c.m.rules[i]
			r.settle(s.now)
			r.spent, r.empty = nil, new(big.Rat)
		},
		"wait": func(t *rapid.T) {
			s.advance(rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second,
				59 * time.Second, 61 * time.Second, 10 * time.Minute, 7 * time.Hour}).Draw(t, "time"))
		},
	})
}

func (c *comparison) compare() {
	states, err := c.s.States(testkit.Context(c.s.t), "u", c.rules)
	if err != nil {
		c.Fatal(err)
	}
	now := c.s.now
	for i, r := range c.m.rules {
		r.settle(now)
		got := states[i]
		if used, held := r.used(now), r.held(); got.Used != used || got.Held != held {
			c.Fatalf("rule %s: used %d, held %d; want %d, %d", r.ID, got.Used, got.Held, used, held)
		}
		if r.Window.TokenBucket == nil && !got.Reset.Equal(r.reset(now)) {
			c.Fatalf("rule %s: used units come back at %v, want %v", r.ID, got.Reset, r.reset(now))
		}
	}
}

func (c *comparison) take(t *rapid.T, lease time.Duration) {
	chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, len(c.rules)-1), 1, 4, rapid.ID[int]).Draw(t, "rules")
	n := rapid.Int64Range(1, 4).Draw(t, "calls")
	c.count++
	o := operation(numbered("o", c.count), n, lease)
	for _, i := range chosen {
		o.Rules = append(o.Rules, c.rules[i])
	}
	got, err := c.s.Take(testkit.Context(c.s.t), o)
	if err != nil {
		t.Fatal(err)
	}
	want := c.m.take(c.s.now, o.ID, chosen, n, lease)
	if got.Admitted != (want == nil) || len(got.Denied) != len(want) {
		t.Fatalf("admitted %v, denied by %v; want %v", got.Admitted, got.Denied, want)
	}
	for k, i := range chosen {
		if retry := got.States[k].RetryAfter; retry > 0 {
			c.waits(t, c.m.rules[i], o.Cost.In(c.rules[i].Unit), retry)
		}
	}
}

// waits checks that units fit when the time is over, and not before.
func (c *comparison) waits(t *rapid.T, r *modelRule, units int64, wait time.Duration) {
	at := func(d time.Duration) bool {
		later := r.clone()
		later.settle(c.s.now.Add(d))
		return later.fits(c.s.now.Add(d), units)
	}
	if !at(wait) {
		t.Fatalf("rule %s still denies after %v", r.ID, wait)
	}
	if at(wait - time.Millisecond) {
		t.Fatalf("rule %s admits before %v", r.ID, wait)
	}
}

func (c *comparison) settle(t *rapid.T, state byte) {
	names := c.m.names("HCR")
	if len(names) == 0 {
		t.Skip("nothing to settle")
	}
	name := rapid.SampledFrom(names).Draw(t, "operation")
	o := c.m.operations[name]
	tokens := rapid.Int64Range(0, 80).Draw(t, "tokens")
	if rapid.Bool().Draw(t, "on another node") {
		c.s.own.Purge()
	}
	var got quota.Decision
	var err error
	if state == 'C' {
		got, err = c.s.Commit(testkit.Context(c.s.t), name, &tokens)
	} else {
		got, err = c.s.Release(testkit.Context(c.s.t), name)
	}
	now := c.s.now
	switch {
	case now.Sub(o.expire) > 20*time.Hour:
		// It may be forgotten, or not yet: miniredis's clock is the test's, that of a real Redis's keys is not.
		if err == nil && !got.Repeated {
			c.m.settle(now, name, state, tokens)
		} else {
			delete(c.m.operations, name)
		}
	case o.state == 'H':
		if err != nil || got.Repeated {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		c.m.settle(now, name, state, tokens)
	case o.state == state && (state == 'R' || o.tokens == tokens):
		if err != nil || !got.Repeated {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
	case o.state == state:
		wantFault(t, err, fault.ReasonRequestIDReused)
	default:
		wantFault(t, err, fault.ReasonOperationSettled)
	}
}
