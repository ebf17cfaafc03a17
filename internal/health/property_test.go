package health

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/id"
)

var (
	outcomes = rapid.SampledFrom([]Outcome{Success, Error, Timeout, Unreachable, Cancelled, BadArguments})
	names    = rapid.SampledFrom([]id.Call{"", "a", "b", "c"})
	chances  = rapid.Float64Range(0, 0.999999)
)

func drawPolicy(t *rapid.T) Policy {
	return Policy{FailThreshold: rapid.IntRange(1, 5).Draw(t, "threshold"),
		Cooldown:   time.Duration(rapid.IntRange(100, 10_000).Draw(t, "cooldown")) * time.Millisecond,
		ProbeLease: time.Duration(rapid.IntRange(1, 60).Draw(t, "lease")) * time.Second}
}

// drawRecord returns a record to which anything may have happened.
func drawRecord(t *rapid.T, p Policy) (Record, time.Time) {
	var r Record
	now := begin
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 50, 3_000, 30_000}).Draw(t, "ms")) * time.Millisecond)
		if rapid.Bool().Draw(t, "claims") {
			r, _ = r.Claim(rapid.SampledFrom([]id.Call{"a", "b", "c"}).Draw(t, "call"), p, now)
		} else {
			r = r.Report(Report{names.Draw(t, "call"), outcomes.Draw(t, "outcome"), time.Duration(rapid.IntRange(0, 1000).Draw(t, "latency"))}, p, now, chances.Draw(t, "chance"))
		}
	}
	return r, now
}

// A second telling of the rules, one at a time.
func TestReportsOfAnyRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		before, now := drawRecord(t, p)
		report := Report{names.Draw(t, "call"), outcomes.Draw(t, "outcome"), 0}
		after := before.Report(report, p, now, chances.Draw(t, "chance"))
		silent := report.Outcome == Cancelled || report.Outcome == BadArguments
		probes := before.Probe != "" && before.Probe == report.Call

		if before.Opened == 0 && before.Failures >= p.FailThreshold {
			t.Fatalf("%+v is closed", before)
		}
		if before.Opened > 0 && before.Retry.IsZero() || before.Opened == 0 && (before.Probe != "" || !before.Retry.IsZero()) {
			t.Fatalf("%+v is no state", before)
		}
		if s := after.Score(now); s < 0 || s > 1 {
			t.Errorf("score %v", s)
		}
		switch s0, s1 := before.Score(now), after.Score(now); {
		case silent && s0 != s1, report.Outcome == Success && s1 < s0, !silent && report.Outcome != Success && s1 > s0:
			t.Errorf("%s: the score went from %v to %v", report.Outcome, s0, s1)
		}
		if opened := after.Opened > before.Opened; opened {
			if !report.Outcome.transportFailure() || before.Opened > 0 && !probes {
				t.Errorf("%+v opened it", report)
			}
			least := time.Duration(min(maxGrowth, 1<<min(before.Opened, 10))) * p.Cooldown
			if d := after.Retry.Sub(now); d < least || d > least+least/5+time.Millisecond {
				t.Errorf("opened %d times: cool-down of %v, at first it is %v", after.Opened, d, p.Cooldown)
			}
		}
		if before.Opened > 0 && after.Opened == 0 && (!probes || !report.Outcome.answered()) {
			t.Errorf("%+v closed it", report)
		}
		if silent && (after.Failures != before.Failures || after.Opened != before.Opened) {
			t.Errorf("%s counted", report.Outcome)
		}
	})
}

// However many ask, at any time one call probes until it is reported or its lease runs out.
func TestOneProbe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		r, now := drawRecord(t, p)
		granted := map[id.Call]time.Time{} // until when
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			if r.Opened == 0 {
				r = r.Report(Report{Outcome: Timeout}, p, now, 0)
				clear(granted)
				continue
			}
			call := rapid.SampledFrom([]id.Call{"d", "e", "f", "g"}).Draw(t, "call")
			if rapid.Bool().Draw(t, "reports") {
				report := Report{Call: call, Outcome: outcomes.Draw(t, "outcome")}
				if r.Probe == call {
					clear(granted)
				}
				r = r.Report(report, p, now, 0)
				continue
			}
			told := r.Condition(call, now)
			after, ok := r.Claim(call, p, now)
			if ok != (told.State != Open) || !ok && told.RetryAfter <= 0 {
				t.Fatalf("%s is told %+v, and granted: %v", call, told, ok)
			}
			for other, until := range granted {
				if ok && other != call && now.Before(until) {
					t.Fatalf("%s and %s probe at a time", call, other)
				}
			}
			if ok && now.Before(r.Retry) {
				t.Fatal("a probe while it cools down")
			}
			if ok {
				granted[call] = after.Lease
			}
			r = after
		}
	})
}

func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		a, _ := drawRecord(t, p)
		b, at := drawRecord(t, p)
		ab := a.Join(b)
		if ba := b.Join(a); ab != ba {
			t.Errorf("the order counts:\n%+v\n%+v", ab, ba)
		}
		if again := ab.Join(b); again != ab {
			t.Errorf("the second time counts:\n%+v\n%+v", ab, again)
		}
		if a.Join(a) != a || a.Join(Record{}) != a {
			t.Errorf("joining nothing new changes %+v to %+v, %+v", a, a.Join(a), a.Join(Record{}))
		}
		at = at.Add(time.Hour)
		if got := ab.Score(at); got > min(a.Score(at), b.Score(at))+1e-9 {
			t.Errorf("score %v", got)
		}
		for _, r := range []Record{a, b} {
			if r.Opened > 0 && (ab.Opened < r.Opened || ab.Retry.Before(r.Retry)) {
				t.Errorf("%+v refuses less than %+v", ab, r)
			}
		}
	})
}

func TestCooldownNeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{FailThreshold: 1, Cooldown: time.Duration(rapid.IntRange(100, 3_600_000).Draw(t, "ms")) * time.Millisecond}
		if d := p.cooldown(rapid.IntRange(1, 1<<40).Draw(t, "opened"), chances.Draw(t, "chance")); d < p.Cooldown || d > 20*p.Cooldown {
			t.Errorf("%v", d)
		}
	})
}
