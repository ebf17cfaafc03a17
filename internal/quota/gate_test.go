package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// world is a gate over ledgers in memory that the test can take away, at a time that it sets.
type world struct {
	t      *testing.T
	now    time.Time
	ledger *line
	system *leased
	gate   *quota.Gate
	nodes  int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), nodes: 1}
	clock := func() time.Time { return w.now }
	w.ledger = &line{Ledger: quota.NewMemory(clock)}
	w.system = &leased{ledger: quota.NewMemory(clock)}
	w.gate = w.node()
	return w
}

// node is one more gate over the same counters.
func (w *world) node() *quota.Gate {
	return quota.NewGate(quota.GateOptions{Ledger: w.ledger, Slices: w.system, Nodes: func() int { return w.nodes }, Now: func() time.Time { return w.now }})
}

// line is the way to a ledger: it can lose requests, or answers.
type line struct {
	quota.Ledger
	mu          sync.Mutex
	losesAsked  bool
	losesAnswer bool
	asked       int
}

var errLost = &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonCountersUnavailable, Message: "lost"}

// lost is called before a request, and what it returns after.
func (l *line) lost() (bool, func(error) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	answers := l.losesAnswer
	return l.losesAsked, func(err error) error {
		if answers {
			return errLost
		}
		return err
	}
}

func (l *line) Take(ctx context.Context, o quota.Operation) (quota.Decision, error) {
	lost, after := l.lost()
	if lost {
		return quota.Decision{}, errLost
	}
	d, err := l.Ledger.Take(ctx, o)
	return d, after(err)
}

func (l *line) Commit(ctx context.Context, operation string, tokens *int64) (quota.Decision, error) {
	lost, after := l.lost()
	if lost {
		return quota.Decision{}, errLost
	}
	d, err := l.Ledger.Commit(ctx, operation, tokens)
	return d, after(err)
}

func (l *line) States(ctx context.Context, user id.User, rules []quota.Limited) ([]quota.State, error) {
	lost, after := l.lost()
	if lost {
		return nil, errLost
	}
	s, err := l.Ledger.States(ctx, user, rules)
	return s, after(err)
}

// leased spends SYSTEM rules from a counter beside it.
type leased struct {
	ledger *quota.Memory
	away   bool
	count  int
	back   []string
}

func (s *leased) Spend(ctx context.Context, rules []quota.Limited, cost quota.Cost) (quota.Decision, error) {
	if s.away {
		return quota.Decision{}, errLost
	}
	s.count++
	return s.ledger.Take(ctx, quota.Operation{ID: fmt.Sprint(s.count), User: "system", Rules: rules, Cost: cost})
}

func (s *leased) GiveBack(rules []quota.Limited, cost quota.Cost) {
	for _, r := range rules {
		s.back = append(s.back, string(r.ID))
		r.Own = 1 << 40
		cost := quota.Cost{Calls: -cost.Calls, Tokens: -cost.Tokens}
		s.count++
		_, _ = s.ledger.Take(context.Background(), quota.Operation{ID: fmt.Sprint(s.count), User: "system", Rules: []quota.Limited{r}, Cost: cost})
	}
}

func (s *leased) States(ctx context.Context, rules []quota.Limited) ([]quota.State, error) {
	return s.ledger.States(ctx, "system", rules)
}

func limit(name string, scope quota.Scope, limit int64, change ...func(*quota.Rule)) quota.Limited {
	r := rule(func(r *quota.Rule) { r.ID, r.Scope, r.Limit = id.Quota(name), scope, limit })
	for _, c := range change {
		c(&r)
	}
	return quota.Limited{Rule: r, Own: limit}
}

func onOutage(o quota.OnOutage) func(*quota.Rule) { return func(r *quota.Rule) { r.OnOutage = o } }

func atATime(r *quota.Rule) { r.Unit, r.Window = quota.UnitConcurrentCalls, quota.Window{} }

func consume(name string, rules ...quota.Limited) quota.Operation {
	return quota.Operation{ID: name, User: "u", Tool: "t", Rules: rules, Cost: quota.Cost{Calls: 1, Tokens: 10}}
}

