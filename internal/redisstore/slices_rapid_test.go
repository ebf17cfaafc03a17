package redisstore

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func system(rule quota.Limited) quota.Limited {
	rule.Scope = quota.ScopeSystem
	return rule
}

// slicesWorld is some nodes that spend one rule, on a clock that the test sets, over a network that loses requests and
// answers, and delivers requests late.
type slicesWorld struct {
	*rapid.T
	ctx      context.Context
	s        *suite
	rule     quota.Limited
	spent    *modelRule
	nodes    []*renewal
	late     []func()
	count    int
	reserved []string
}

func newSlicesWorld(ctx context.Context, t *rapid.T, s *suite, rule quota.Limited) *slicesWorld {
	w := &slicesWorld{T: t, ctx: ctx, s: s, rule: rule, spent: &modelRule{Limited: rule, empty: new(big.Rat)}, nodes: make([]*renewal, 3)}
	for i := range w.nodes {
		w.begin(i)
	}
	return w
}

// begin replaces a node by another one, which knows nothing of the first.
func (w *slicesWorld) begin(i int) {
	w.count++
	w.nodes[i] = newRenewal(w.s.Ledger, numbered("n", w.count), &w.rule)
}

func (w *slicesWorld) node() *renewal { return w.nodes[w.number()] }

func (w *slicesWorld) number() int { return rapid.IntRange(0, len(w.nodes)-1).Draw(w.T, "node") }

var errLost = errors.New("lost")

// exchange sends a request. What became of it is drawn, if the network may lose something.
func (w *slicesWorld) exchange(n *renewal, loses []string) {
	q := n.slice.ask(w.s.now)
	send := func() (sliceAnswer, error) { return n.ask(w.ctx, &w.rule, q) }
	fate := "answered"
	if loses != nil {
		fate = rapid.SampledFrom(loses).Draw(w.T, "fate")
	}
	switch fate {
	case "answered", "":
		answer, err := send()
		if err != nil {
			w.Fatal(err)
		}
		n.slice.hear(w.s.now, q, answer)
	case "lost answer":
		if _, err := send(); err != nil {
			w.Fatal(err)
		}
		n.slice.fail(w.s.now, errLost)
	case "late":
		w.late = append(w.late, func() { _, _ = send() }) // that a later one came first is an error here
		n.slice.fail(w.s.now, errLost)
	case "lost":
		n.slice.fail(w.s.now, errLost)
	}
}

func (w *slicesWorld) spend(n *renewal, cost int64, loses []string) verdict {
	v := n.slice.spend(w.s.now, cost)
	if v != waits {
		return v
	}
	one := &waiter{cost, make(chan verdict, 1)}
	n.slice.queue = append(n.slice.queue, one)
	for range 5 {
		w.exchange(n, loses)
		select {
		case v := <-one.result:
			return v
		default:
		}
	}
	w.Fatal("asked five times")
	return failed
}

// check compares with what was really spent: that is never more than the limit, and Redis never counts less. It may
// count more: what a dead node held, and what a request that was long on its way would have kept.
func (w *slicesWorld) check() quota.State {
	states, err := w.s.look(w.ctx, w.s.scripts.states, systemSubject(w.rule.ID), []quota.Limited{w.rule})
	if err != nil {
		w.Fatal(err)
	}
	w.spent.settle(w.s.now)
	got, least := states[0], w.spent.used(w.s.now)+w.spent.held()
	if sum := got.Used + got.Held; sum < least || least > w.rule.Own {
		w.Fatalf("%d are spent or reserved of %d; Redis counts %d used, %d held", least, w.rule.Own, got.Used, got.Held)
	}
	return got
}

func systemRules() []quota.Limited {
	return []quota.Limited{
		system(limited("calls", quota.UnitCalls, 40, fixed(time.Minute))),
		system(limited("seconds", quota.UnitCalls, 40, fixed(2*time.Second))),
		system(limited("day", quota.UnitCalls, 40, daily("Europe/Berlin"))),
		system(limited("bucket", quota.UnitCalls, 40, bucketOf(0.5))),
	}
}

