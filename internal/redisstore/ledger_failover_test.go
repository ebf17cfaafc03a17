package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// outageBound is far above the seconds that a failover takes, and far below not noticing it.
const outageBound = 30 * time.Second

// A primary ends, or stands still, while callers consume, and its replica takes over. Callers are told that the
// counters are unavailable, until they are again. Only what was admitted before can be lost, and no operation is
// charged twice.
func TestLedgerFailover(t *testing.T) {
	t.Run("killed", func(t *testing.T) { failOver(t, (*testkit.PrivateRedis).Kill) })
	t.Run("paused", func(t *testing.T) { failOver(t, (*testkit.PrivateRedis).Pause) })
}

func failOver(t *testing.T, end func(*testkit.PrivateRedis)) {
	const callers, limit = 8, 2000
	cluster := testkit.RedisCluster(t)
	client := openFor(t, cluster.URL)
	l := NewLedger(client, 1, time.Second)
	ctx := testkit.Context(t)
	rule := limited("r", quota.UnitCalls, limit, fixed(time.Hour))
	cluster.Hasten()
	primary := cluster.Primary("{u:u}")

	var ended atomic.Bool
	var before, after sync.Map // operations admitted: when it may be lost, and when not
	var admitted, failed atomic.Int64
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint(caller, "-", i)
				var d quota.Decision
				var when *sync.Map
				took := eventually(ctx, t, func() (err error) {
					when = &before
					if ended.Load() {
						when = &after
					}
					if d, err = l.Take(ctx, operation(name, 1, 0, rule)); err != nil {
						failed.Add(1)
						wantFault(t, err, fault.ReasonCountersUnavailable)
					}
					return err
				})
				if took > outageBound {
					t.Errorf("unavailable for %v", took)
				}
				if !d.Admitted {
					return
				}
				when.Store(name, true)
				admitted.Add(1)
			}
		})
	}
	await(t, "the load runs", func() bool { return admitted.Load() > limit/4 })
	end(primary)
	ended.Store(true)
	group.Wait()

	var states []quota.State
	eventually(ctx, t, func() (err error) { states, err = l.States(ctx, "u", []quota.Limited{rule}); return err })
	if states[0].Used != limit {
		t.Fatalf("%+v", states)
	}
	known := map[string]bool{}
	for _, key := range userKeys(ctx, t, client, "o:") {
		known[key] = true
	}
	if len(known) != limit {
		t.Errorf("%d operations were charged %d units", len(known), limit)
	}
	lost := 0
	before.Range(func(name, _ any) bool {
		if !known[name.(string)] {
			lost++
		}
		return true
	})
	after.Range(func(name, _ any) bool {
		if !known[name.(string)] {
			t.Errorf("%s was admitted by who took over, and is lost", name)
		}
		return true
	})
	if admitted.Load() != int64(limit+lost) {
		t.Errorf("%d admitted, %d lost", admitted.Load(), lost)
	}
	t.Logf("%d lost, %d calls failed", lost, failed.Load())
}

// What no replica has heard of is lost with the primary: so much more than the limit is admitted, and no more.
func TestLedgerLosesWhatNoReplicaHeard(t *testing.T) {
	cluster := testkit.RedisCluster(t)
	l := NewLedger(openFor(t, cluster.URL), 1, time.Second)
	ctx := testkit.Context(t)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	take := func(name string, n int64) (d quota.Decision) {
		t.Helper()
		eventually(ctx, t, func() (err error) { d, err = l.Take(ctx, operation(name, n, 0, rule)); return err })
		return d
	}
	take("heard", 6)
	primary := cluster.Primary("{u:u}")
	node := openFor(t, primary.URL)
	for _, command := range [][]any{
		{"WAIT", 1, 0},
		{"ACL", "SETUSER", "default", "-psync", "-sync"}, // so that it does not come back
		{"CLIENT", "KILL", "TYPE", "replica"},
	} {
		if err := node.Do(ctx, command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if !take("unheard", 4).Admitted || take("more", 1).Admitted {
		t.Fatal("the limit does not hold")
	}
	cluster.Hasten()
	primary.Kill()
	if d := take("heard", 6); !d.Repeated || d.States[0].Used != 6 {
		t.Errorf("what was heard of: %+v", d)
	}
	if d := take("unheard", 4); !d.Admitted || d.Repeated {
		t.Errorf("what was lost: %+v", d)
	}
	if take("more", 1).Admitted {
		t.Error("the limit does not hold after the failover")
	}
}

// userKeys lists those of user u, without what they begin with.
func userKeys(ctx context.Context, t *testing.T, client redis.UniversalClient, kind string) (names []string) {
	t.Helper()
	prefix := "toolgrant:0000000000000001:{u:u}:" + kind
	node, err := client.(*redis.ClusterClient).MasterForKey(ctx, prefix)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := node.Keys(ctx, prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		names = append(names, key[len(prefix):])
	}
	return names
}