func reserve(name string, rules ...quota.Limited) quota.Operation {
	o := consume(name, rules...)
	o.Lease = time.Minute
	return o
}

// take takes, and returns the states in a line: of each rule what is used+held, with ! if an outage decided.
func (w *world) take(o quota.Operation) string { return w.takeAt(w.gate, o) }

func (w *world) takeAt(g *quota.Gate, o quota.Operation) string {
	d, err := g.Take(context.Background(), o)
	return said(d, err)
}

func said(d quota.Decision, err error) string {
	if f, ok := fault.As(err); ok {
		return string(f.Reason)
	}
	if err != nil {
		return err.Error()
	}
	text := "denied"
	if d.Admitted {
		text = "ok"
	}
	if d.Repeated {
		text = "again"
	}
	for _, s := range d.States {
		text += fmt.Sprintf(" %s=%d+%d", s.Rule, s.Used, s.Held)
		if s.ByOutage {
			text += "!"
		}
	}
	for _, r := range d.Denied {
		text += " by " + string(r)
	}
	return text
}

func (w *world) states(rules ...quota.Limited) string {
	states, err := w.gate.States(context.Background(), "u", rules)
	return said(quota.Decision{Admitted: true, States: states}, err)
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestAllOrNothingOverScopes(t *testing.T) {
	node, system, user := limit("n", quota.ScopeNode, 2), limit("s", quota.ScopeSystem, 2), limit("u", quota.ScopeUser, 2)
	all := []quota.Limited{node, system, user}
	for name, tight := range map[string]int{"node": 0, "system": 1, "user": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rules := append([]quota.Limited(nil), all...)
			for i := range rules {
				if i != tight {
					rules[i].Own = 10
				}
			}
			want(t, "first", w.take(consume("a", rules...)), "ok n=1+0 s=1+0 u=1+0")
			want(t, "second", w.take(consume("b", rules...)), "ok n=2+0 s=2+0 u=2+0")
			for range 3 {
				d, err := w.gate.Take(context.Background(), consume("c", rules...))
				if err != nil || d.Admitted || len(d.Denied) != 1 || d.Denied[0] != rules[tight].ID {
					t.Errorf("third: %s", said(d, err))
				}
			}
			want(t, "after denials", w.states(rules...), "ok n=2+0 s=2+0 u=2+0")
			want(t, "repeated", w.take(consume("a", rules...)), "again n=2+0 s=2+0 u=2+0")
			w.now = w.now.Add(2 * time.Minute)
			want(t, "later", w.take(consume("c", rules...)), "ok n=1+0 s=1+0 u=1+0")
		})
	}
}

func TestOperationsWithoutTheLedgerAreRemembered(t *testing.T) {
	for _, scope := range []quota.Scope{quota.ScopeNode, quota.ScopeSystem} {
		w := newWorld(t)
		r := limit("r", scope, 10)
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { w.take(consume("a", r)) })
		}
		group.Wait()
		want(t, string(scope), w.states(r), "ok r=1+0")
		other := consume("a", r)
		other.Cost.Calls = 2
		want(t, "another content", w.take(other), string(fault.ReasonRequestIDReused))
		if w.ledger.asked != 0 {
			t.Errorf("%s: the ledger was asked %d times", scope, w.ledger.asked)
		}
	}
}

func TestReservationOverScopes(t *testing.T) {
	w := newWorld(t)
	node, user := limit("n", quota.ScopeNode, 1, atATime), limit("u", quota.ScopeUser, 100, func(r *quota.Rule) { r.Unit = quota.UnitTokens })
	want(t, "reserve", w.take(reserve("a", node, user)), "ok n=0+1 u=0+10")
	want(t, "reserve another", w.take(reserve("b", node, user)), "denied n=0+1 by n")
	want(t, "reserve again", w.take(reserve("a", node, user)), "again n=0+1 u=0+10")
	tokens := int64(7)
	for _, how := range []string{"ok", "again"} {
		want(t, "commit", said(w.gate.Commit(context.Background(), "a", &tokens)), how+" n=0+0 u=7+0")
	}
	want(t, "release", said(w.gate.Release(context.Background(), "a")), string(fault.ReasonOperationSettled))
	want(t, "reserve when free", w.take(reserve("b", node, user)), "ok n=0+1 u=7+10")
	want(t, "release", said(w.gate.Release(context.Background(), "b")), "ok n=0+0 u=7+0")
	want(t, "only on this node", w.take(reserve("c", node)), "ok n=0+1")
	want(t, "release", said(w.gate.Release(context.Background(), "c")), "ok n=0+0")
	want(t, "no rules", w.take(reserve("d")), "ok")
	want(t, "commit without rules", said(w.gate.Commit(context.Background(), "d", nil)), "ok")
	want(t, "unknown", said(w.gate.Commit(context.Background(), "e", nil)), string(fault.ReasonNotFound))
}

