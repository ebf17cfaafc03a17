package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// While a slot moves, Redis lets in scripts all of whose keys are there, and then refuses them what they have just
// deleted. So they don't begin: what is asked again is not charged twice.
func TestLedgerInASlotThatMoves(t *testing.T) {
	cluster := testkit.RedisCluster(t)
	l := NewLedger(openFor(t, cluster.URL), 1, 100*time.Millisecond)
	ctx := testkit.Context(t)
	calls := limited("a", quota.UnitCalls, 10, fixed(time.Hour))
	place := limited("b", quota.UnitConcurrentCalls, 10, quota.Window{})
	slot := slotOf(t, cluster, "u")
	to := slot.another(0)
	commit := func(name string) error { _, err := l.Commit(ctx, name, nil); return err }
	for used, moved := range []bool{false, true} {
		name := fmt.Sprint("moved: ", moved)
		must(t)(l.Take(ctx, operation(name, 1, time.Hour, calls, place)))
		slot.begin(to)
		if moved {
			for slot.moveKeys(to, 1) {
			}
		}
		wantFault(t, commit(name), fault.ReasonCountersUnavailable)
		if moved {
			slot.end(to)
		} else {
			slot.abandon(to)
		}
		eventually(ctx, t, func() error { return commit(name) })
		states, err := l.States(ctx, "u", []quota.Limited{calls, place})
		if err != nil || states[0].Used != int64(used)+1 || states[0].Held != 0 || states[1].Held != 0 {
			t.Errorf("%s: %+v, %v", name, states, err)
		}
	}
}

// Slots move from node to node while callers consume and settle: they wait, and are admitted exactly as often as the
// limit says.
func TestLedgerWhileSlotsMove(t *testing.T) {
	const callers, each, limit, moves = 8, 60, 300, 6
	cluster := testkit.RedisCluster(t)
	l := NewLedger(openFor(t, cluster.URL), 1, 5*time.Second)
	ctx := testkit.Context(t)
	rule := limited("r", quota.UnitCalls, limit, fixed(time.Hour))
	place := limited("p", quota.UnitConcurrentCalls, callers, quota.Window{})
	slot := slotOf(t, cluster, "u")
	var asked, admitted, released atomic.Int64
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				name := fmt.Sprint(caller, "-", i)
				var d quota.Decision
				if i%2 == 0 {
					eventually(ctx, t, func() (err error) { d, err = l.Take(ctx, operation(name, 1, 0, rule, place)); return err })
				} else {
					eventually(ctx, t, func() (err error) { d, err = l.Take(ctx, operation(name, 1, time.Hour, rule, place)); return err })
				}
				asked.Add(1)
				if !d.Admitted {
					continue
				}
				admitted.Add(1)
				switch i % 4 {
				case 1:
					eventually(ctx, t, func() error { _, err := l.Commit(ctx, name, nil); return err })
				case 3:
					eventually(ctx, t, func() error { _, err := l.Release(ctx, name); return err })
					released.Add(1)
				}
			}
		})
	}
	for n := range moves {
		for asked.Load() < int64(n*callers*each/moves) { // spread over the load
			time.Sleep(time.Millisecond)
		}
		to := slot.another(n)
		slot.begin(to)
		for slot.moveKeys(to, 10) {
		}
		slot.end(to)
	}
	group.Wait()
	states, err := l.States(ctx, "u", []quota.Limited{rule, place})
	if err != nil || states[0].Used != limit || states[0].Held != 0 || states[1].Held != 0 || admitted.Load()-released.Load() != limit {
		t.Errorf("%d admitted, %d released: %+v, %v", admitted.Load(), released.Load(), states, err)
	}
}
