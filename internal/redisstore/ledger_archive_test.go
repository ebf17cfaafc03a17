package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// openArchive is one that can go away.
func openArchive(t testing.TB) *awayArchive {
	t.Helper()
	store, err := postgres.Open(testkit.Context(t), testkit.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return &awayArchive{Archive: store.QuotaCounters()}
}

type awayArchive struct {
	quota.Archive
	away atomic.Bool
}

var errAway = errors.New("away")

func (a *awayArchive) Keep(ctx context.Context, counters []quota.ArchivedCounter) error {
	if a.away.Load() {
		return errAway
	}
	return a.Archive.Keep(ctx, counters)
}

func (a *awayArchive) Kept(ctx context.Context, subject string) ([]quota.ArchivedCounter, error) {
	if a.away.Load() {
		return nil, errAway
	}
	return a.Archive.Kept(ctx, subject)
}

func (s *suite) archiveIn(a quota.Archive) *suite {
	Archive(a, slog.New(slog.DiscardHandler))(s.Ledger)
	s.t.Cleanup(func() { s.mirrored(); _ = s.Close(context.Background()) })
	return s
}

// mirrored has the archive told what it does not know.
func (s *suite) mirrored() {
	s.t.Helper()
	if err := s.mirror.flush(context.Background()); err != nil {
		s.t.Error(err)
	}
}

// lose empties Redis.
func (s *suite) lose() {
	s.t.Helper()
	s.empty()
	s.set(s.now)
}

var lasting = []quota.Limited{limited("hour", quota.UnitCalls, 100, fixed(time.Hour)), limited("year", quota.UnitTokens, 800, fixed(366*24*time.Hour)),
	limited("day", quota.UnitTokens, 900, daily("Asia/Shanghai")), limited("month", quota.UnitCalls, 300, quota.Window{
		Calendar: &quota.Calendar{Period: quota.PeriodMonth, Zone: "Europe/Berlin"}})}

func TestLedgerRestores(t *testing.T) {
	archive := openArchive(t)
	onAll(t, func(t *testing.T, s *suite) {
		s.archiveIn(archive)
		user := id.User("u of " + t.Name())
		minute, bucket := limited("minute", quota.UnitCalls, 50, fixed(time.Minute)), limited("bucket", quota.UnitCalls, 50, bucketOf(0.01))
		rules := append([]quota.Limited{minute, bucket}, lasting...)
		take := func(name string, n int64, lease time.Duration) quota.Decision {
			o := operation(name, n, lease, rules...)
			o.User = user
			return s.mustTake(o)
		}
		take("a", 3, 0)
		s.advance(2 * time.Minute)
		take("b", 4, 0)
		take("c", 5, time.Hour)
		s.mirrored()
		s.lose()
		states, err := s.States(testkit.Context(t), user, rules)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{0, 0, 7, 70, 70, 7} { // only those over an hour or more, without what is held
			if states[i].Used != want || states[i].Held != 0 {
				t.Errorf("%+v, want %d used", states[i], want)
			}
		}
		if d := take("d", 93, 0); d.Admitted {
			t.Error("admitted over the limits")
		}
		if d := take("d", 10, 0); !d.Admitted || d.States[2].Used != 17 {
			t.Errorf("%+v", d)
		}
		s.advance(time.Hour - time.Minute)
		s.want(quota.Limited{Rule: lasting[0].Rule, Own: 100}, 0, 0) // of another user
		if states, err = s.States(testkit.Context(t), user, lasting); err != nil || states[0].Used != 14 {
			t.Errorf("what came back: %+v, %v", states[0], err)
		}
	})
}

// Counters live through any history and any number of losses as if nothing were ever lost but what was held.
func TestLedgerRestoresWhateverHappened(t *testing.T) {
	archive := openArchive(t)
	s := onRedis(t).archiveIn(archive)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		c := &comparison{T: t, s: s, m: &model{operations: map[string]*modelOperation{}}, count: run * 1000}
		for i, rule := range lasting {
			rule.ID = id.Quota(numbered(string(rule.ID), run)) // counters of its own
			if i%2 == 0 {
				rule.OnAbandoned = quota.AbandonedCharge
			}
			c.rules = append(c.rules, rule)
			c.m.rules = append(c.m.rules, &modelRule{Limited: rule})
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { c.compare() },
			"consume": func(t *rapid.T) { c.take(t, 0) },
			"reserve": func(t *rapid.T) { c.take(t, 40*time.Minute) },
			"commit":  func(t *rapid.T) { c.settle(t, 'C') },
			"release": func(t *rapid.T) { c.settle(t, 'R') },
			"reset": func(t *rapid.T) {
				i := rapid.IntRange(0, len(c.rules)-1).Draw(t, "rule")
				if _, err := s.Reset(testkit.Context(s.t), "u", c.rules[i]); err != nil {
					t.Fatal(err)
				}
				c.m.rules[i].settle(s.now)
				c.m.rules[i].spent = nil
			},
			"wait": func(t *rapid.T) {
				s.advance(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, 30 * time.Minute, 7 * time.Hour}).Draw(t, "time"))
			},
			"lose": func(t *rapid.T) {
				c.compare() // reading does not write down what was abandoned; taking does
				if _, err := s.Take(testkit.Context(s.t), operation(numbered("w", c.count), 0, 0, c.rules...)); err != nil {
					t.Fatal(err)
				}
				c.count++
				s.mirrored()
				s.lose()
				for _, r := range c.m.rules {
					r.settle(s.now)
					r.leases = nil
				}
				c.m.operations = map[string]*modelOperation{}
			},
		})
	})
}

