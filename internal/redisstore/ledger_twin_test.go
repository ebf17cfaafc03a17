package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// The ledger in memory says the same as the one in Redis, word for word, after any sequence of operations.
func TestLedgersInMemoryAndInRedisAgree(t *testing.T) {
	s := onRedis(t)
	begin := s.now
	rapid.Check(t, func(rt *rapid.T) {
		if err := s.client.FlushDB(testkit.Context(t)).Err(); err != nil {
			t.Fatal(err)
		}
		s.set(begin)
		compareTwins(rt, s)
	})
}

type twins struct {
	s      *suite
	memory *quota.Memory
	rules  []quota.Limited
	made   []made
	number int // of operations
}

type made struct {
	quota.Operation
	at time.Time
}

func compareTwins(t *rapid.T, s *suite) {
	w := &twins{s: s, memory: quota.NewMemory(func() time.Time { return s.now }), rules: modelRules()}
	for i := range w.rules {
		if w.rules[i].Unit == quota.UnitConcurrentCalls {
			continue // which nobody can be charged for
		}
		w.rules[i].OnAbandoned = rapid.SampledFrom([]quota.OnAbandoned{quota.AbandonedGiveBack, quota.AbandonedCharge}).Draw(t, "abandoned")
	}
	ctx := testkit.Context(s.t)
	users := rapid.SampledFrom([]id.User{"u", "v"})
	t.Repeat(map[string]func(*rapid.T){
		"take": func(t *rapid.T) {
			n := rapid.Int64Range(1, 4).Draw(t, "calls")
			w.number++
			o := operation(numbered("o", w.number), n, rapid.SampledFrom([]time.Duration{0, time.Second, 40 * time.Second, time.Hour}).Draw(t, "lease"))
			o.User = users.Draw(t, "user")
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(w.rules)-1), 1, 4, rapid.ID[int]).Draw(t, "rules") {
				o.Rules = append(o.Rules, w.rules[i])
			}
			w.made = append(w.made, made{o, s.now})
			w.take(t, o)
		},
		"repeat": func(t *rapid.T) {
			o := w.pick(t)
			if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
				o.Cost.Calls++
				if o.Lease == 0 { // whoever reserves keeps the name from others for a while, also if he was denied
					o.User = users.Draw(t, "user")
				}
			}
			w.take(t, o)
		},
		"commit": func(t *rapid.T) {
			var tokens *int64
			if n := rapid.Int64Range(-20, 80).Draw(t, "tokens"); n >= 0 {
				tokens = &n
			}
			o := w.pick(t)
			w.same(t, either(s.Commit(ctx, o.ID, tokens)), either(w.memory.Commit(ctx, o.ID, tokens)))
		},
		"release": func(t *rapid.T) {
			o := w.pick(t)
			w.same(t, either(s.Release(ctx, o.ID)), either(w.memory.Release(ctx, o.ID)))
		},
		"reset": func(t *rapid.T) {
			rule := rapid.SampledFrom(w.rules).Draw(t, "rule")
			user := users.Draw(t, "user")
			w.same(t, either(s.Reset(ctx, user, rule)), either(w.memory.Reset(ctx, user, rule)))
		},
		"wait": func(*rapid.T) {
			s.advance(rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second,
				59 * time.Second, 61 * time.Second, 10 * time.Minute, 7 * time.Hour}).Draw(t, "time"))
		},
		"": func(t *rapid.T) {
			for _, user := range []id.User{"u", "v"} {
				w.same(t, either(s.States(ctx, user, w.rules)), either(w.memory.States(ctx, user, w.rules)))
			}
		},
	})
}

// pick draws an operation that neither has forgotten.
func (w *twins) pick(t *rapid.T) quota.Operation {
	w.made = slices.DeleteFunc(w.made, func(m made) bool {
		known := 14 * time.Minute
		if m.Lease > 0 {
			known = 15 * time.Hour
		}
		return w.s.now.Sub(m.at) > known
	})
	if len(w.made) == 0 {
		t.Skip("no operation")
	}
	return rapid.SampledFrom(w.made).Draw(t, "operation").Operation
}

func (w *twins) take(t *rapid.T, o quota.Operation) {
	ctx := testkit.Context(w.s.t)
	w.same(t, either(w.s.Take(ctx, o)), either(w.memory.Take(ctx, o)))
}

// said is an answer as a text.
type said string

func either[T any](answer T, err error) said {
	if f, ok := fault.As(err); ok {
		return said(fmt.Sprintf("%d %s %s", f.Kind, f.Reason, f.Message))
	}
	if err != nil {
		return said(err.Error())
	}
	switch a := any(&answer).(type) {
	case *quota.Decision:
		a.Expire = a.Expire.UTC()
		inUTC(a.States)
	case *[]quota.State:
		inUTC(*a)
	case *quota.State:
		a.Reset = a.Reset.UTC()
	}
	return said(fmt.Sprintf("%+v", answer))
}

func inUTC(states []quota.State) {
	for i := range states {
		states[i].Reset = states[i].Reset.UTC()
	}
}

func (w *twins) same(t *rapid.T, redis, memory said) {
	if redis != memory {
		t.Fatalf("in Redis:  %s\nin memory: %s", redis, memory)
	}
}
