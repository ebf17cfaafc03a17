package redisstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// wantSystem checks used and held units of a SYSTEM rule.
func (s *suite) wantSystem(rule quota.Limited, used, held int64) {
	s.t.Helper()
	if got := inRedis(s.t, s.Ledger, rule); got.Used != used || got.Held != held {
		s.t.Errorf("rule %s: used %d, held %d; want %d, %d", rule.ID, got.Used, got.Held, used, held)
	}
}

// Reservations take from rules of both scopes, or from none; settling them settles all.
func TestReservationsOfSystemRules(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		a, b := system(limited("a", quota.UnitTokens, 100, fixed(time.Hour))), system(charged(limited("b", quota.UnitCalls, 5, daily(""))))
		mine, places := limited("m", quota.UnitCalls, 4, fixed(time.Minute)), system(limited("p", quota.UnitConcurrentCalls, 9, quota.Window{}))
		rules := []quota.Limited{a, b, mine, places}
		d := s.reserve("one", 3, time.Hour, rules...)
		if !d.Admitted || d.Repeated || !d.Expire.Equal(s.now.Add(time.Hour)) || d.States[0].Held != 30 || d.States[1].Held != 3 || d.States[2].Held != 3 || d.States[3].Held != 3 {
			t.Fatalf("%+v", d)
		}
		if d := s.reserve("one", 3, time.Hour, rules...); !d.Repeated || !d.Expire.Equal(s.now.Add(time.Hour)) || d.States[0].Held != 30 {
			t.Errorf("%+v", d)
		}
		// Denied by the user's rule, and by the second of the SYSTEM rules: nothing is left.
		if d := s.reserve("two", 2, time.Hour, rules...); d.Admitted || len(d.Denied) != 1 || d.Denied[0] != "m" || d.States[0].Held != 30 || d.States[2].RetryAfter <= 0 {
			t.Errorf("%+v", d)
		}
		if d := s.reserve("two", 3, time.Hour, a, b); d.Admitted || d.Denied[0] != "b" || d.States[0].Held != 30 {
			t.Errorf("%+v", d)
		}
		s.wantSystem(a, 0, 30)
		s.wantSystem(b, 0, 3)
		// A denial is not remembered.
		if d := s.reserve("two", 1, time.Hour, rules...); !d.Admitted || d.Repeated {
			t.Errorf("%+v", d)
		}
		tokens := int64(45)
		if d := s.commit("one", &tokens); d.Repeated || d.States[0].Used != 45 || d.States[1].Used != 3 || d.States[2].Used != 3 || d.States[3].Held != 1 {
			t.Errorf("%+v", d)
		}
		if d := s.commit("one", &tokens); !d.Repeated || d.States[0].Used != 45 {
			t.Errorf("%+v", d)
		}
		_, err := s.Release(testkit.Context(t), "one")
		wantFault(t, err, fault.ReasonOperationSettled)
		s.release("two")
		s.wantSystem(a, 45, 0)
		s.wantSystem(b, 3, 0)
		s.wantSystem(places, 0, 0)
		if state, err := s.Reset(testkit.Context(t), "", a); err != nil || state.Used != 0 {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// Who settled the user's part and then died left the rest: it is settled when somebody asks again.
func TestReservationsAreSettledInParts(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		rule, mine := system(limited("a", quota.UnitTokens, 100, fixed(time.Hour))), limited("m", quota.UnitCalls, 4, fixed(time.Hour))
		s.reserve("o", 2, time.Hour, rule, mine)
		ctx := testkit.Context(t)
		half := &reservation{Tokens: 20, Rules: newReservation(operation("o", 2, time.Hour, mine)).Rules}
		must(t)(s.settleParts(ctx, "u", "o", half, "", "C", 20))
		s.want(mine, 2, 0)
		s.wantSystem(rule, 0, 20)
		if d := s.commit("o", nil); !d.Repeated || d.States[0].Used != 20 {
			t.Errorf("%+v", d)
		}
		s.wantSystem(rule, 20, 0)
	})
}

// A node that reserved settles what is written down, also when that is another node's, since Redis lost its own.
func TestReservationsOfAnotherNodeInTheirPlace(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		before, after := limited("before", quota.UnitCalls, 4, fixed(time.Hour)), limited("after", quota.UnitCalls, 4, fixed(time.Hour))
		s.reserve("o", 1, time.Hour, before)
		mine, known := s.own.Peek("o")
		s.empty()
		s.set(s.now)
		s.reserve("o", 3, time.Hour, after)
		s.own.Add("o", mine)
		s.commit("o", nil)
		if !known {
			t.Error("it is not known who reserved")
		}
		s.want(before, 0, 0)
		s.want(after, 3, 0)
	})
}