// nodes consume one unit at a time, each of them with many callers, until they are denied; between is called when about
// half of the limit is used, while nobody asks. It returns how many units were admitted.
func consumeByNodes(t *testing.T, nodes []*Ledger, rules []quota.Limited, limit int64, between func()) int64 {
	t.Helper()
	const callers = 12
	var admitted atomic.Int64
	round := func(name string, until int64) {
		var group sync.WaitGroup
		for n, node := range nodes {
			for caller := range callers {
				group.Go(func() {
					for i := 0; admitted.Load() < until; i++ {
						o := operation(fmt.Sprint(name, "-", n, "-", caller, "-", i), 1, 0, rules...)
						var d quota.Decision
						eventually(testkit.Context(t), t, func() (err error) { d, err = node.Take(testkit.Context(t), o); return err })
						if !d.Admitted {
							return
						}
						admitted.Add(1)
					}
				})
			}
		}
		group.Wait()
	}
	round("first", limit/2)
	between()
	round("second", 2*limit)
	return admitted.Load()
}

func startNodes(t *testing.T, n int, archive quota.Archive, open func() *Ledger) []*Ledger {
	nodes := make([]*Ledger, n)
	for i := range nodes {
		nodes[i] = open()
		Archive(archive, slog.New(slog.DiscardHandler))(nodes[i])
		t.Cleanup(func() { _ = nodes[i].Close(context.Background()) })
	}
	return nodes
}

// wantArchived waits until the nodes told the archive all that they charged.
func wantArchived(t *testing.T, archive quota.Archive, rules []quota.Limited, used int64) {
	t.Helper()
	eventually(testkit.Context(t), t, func() error {
		counters, err := archive.Kept(testkit.Context(t), "u:u")
		if err != nil || len(counters) != len(rules) {
			return fmt.Errorf("%d counters, %v", len(counters), err)
		}
		for _, c := range counters {
			var u int64
			if _, err := fmt.Sscanf(afterWord(c.Content, "u"), "%d", &u); err != nil || u != used {
				return fmt.Errorf("%+v, want %d", c, used)
			}
		}
		return nil
	})
}

// Redis loses everything in the middle, and many nodes with many callers restore the counters at the same time: in the
// end exactly the limit was admitted.
func TestLedgerAdmitsTheLimitThoughRedisForgets(t *testing.T) {
	const limit = 400
	rules := []quota.Limited{limited("hour", quota.UnitCalls, limit, fixed(time.Hour)), limited("day", quota.UnitCalls, limit+1, daily(""))}
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
			nodes := startNodes(t, 8, archive, func() *Ledger { return NewLedger(openFor(t, server.URL), 1, 20*time.Second) })
			admitted := consumeByNodes(t, nodes, rules, limit, func() {
				states, err := nodes[0].States(testkit.Context(t), "u", rules)
				if err != nil {
					t.Fatal(err)
				}
				wantArchived(t, archive, rules, states[0].Used)
				forget(t, server)
			})
			states, err := nodes[0].States(testkit.Context(t), "u", rules)
			if err != nil || admitted != limit || states[0].Used != limit || states[1].Used != limit {
				t.Errorf("%d admitted: %+v, %v", admitted, states, err)
			}
		})
	}
}

