package health

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// alone is a board of one node, at a time that the test sets.
type alone struct {
	*Board
	now time.Time
}

func newAlone(p Policy) *alone {
	a := &alone{now: begin}
	a.Board = NewBoard(Options{Policy: func(Subject) Policy { return p }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return a.now }, Chance: func() float64 { return 0 }})
	return a
}

var tool = Subject{Tool: "t"}

func TestBoardWithoutOthers(t *testing.T) {
	a := newAlone(Policy{FailThreshold: 2, Cooldown: time.Minute, ProbeLease: time.Minute})
	ask := func(call id.Call) State { return a.Health(call)(tool).State }
	if ask("x") != Closed || a.Claim(t.Context(), tool, "x").State != Closed || a.Score(tool) != 1 {
		t.Error("a tool that was never called is not well")
	}
	if len(a.List()) != 0 {
		t.Errorf("asking makes known: %v", a.List())
	}
	for range 2 {
		a.Report(tool, Report{Outcome: Timeout})
	}
	if c := a.Health("x")(tool); c != (Condition{Open, time.Minute}) || a.Claim(t.Context(), tool, "x") != c {
		t.Errorf("%+v", c)
	}
	a.now = a.now.Add(time.Minute)
	var probes atomic.Int64
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			if a.Claim(t.Context(), tool, id.Call(fmt.Sprint(i))).State == HalfOpen {
				probes.Add(1)
			}
		})
	}
	group.Wait()
	if got := probes.Load(); got != 1 {
		t.Fatalf("%d probes", got)
	}
	probe := a.List()[0].Record.Probe
	if ask(probe) != HalfOpen || ask("another") != Open {
		t.Error("who is the probe is not told")
	}
	a.Report(tool, Report{Call: probe, Outcome: Success})
	s := a.Stats()
	for state, want := range map[State]uint64{Open: 1, HalfOpen: 1, Closed: 1} {
		if got := s.Transitions[Transition{"tool", state}]; got != want {
			t.Errorf("to %v: %d", state, got)
		}
	}
	if ask("x") != Closed || s.Breakers[Transition{"tool", Closed}] != 1 || s.Pending != 0 || a.List()[0].Local {
		t.Errorf("%+v", s)
	}
}

// However many subjects are told of, so many are known; what is put aside is not forgotten for that.
func TestBoardIsBounded(t *testing.T) {
	a := newAlone(Policy{FailThreshold: 2, Cooldown: time.Hour, ProbeLease: time.Hour})
	broken := Subject{Server: "broken"}
	a.Report(broken, Report{Outcome: Timeout})
	a.Report(broken, Report{Outcome: Timeout})
	last := Subject{}
	for i := range 3 * maxSubjects {
		a.now = a.now.Add(time.Millisecond)
		last = Subject{Tool: id.Tool(fmt.Sprint(i))}
		a.Report(last, Report{Outcome: Error})
	}
	if got := len(a.List()); got > maxSubjects || got < maxSubjects*8/10 {
		t.Errorf("%d are known", got)
	}
	if a.Health("x")(broken).State != Open || a.Score(last) == 1 || a.Score(Subject{Tool: "0"}) != 1 {
		t.Error("others were forgotten than those called longest ago")
	}
	if s := a.Stats(); s.Lost != 0 {
		t.Errorf("%d lost", s.Lost)
	}
	for i := range maxSubjects + 10 { // all are put aside: there is no room
		s := Subject{Server: id.MCPServer(fmt.Sprint(i))}
		a.Report(s, Report{Outcome: Timeout})
		a.Report(s, Report{Outcome: Timeout})
	}
	if got, lost := len(a.List()), a.Stats().Lost; got != maxSubjects || lost == 0 {
		t.Errorf("%d are known, %d lost", got, lost)
	}
}

func TestBoardForgetsAfterADay(t *testing.T) {
	a := newAlone(Policy{FailThreshold: 1, Cooldown: time.Minute, ProbeLease: time.Minute})
	a.Report(tool, Report{Outcome: Timeout})
	for _, c := range []struct {
		after time.Duration
		known int
	}{{keep, 1}, {keep + sweepInterval, 0}} {
		a.now = begin.Add(c.after)
		a.mu.Lock()
		a.sweep()
		a.mu.Unlock()
		if got := len(a.List()); got != c.known {
			t.Errorf("after %v %d are known", c.after, got)
		}
	}
}

func TestBoardEnds(t *testing.T) {
	a := newAlone(Policy{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Run(ctx) // returns
}

func TestPolicies(t *testing.T) {
	defaults := Policy{FailThreshold: 5, Cooldown: time.Second, ProbeLease: time.Minute}
	snapshot, err := catalog.Compile([]catalog.ToolType{{ID: "x"}}, []catalog.Tool{
		{ID: "own", Type: "x", Name: "own", Health: catalog.HealthPolicy{FailThreshold: 2, CooldownMs: 300}}, {ID: "plain", Type: "x", Name: "plain"},
		{ID: "half", Type: "x", Name: "half", Health: catalog.HealthPolicy{FailThreshold: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	of := defaults.Policies(func() *catalog.Snapshot { return snapshot })
	for s, want := range map[Subject]Policy{
		{Tool: "own"}:     {2, 300 * time.Millisecond, time.Minute},
		{Tool: "half"}:    {3, time.Second, time.Minute},
		{Tool: "plain"}:   defaults,
		{Tool: "unknown"}: defaults,
		{Server: "own"}:   defaults,
	} {
		if got := of(s); got != want {
			t.Errorf("%v: %+v", s, got)
		}
	}
}

func BenchmarkHealth(b *testing.B) {
	a := newAlone(Policy{FailThreshold: 2, Cooldown: time.Minute, ProbeLease: time.Minute})
	a.Report(tool, Report{Outcome: Success})
	b.ReportAllocs()
	for b.Loop() {
		if a.Health("x")(tool).State != Closed {
			b.Fatal()
		}
	}
}

func BenchmarkReport(b *testing.B) {
	a := newAlone(Policy{FailThreshold: 2, Cooldown: time.Minute, ProbeLease: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		a.Report(tool, Report{Call: "x", Outcome: Success})
	}
}