// An attempt that was lost is joined by the next one, which extends the lease; a denial gives back its own share only.
func TestAttemptsAtAReservation(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		rule, mine := system(limited("a", quota.UnitCalls, 4, fixed(time.Hour))), limited("m", quota.UnitCalls, 4, fixed(time.Hour))
		o := operation("o", 2, time.Minute, rule, mine)
		hold := func(attempt string) quota.Decision {
			call := s.call(s.scripts.hold, systemSubject("a"), "o:o", 1)
			call.argue(fingerprint(o), o.Lease.Milliseconds(), remembered.Milliseconds(), "o", attempt)
			return must(t)(call.take(testkit.Context(t), "o", o.Rules[:1], o.Cost))
		}
		undo := func(attempt string) {
			s.undo(testkit.Context(t), o, partsOf("u", o.Rules)[:1], attempt, make([]quota.State, 2))
		}
		hold("first")
		s.advance(30 * time.Second)
		if d := hold("second"); !d.Admitted || d.States[0].Held != 2 || !d.Expire.Equal(s.now.Add(time.Minute)) {
			t.Errorf("%+v", d)
		}
		s.advance(45 * time.Second)
		undo("first")
		undo("first")
		s.wantSystem(rule, 0, 2)
		undo("second")
		s.wantSystem(rule, 0, 0)
		hold("third")
		s.advance(2 * time.Minute)
		s.wantSystem(rule, 0, 0)
		hold("fourth")
		undo("third")
		s.wantSystem(rule, 0, 2)
		if d := s.mustTake(o); !d.Admitted || d.Repeated {
			t.Errorf("%+v", d)
		}
		s.commit("o", nil)
		s.wantSystem(rule, 2, 0)
		s.want(mine, 2, 0)
	})
}

// Many callers who ask twice at once, and are often denied by the user's rule: each SYSTEM rule holds what is reserved.
func TestReservationsOfSystemRulesAtOnce(t *testing.T) {
	t.Parallel()
	url := testkit.Redis(t)
	s := &suite{Ledger: NewLedger(openFor(t, url), 1, 20*time.Second), t: t, now: time.Now()}
	ctx := testkit.Context(t)
	a, b := system(limited("a", quota.UnitCalls, 60, fixed(time.Hour))), system(limited("b", quota.UnitTokens, 700, bucketOf(0.0001)))
	var group sync.WaitGroup
	for caller := range 32 {
		group.Go(func() {
			for i := range 12 {
				o := operation(fmt.Sprint(caller/2, "-", i), 1, time.Hour, a, b, limited("mine", quota.UnitCalls, 5, fixed(time.Hour)))
				o.User = id.User(numbered("u", caller/2))
				d, err := s.Take(ctx, o)
				if err != nil {
					t.Error(err)
				}
				if d.Admitted && i%3 == 0 {
					must(t)(s.Release(ctx, o.ID))
				}
			}
		})
	}
	group.Wait()
	held := int64(0)
	for caller := range 16 {
		states, err := s.States(ctx, id.User(numbered("u", caller)), []quota.Limited{limited("mine", quota.UnitCalls, 5, fixed(time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		held += states[0].Held
	}
	t.Logf("%d are reserved", held)
	if held > 60 || held < 30 {
		t.Errorf("%d are reserved", held)
	}
	s.wantSystem(a, 0, held)
	s.wantSystem(b, 0, 10*held)
}

// Whatever answers are lost: who repeats is charged once, by the user's rules and the SYSTEM's.
func TestReservationsOfSystemRulesLoseAnswers(t *testing.T) {
	t.Parallel()
	url, lossy := testkit.Redis(t), &loss{every: 23}
	client := openFor(t, url)
	client.AddHook(lossy)
	l := NewLedger(client, 1, 20*time.Second)
	ctx := testkit.Context(t)
	a, b := system(limited("a", quota.UnitTokens, 1e6, fixed(time.Hour))), system(limited("b", quota.UnitConcurrentCalls, 1e6, quota.Window{}))
	rules := []quota.Limited{a, b, limited("mine", quota.UnitCalls, 1e6, daily(""))}
	const each = 60
	for i := range each {
		name := numbered("o", i)
		eventually(ctx, t, func() error {
			d, err := l.Take(ctx, operation(name, 1, time.Hour, rules...))
			if err == nil && !d.Admitted {
				return errors.New("denied")
			}
			return err
		})
		if i%2 == 0 {
			eventually(ctx, t, func() error { _, err := l.Commit(ctx, name, nil); return err })
		} else {
			eventually(ctx, t, func() error { _, err := l.Release(ctx, name); return err })
		}
	}
	s := &suite{Ledger: NewLedger(openFor(t, url), 1, 20*time.Second), t: t}
	s.wantSystem(a, 10*each/2, 0)
	s.wantSystem(b, 0, 0)
	s.want(rules[2], each/2, 0)
	if lossy.lost() < each/10 {
		t.Errorf("only %d answers were lost", lossy.lost())
	}
}