func TestLedgerVersionsOfTwoNodes(t *testing.T) {
	url, archive := testkit.Redis(t), openArchive(t)
	ctx := testkit.Context(t)
	nodes := startNodes(t, 2, archive, func() *Ledger { return NewLedger(openFor(t, url), 1, 20*time.Second) })
	rules := lasting[:1]
	must(t)(nodes[0].Take(ctx, operation("a", 2, 0, rules...)))
	late, err := nodes[0].mirror.read(ctx, []quota.CounterName{{Subject: "u:u", Rule: "hour", Shape: "cs3600000"}})
	if err != nil || len(late) != 1 {
		t.Fatalf("%+v, %v", late, err)
	}
	must(t)(nodes[1].Take(ctx, operation("b", 3, 0, rules...)))
	for _, node := range nodes {
		if err := node.mirror.flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Keep(ctx, late); err != nil {
		t.Fatal(err)
	}
	if counters, err := archive.Kept(ctx, "u:u"); err != nil || len(counters) != 1 || afterWord(counters[0].Content, "u") != "5" {
		t.Errorf("%+v, %v", counters, err)
	}
}

// What a counter that must be confirmed has, stays, if the archive is behind it.
func TestLedgerKnowsBetterThanTheArchive(t *testing.T) {
	s := onRedis(t)
	s.archive = &archive{Archive: openArchive(t), turns: make(chan struct{}, 1)}
	s.mirror = newMirror(s.Ledger, nil) // which does not run
	rule := lasting[0]
	s.consume("a", 5, rule)
	s.mirrored()
	s.consume("b", 3, rule)
	if err := s.client.HSet(testkit.Context(t), s.prefix+"{u:u}:c:hour:cs3600000", "m", "another").Err(); err != nil {
		t.Fatal(err)
	}
	s.want(rule, 8, 0)
	s.lose()
	s.want(rule, 5, 0)
}

// While the archive is away, counters that are confirmed go on, and no other is guessed.
func TestLedgerWhileTheArchiveIsAway(t *testing.T) {
	s, archive := onRedis(t), openArchive(t)
	s.archiveIn(archive)
	ctx := testkit.Context(t)
	known, other, short := lasting[0], lasting[2], limited("minute", quota.UnitCalls, 50, fixed(time.Minute))
	s.consume("a", 2, known)
	archive.away.Store(true)
	s.consume("b", 3, known, short)
	_, err := s.Take(ctx, operation("c", 1, 0, known, other))
	wantFault(t, err, fault.ReasonCountersUnavailable)
	_, err = s.States(ctx, "u", []quota.Limited{other})
	wantFault(t, err, fault.ReasonCountersUnavailable)
	_, err = s.Reset(ctx, "u", known)
	wantFault(t, err, fault.ReasonCountersUnavailable)
	s.consume("d", 1, known)
	for range 3 {
		if err := s.mirror.flush(ctx); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
	}
	archive.away.Store(false)
	wantArchived(t, archive, lasting[:1], 1) // since the reset
	s.lose()
	s.want(known, 1, 0)
}

func TestLedgerCloses(t *testing.T) {
	url, archive := testkit.Redis(t), openArchive(t)
	l := NewLedger(openFor(t, url), 1, 20*time.Second, Archive(archive, slog.New(slog.DiscardHandler)))
	must(t)(l.Take(testkit.Context(t), operation("a", 7, 0, lasting[0])))
	if err := l.Close(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	counters, err := archive.Kept(testkit.Context(t), "u:u")
	if err != nil || len(counters) != 1 || afterWord(counters[0].Content, "u") != "7" {
		t.Errorf("%+v, %v", counters, err)
	}
}

// However many counters change, so many wait.
func TestMirrorIsBounded(t *testing.T) {
	m := newMirror(nil, nil)
	for i := range mirrorAtMost + 10 {
		m.note(quota.CounterName{Subject: numbered("u:", i)})
	}
	m.note(quota.CounterName{Subject: numbered("u:", 0)}) // which waits
	if got := (&Ledger{mirror: m}).ArchiveStats(); got != (ArchiveStats{mirrorAtMost, 10}) {
		t.Errorf("got %+v", got)
	}
}