// What is settled on another node counts at once, but for the place on the first node.
func TestSettledElsewhere(t *testing.T) {
	w := newWorld(t)
	node, user := limit("n", quota.ScopeNode, 1, atATime), limit("u", quota.ScopeUser, 10)
	want(t, "reserve", w.take(reserve("a", node, user)), "ok n=0+1 u=0+1")
	want(t, "commit elsewhere", said(w.node().Commit(context.Background(), "a", nil)), "ok u=1+0")
	want(t, "the place", w.states(node, user), "ok n=0+1 u=1+0")
	w.now = w.now.Add(time.Minute)
	want(t, "the place, when its lease is over", w.states(node), "ok n=0+0")
}

// Whoever repeats on another node what he was not told is charged once.
func TestRepeatedElsewhere(t *testing.T) {
	w := newWorld(t)
	node, system, user := limit("n", quota.ScopeNode, 5), limit("s", quota.ScopeSystem, 5), limit("u", quota.ScopeUser, 5)
	w.take(consume("a", node, system, user))
	want(t, "on another node", w.takeAt(w.node(), consume("a", node, system, user)), "ok n=1+0 s=2+0 u=1+0")
	want(t, "afterwards", w.states(node, system, user), "ok n=1+0 s=1+0 u=1+0")
}

func TestLostAnswers(t *testing.T) {
	w := newWorld(t)
	node, system, user := limit("n", quota.ScopeNode, 5), limit("s", quota.ScopeSystem, 5), limit("u", quota.ScopeUser, 5)
	w.ledger.losesAnswer = true
	want(t, "lost", w.take(consume("a", node, system, user)), string(fault.ReasonCountersUnavailable))
	w.ledger.losesAnswer = false
	want(t, "kept for the repetition", w.states(node, system, user), "ok n=1+0 s=1+0 u=1+0")
	want(t, "repeated", w.take(consume("a", node, system, user)), "again n=1+0 s=1+0 u=1+0")
	want(t, "repeated on another node", w.takeAt(w.node(), consume("a", node, system, user)), "ok n=1+0 s=2+0 u=1+0")
	want(t, "afterwards", w.states(node, system, user), "ok n=1+0 s=1+0 u=1+0")
}