// Whatever nodes and the network do, no more is spent than the limit.
func TestSlicesAreNeverOver(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		begin, ctx, rounds := s.now, testkit.Context(t), 0
		rapid.Check(t, func(rt *rapid.T) {
			if rounds++; s.slow && rounds%4 != 0 {
				return
			}
			s.empty()
			s.set(begin)
			w := newSlicesWorld(ctx, rt, s, rapid.SampledFrom(systemRules()).Draw(rt, "rule"))
			loses := []string{"answered", "answered", "answered", "lost answer", "lost", "late"}
			rt.Repeat(map[string]func(*rapid.T){
				"": func(*rapid.T) { w.check() },
				"spend": func(t *rapid.T) {
					cost := rapid.Int64Range(0, 5).Draw(t, "cost")
					for range rapid.IntRange(1, 8).Draw(t, "times") {
						if w.spend(w.node(), cost, loses) == taken {
							w.spent.charge(s.now, cost)
						}
					}
				},
				"spend and undo": func(t *rapid.T) {
					cost, n := rapid.Int64Range(1, 5).Draw(t, "cost"), w.node()
					if w.spend(n, cost, loses) == taken {
						n.slice.undo(cost)
					}
				},
				"renew": func(*rapid.T) {
					if n := w.node(); n.slice.due(s.now) {
						w.exchange(n, loses)
					}
				},
				"late": func(t *rapid.T) {
					if len(w.late) == 0 {
						t.Skip("nothing is on its way")
					}
					i := rapid.IntRange(0, len(w.late)-1).Draw(t, "which")
					w.late[i]()
					w.late = slices.Delete(w.late, i, i+1)
				},
				"die": func(*rapid.T) { w.begin(w.number()) },
				"return": func(*rapid.T) {
					i := w.number()
					w.nodes[i].slice.retired = true
					w.exchange(w.nodes[i], loses)
					w.begin(i)
				},
				"reserve": func(t *rapid.T) {
					w.count++
					o := operation(numbered("o", w.count), rapid.Int64Range(1, 5).Draw(t, "calls"), 20*time.Second, w.rule)
					if must(s.t)(s.Take(ctx, o)).Admitted {
						w.reserved = append(w.reserved, o.ID)
						w.spent.leases = append(w.spent.leases, modelLease{o.ID, o.Cost.Calls, s.now.Add(o.Lease)})
					}
				},
				"commit": func(t *rapid.T) {
					if len(w.spent.leases) == 0 {
						t.Skip("nothing is reserved")
					}
					l := rapid.SampledFrom(w.spent.leases).Draw(t, "reservation")
					if l.end.After(s.now) { // else it is debt
						s.commit(l.operation, nil)
						w.spent.release(l.operation)
						w.spent.charge(s.now, l.units)
					}
				},
				"wait": func(t *rapid.T) {
					s.advance(rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, 600 * time.Millisecond, time.Second,
						7 * time.Second, 59 * time.Second, 7 * time.Hour}).Draw(t, "time"))
				},
			})
		})
	})
}

// What was spent is charged exactly once, whatever answers are lost, and the rest goes back.
func TestSlicesChargeOnce(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, s *suite) {
		begin, ctx, rounds := s.now, testkit.Context(t), 0
		rapid.Check(t, func(rt *rapid.T) {
			if rounds++; s.slow && rounds%4 != 0 {
				return
			}
			s.empty()
			s.set(begin)
			w := newSlicesWorld(ctx, rt, s, system(limited("day", quota.UnitCalls, 10_000, daily(""))))
			loses := []string{"answered", "lost answer", "lost"}
			spent, denied := int64(0), 0
			rt.Repeat(map[string]func(*rapid.T){
				"spend": func(t *rapid.T) {
					cost, n := rapid.Int64Range(1, 90).Draw(t, "cost"), w.node()
					for range rapid.IntRange(1, 6).Draw(t, "times") {
						switch w.spend(n, cost, loses) {
						case taken:
							spent += cost
						case refused:
							denied++
						}
					}
				},
				"spend and undo": func(t *rapid.T) {
					cost, n := rapid.Int64Range(1, 90).Draw(t, "cost"), w.node()
					if w.spend(n, cost, loses) == taken {
						n.slice.undo(cost)
					}
				},
				"wait": func(t *rapid.T) {
					s.advance(time.Duration(rapid.Int64Range(1, 500).Draw(t, "ms")) * time.Millisecond)
					for _, n := range w.nodes {
						w.exchange(n, loses)
						w.exchange(n, nil)
					}
				},
			})
			for _, n := range w.nodes {
				n.slice.retired = true
				w.exchange(n, nil)
				if !n.slice.over(s.now) {
					rt.Errorf("%+v", n.slice)
				}
			}
			if got := w.check(); got.Used != spent || got.Held != 0 {
				rt.Fatalf("%d were spent; %+v", spent, got)
			}
			if denied > 0 && spent < 9000 {
				rt.Errorf("denied when %d were spent", spent)
			}
		})
	})
}
