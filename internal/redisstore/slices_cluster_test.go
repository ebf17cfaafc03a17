package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// The slot of a SYSTEM rule moves from node to node of a Cluster while nodes spend slices of it and reserve from it,
// beside a user's rule and another SYSTEM rule, which lie elsewhere: no more is admitted than the limit, and all that was
// is charged once.
func TestSystemRulesInAClusterWhoseSlotsMove(t *testing.T) {
	const callers, each, limit, moves = 6, 60, 3_000, 4
	cluster := testkit.RedisCluster(t)
	ctx := testkit.Context(t)
	moving, staying := system(limited("r", quota.UnitCalls, limit, fixed(time.Hour))), system(limited("s", quota.UnitTokens, 1e6, daily("")))
	mine := limited("m", quota.UnitCalls, 1e6, fixed(time.Hour))
	nodes := []*Slices{slicesWithin(t, cluster.URL, 5*time.Second), slicesWithin(t, cluster.URL, 5*time.Second)}
	slot := slotOfTag(t, cluster, "{s:r}")
	var asked, spent, committed, held atomic.Int64
	var group sync.WaitGroup
	for n, node := range nodes {
		for caller := range callers {
			group.Go(func() {
				for i := range each {
					asked.Add(1)
					var d quota.Decision
					if i%4 != 0 {
						for range 10 {
							eventually(ctx, t, func() (err error) {
								d, err = node.Spend(ctx, []quota.Limited{moving, staying}, costOf(1))
								return err
							})
							if d.Admitted {
								spent.Add(1)
							}
						}
						continue
					}
					name := fmt.Sprint(n, "-", caller, "-", i)
					eventually(ctx, t, func() (err error) {
						d, err = node.ledger.Take(ctx, operation(name, 3, time.Hour, mine, moving, staying))
						return err
					})
					switch {
					case !d.Admitted:
					case i%8 == 0:
						eventually(ctx, t, func() error { _, err := node.ledger.Commit(ctx, name, nil); return err })
						committed.Add(3)
					default:
						held.Add(3)
					}
				}
			})
		}
	}
	for n := range moves {
		for asked.Load() < int64(n*len(nodes)*callers*each/moves) { // spread over the load
			time.Sleep(time.Millisecond)
		}
		to := slot.another(n)
		slot.begin(to)
		for slot.moveKeys(to, 10) {
		}
		slot.end(to)
	}
	group.Wait()
	for _, node := range nodes {
		node.Close(ctx)
	}
	t.Logf("%d spent, %d committed, %d held", spent.Load(), committed.Load(), held.Load())
	if used := spent.Load() + committed.Load(); used == 0 || committed.Load() == 0 || held.Load() == 0 || used+held.Load() > limit {
		t.Errorf("of %d, %d were spent, %d committed, %d are held", limit, spent.Load(), committed.Load(), held.Load())
	}
	for _, rule := range []quota.Limited{moving, staying} {
		unit := costOf(1).In(rule.Unit)
		if got := inRedis(t, nodes[0].ledger, rule); got.Used != unit*(spent.Load()+committed.Load()) || got.Held != unit*held.Load() {
			t.Errorf("%+v", got)
		}
	}
}

// A primary is killed that has the counter of a SYSTEM rule, while nobody holds any of it: what its replica did not hear
// of is restored, and the rest of the limit is admitted.
func TestSystemRulesInAClusterWhosePrimaryIsKilled(t *testing.T) {
	const limit = 2_000
	cluster, archive := testkit.RedisCluster(t), openArchive(t)
	ctx := testkit.Context(t)
	rule := system(limited("r", quota.UnitCalls, limit, fixed(time.Hour)))
	nodes := startSlices(t, 3, archive, func() redis.UniversalClient { return openFor(t, cluster.URL) })
	before := spendByNodes(t, nodes, []quota.Limited{rule}, limit/2)
	awaitSystem(t, nodes[0].ledger, archive, rule, before)
	cluster.Hasten()
	cluster.Primary("{s:r}").Kill()
	eventually(ctx, t, func() error { // a replica took over
		_, err := nodes[0].States(ctx, []quota.Limited{rule})
		return err
	})
	admitted := before + spendByNodes(t, nodes, []quota.Limited{rule}, 2*limit)
	for _, node := range nodes {
		node.Close(ctx)
	}
	t.Logf("%d of %d were admitted, %d of them before", admitted, limit, before)
	if before != limit/2 || admitted > limit || admitted < limit-limit/20 {
		t.Errorf("%d of %d were admitted, %d of them before", admitted, limit, before)
	}
	awaitSystem(t, nodes[0].ledger, archive, rule, admitted)
}
