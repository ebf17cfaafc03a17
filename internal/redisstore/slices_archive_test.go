package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// startSlices starts nodes with an archive.
func startSlices(t *testing.T, n int, archive quota.Archive, open func() redis.UniversalClient) []*Slices {
	nodes := make([]*Slices, n)
	for i, ledger := range startNodes(t, n, archive, func() *Ledger { return NewLedger(open(), 1, 20*time.Second) }) {
		nodes[i] = NewSlices(ledger)
		t.Cleanup(func() {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			nodes[i].Close(over) // dies, if the test did not close it
		})
	}
	return nodes
}

// spendByNodes spends one unit at a time, with many callers of each node, until so many were admitted, or all callers
// are denied. It returns how many were.
func spendByNodes(t *testing.T, nodes []*Slices, rules []quota.Limited, until int64) int64 {
	t.Helper()
	const callers = 32
	var asked, admitted atomic.Int64
	var group sync.WaitGroup
	for _, node := range nodes {
		for range callers {
			group.Go(func() {
				for asked.Add(1) <= until {
					var d quota.Decision
					eventually(testkit.Context(t), t, func() (err error) {
						d, err = node.Spend(testkit.Context(t), rules, costOf(1))
						return err
					})
					if !d.Admitted {
						return
					}
					admitted.Add(1)
				}
			})
		}
	}
	group.Wait()
	return admitted.Load()
}

// awaitSystem waits until a SYSTEM rule stands so in Redis and in the archive, and nothing of it is held.
func awaitSystem(t *testing.T, l *Ledger, archive quota.Archive, rule quota.Limited, used int64) {
	t.Helper()
	eventually(testkit.Context(t), t, func() error {
		if got := inRedis(t, l, rule); got.Used != used || got.Held != 0 {
			return fmt.Errorf("%+v, want %d used", got, used)
		}
		counters, err := archive.Kept(testkit.Context(t), systemSubject(rule.ID).archived())
		if err != nil || len(counters) != 1 || afterWord(counters[0].Content, "u") != fmt.Sprint(used) {
			return fmt.Errorf("in the archive: %+v, %w; want %d used", counters, err, used)
		}
		return nil
	})
}

var lastingSystem = []quota.Limited{system(limited("day", quota.UnitTokens, 100_001, daily("Asia/Shanghai"))),
	system(limited("hour", quota.UnitCalls, 10_000, fixed(time.Hour)))}

// spendAcross spends half of what there is on several nodes, disturbs Redis, and has them spend the rest, all at once:
// in the end nearly the limit was admitted, and never more: each counter was restored once. (How near is for other
// tests; a counter that was restored twice would miss half of it.)
func spendAcross(t *testing.T, archive quota.Archive, nodes []*Slices, disturb func()) {
	t.Helper()
	const limit = 10_000
	before := spendByNodes(t, nodes, lastingSystem, limit/2)
	for i, rule := range lastingSystem {
		awaitSystem(t, nodes[i].ledger, archive, rule, before*costOf(1).In(rule.Unit))
	}
	disturb()
	admitted := before + spendByNodes(t, nodes, lastingSystem, 2*limit)
	t.Logf("%d of %d were admitted, %d of them before", admitted, limit, before)
	if before != limit/2 || admitted > limit || admitted < limit-limit/20 {
		t.Errorf("%d of %d were admitted, %d of them before", admitted, limit, before)
	}
	for _, node := range nodes {
		node.Close(testkit.Context(t))
	}
	for i, rule := range lastingSystem {
		awaitSystem(t, nodes[i].ledger, archive, rule, admitted*costOf(1).In(rule.Unit))
	}
}

// Redis loses everything, and all nodes restore the counters at the same time.
func TestSlicesAdmitTheLimitThoughRedisForgets(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*testing.T, *testkit.PrivateRedis){
		"flushed": func(t *testing.T, server *testkit.PrivateRedis) {
			if err := openFor(t, server.URL).FlushAll(testkit.Context(t)).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"killed": func(_ *testing.T, server *testkit.PrivateRedis) { server.Kill(); server.Start() },
	} {
		t.Run(name, func(t *testing.T) {
			server, archive := testkit.RedisServer(t), openArchive(t)
			nodes := startSlices(t, 6, archive, func() redis.UniversalClient { return openFor(t, server.URL) })
			spendAcross(t, archive, nodes, func() { forget(t, server) })
		})
	}
}

// A replica that is behind takes over.
func TestSlicesFailOverToAReplicaThatIsBehind(t *testing.T) {
	t.Parallel()
	pair, archive := newPair(t), openArchive(t)
	nodes := startSlices(t, 6, archive, func() redis.UniversalClient { return pair.open() })
	nodes[0].must(t, 0, lastingSystem...)
	pair.part(nodes[0].ledger.prefix + "{s:hour}:c:hour:cs3600000")
	spendAcross(t, archive, nodes, pair.failOver)
}

// What a slice spent that is still alive when a replica takes over is charged, once where neither the replica nor the
// archive had heard of it, and twice where only the archive had: never not at all.
func TestSlicesLiveThroughAFailover(t *testing.T) {
	t.Parallel()
	pair, archive := newPair(t), openArchive(t)
	s := startSlices(t, 1, archive, func() redis.UniversalClient { return pair.open() })[0]
	rule := lastingSystem[1]
	spent := int64(0)
	spend := func() { // as long as it is spent, it is not given back
		if d, err := s.Spend(testkit.Context(t), []quota.Limited{rule}, costOf(1)); err == nil && d.Admitted {
			spent++
		}
	}
	charged := func(at *testkit.PrivateRedis, units int64) {
		t.Helper()
		l := NewLedger(openFor(t, at.URL), 1, 20*time.Second)
		await(t, "Redis hears what was spent", func() bool { spend(); return inRedis(t, l, rule).Used >= units })
	}
	for range 100 {
		spend()
	}
	charged(pair.master, 100)
	heard := spent
	pair.part(s.ledger.prefix + "{s:hour}:c:hour:cs3600000")
	for range 100 {
		spend()
	}
	charged(pair.master, heard+100)
	unheard := spent
	pair.failOver()
	for range 100 {
		spend()
	}
	charged(pair.replica, unheard)
	await(t, "the slice goes back", func() bool { return s.find(&rule) == nil })
	got := inRedis(t, s.ledger, rule)
	t.Logf("%d were spent, %d of them before the replica was cut off and %d after: %d are charged", spent, heard, unheard-heard, got.Used)
	if got.Used < spent || got.Used > spent+unheard || got.Held != 0 {
		t.Errorf("%d were spent: %+v", spent, got)
	}
}