// A ledger that does not answer is not asked by everybody; who denies gives back what was taken in front.
func TestOutageDenies(t *testing.T) {
	w := newWorld(t)
	node, system, user := limit("n", quota.ScopeNode, 100), limit("s", quota.ScopeSystem, 100), limit("u", quota.ScopeUser, 5)
	allowed := limit("v", quota.ScopeUser, 5, onOutage(quota.OutageAllow))
	w.ledger.losesAsked = true
	deadline := time.Now().Add(10 * time.Second)
	inVain := 0
	for ; !w.gate.Stats().Outage && time.Now().Before(deadline); inVain++ {
		want(t, "away", w.take(consume(fmt.Sprint(inVain), node, system, user, allowed)), string(fault.ReasonCountersUnavailable))
		time.Sleep(20 * time.Millisecond)
	}
	asked := w.ledger.asked
	for i := range 50 {
		want(t, "given up", w.take(consume(fmt.Sprint("later", i), node, system, user, allowed)), string(fault.ReasonCountersUnavailable))
	}
	if more := w.ledger.asked - asked; more > 1 || asked < 5 {
		t.Errorf("asked %d times, and then %d", asked, more)
	}
	// Those who asked in vain may have been heard.
	want(t, "states", w.states(node, system, user, allowed), fmt.Sprintf("ok n=%d+0 s=0+0! u=0+0! v=0+0!", inVain))
	if stats := w.gate.Stats(); !stats.Outage || stats.Unavailable != uint64(inVain)+50 {
		t.Errorf("%+v", stats)
	}
	w.ledger.losesAsked = false
	healed := fmt.Sprintf("ok n=%d+0 s=%d+0 u=1+0", inVain+1, inVain+1)
	for w.take(consume("healed", node, system, user)) != healed {
		if time.Now().After(deadline) {
			t.Fatal("the ledger is not asked again")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if stats := w.gate.Stats(); stats.Outage {
		t.Errorf("%+v", stats)
	}
}

func TestOutageAdmits(t *testing.T) {
	w := newWorld(t)
	w.nodes = 3
	node := limit("n", quota.ScopeNode, 100)
	share := limit("s", quota.ScopeUser, 8, onOutage(quota.OutageLocalShare))
	allow := limit("a", quota.ScopeUser, 1, onOutage(quota.OutageAllow))
	shadow := limit("x", quota.ScopeUser, 1, func(r *quota.Rule) { r.Shadow = true })
	rules := []quota.Limited{allow, node, share, shadow}
	w.ledger.losesAsked = true
	want(t, "first", w.take(consume("1", rules...)), "ok a=0+0! n=1+0 s=1+0! x=0+0!")
	want(t, "repeated", w.take(consume("1", rules...)), "again a=0+0! n=1+0 s=1+0! x=0+0!")
	want(t, "reserve", w.take(reserve("2", rules...)), "ok a=0+0! n=1+1 s=1+1! x=0+0!")
	want(t, "over the share", w.take(consume("3", rules...)), "denied a=0+0! s=1+1! x=0+0! by s")
	want(t, "given back", w.states(node), "ok n=1+1")
	other := consume("4", rules...)
	other.User = "other"
	want(t, "another user", w.take(other), "ok a=0+0! n=2+1 s=1+0! x=0+0!")
	w.ledger.losesAsked = false
	// What the outage decided is settled where it was decided, whether Redis is back or not.
	want(t, "release", said(w.gate.Release(context.Background(), "2")), "ok n=2+0 s=1+0!")
	want(t, "release again", said(w.gate.Release(context.Background(), "2")), "again n=2+0 s=1+0!")
	want(t, "repeated, when it is over", w.take(consume("1", rules...)), "again a=0+0! n=2+0 s=1+0! x=0+0!")
}

func TestOutageOfSystemRules(t *testing.T) {
	w := newWorld(t)
	w.system.away = true
	node, user := limit("n", quota.ScopeNode, 9), limit("u", quota.ScopeUser, 1)
	denies, allows := limit("s", quota.ScopeSystem, 9), limit("s", quota.ScopeSystem, 9, onOutage(quota.OutageAllow))
	want(t, "denies", w.take(consume("a", node, denies, user)), string(fault.ReasonCountersUnavailable))
	want(t, "given back", w.states(node, user), "ok n=0+0 u=0+0")
	want(t, "allows", w.take(consume("a", node, allows, user)), "ok n=1+0 s=0+0! u=1+0")
	want(t, "the user's rule denies", w.take(consume("b", node, allows, user)), "denied u=1+0 by u")
	want(t, "given back", w.states(node, user), "ok n=1+0 u=1+0")
	if len(w.system.back) > 0 {
		t.Errorf("what was never spent was given back: %v", w.system.back)
	}
}

func TestCallerWhoGoesAway(t *testing.T) {
	gate := quota.NewGate(quota.GateOptions{Ledger: stuck{}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // which says nothing about the ledger
		if _, err := gate.Take(ctx, consume("a", limit("u", quota.ScopeUser, 1))); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if gate.Stats().Outage {
		t.Error("callers who went away made an outage")
	}
}

// stuck answers when its caller goes away.
type stuck struct{ quota.Ledger }

func (stuck) Take(ctx context.Context, _ quota.Operation) (quota.Decision, error) {
	<-ctx.Done()
	return quota.Decision{}, ctx.Err()
}
