package health

import (
	"math"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// weight is how much one call changes the score, and the latency: after seven failures a score of 1 is below 1/2.
	weight = 0.1
	// forgiveness is after how long without a call half of what the score lacks is forgiven: a tool that nobody calls
	// because its score is low would keep it for ever.
	forgiveness = 10 * time.Minute
	// probeRetry is when to ask again, at most, while a probe is under way: most calls are short.
	probeRetry = 2 * time.Second
)

// State is whether calls are let through.
type State int

// The states.
const (
	Closed   State = iota // they are
	Open                  // they are not
	HalfOpen              // one is, as a probe
)

// String is the state's name in logs and metrics.
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

// Condition is whether one call may be made.
type Condition struct {
	// State is HalfOpen if the call may be the probe. While another is, it is Open.
	State      State
	RetryAfter time.Duration // Open: when to ask again, from now
}

// Record is what is known of a subject. The zero Record is that of one that was never called. Times are in whole
// milliseconds.
type Record struct {
	Failures int       // transport failures in a row
	Opened   int       // for the how manieth time in a row the breaker is open; 0: it is closed
	Retry    time.Time // not closed: when the cool-down is over
	Probe    id.Call   // half open: the call that was let through; empty: none was yet
	Lease    time.Time // until when its report is waited for

	Lack     float64       // what the score lacks to 1, when it was reported last
	Latency  time.Duration // how long calls that were answered took, the newest counting most; 0: not known
	Reported time.Time     // when a call was reported last; zero: never
}

// Report is how one call went.
type Report struct {
	Call    id.Call
	Outcome Outcome
	Latency time.Duration // 0: not known
}

// Report returns the record after a report. Chance is from [0, 1).
func (r Record) Report(report Report, p Policy, now time.Time, chance float64) Record {
	r.tally(report, now)
	switch {
	case r.Opened == 0:
		switch {
		case report.Outcome.answered():
			r.Failures = 0
		case report.Outcome.transportFailure():
			if r.Failures++; r.Failures >= p.FailThreshold {
				r.open(p, now, chance)
			}
		}
	case r.Probe == "" || report.Call != r.Probe: // a call that began before
	case report.Outcome.answered():
		r.Failures, r.Opened, r.Retry = 0, 0, time.Time{}
		r.Probe, r.Lease = "", time.Time{}
	case report.Outcome.transportFailure():
		r.Failures++
		r.open(p, now, chance)
	default:
		r.Probe, r.Lease = "", time.Time{}
	}
	return r
}

func (r *Record) open(p Policy, now time.Time, chance float64) {
	r.Opened++
	r.Retry = now.Add(p.cooldown(r.Opened, chance))
	r.Probe, r.Lease = "", time.Time{}
}

// tally changes what only tells, and stops nobody. Reports may come late: time does not run backwards for that.
func (r *Record) tally(report Report, now time.Time) {
	if report.Outcome.answered() || report.Outcome.transportFailure() {
		lack := 1.0
		if report.Outcome == Success {
			lack = 0
		}
		r.Lack = r.lack(now)
		r.Lack += weight * (lack - r.Lack)
		if report.Outcome.answered() && report.Latency > 0 {
			if r.Latency == 0 {
				r.Latency = report.Latency
			}
			r.Latency += time.Duration(weight * float64(report.Latency-r.Latency))
		}
	} else {
		r.Lack = r.lack(now)
	}
	if now.After(r.Reported) {
		r.Reported = now
	}
}

// Claim lets a call be the probe, if the cool-down is over and no other is one; the same call as often as it asks, also
// where the clock is behind that of the node that let it through. A closed breaker lets every call through. It returns
// the record after that, and whether the call may be made.
func (r Record) Claim(call id.Call, p Policy, now time.Time) (Record, bool) {
	switch {
	case r.Opened == 0:
		return r, true
	case r.Probe == call && now.Before(r.Lease):
		return r, true
	case now.Before(r.Retry):
		return r, false
	case r.Probe != "" && now.Before(r.Lease):
		return r, false
	}
	r.Probe, r.Lease = call, now.Add(p.ProbeLease)
	return r, true
}

// Condition tells whether a call may be made now.
func (r Record) Condition(call id.Call, now time.Time) Condition {
	switch {
	case r.Opened == 0:
		return Condition{}
	case r.Probe == call && now.Before(r.Lease):
		return Condition{State: HalfOpen}
	case now.Before(r.Retry):
		return Condition{State: Open, RetryAfter: r.Retry.Sub(now)}
	case r.Probe != "" && r.Probe != call && now.Before(r.Lease):
		return Condition{State: Open, RetryAfter: min(r.Lease.Sub(now), probeRetry)}
	default:
		return Condition{State: HalfOpen}
	}
}

// State tells how the breaker stands: half open from the end of the cool-down until a probe was reported.
func (r Record) State(now time.Time) State {
	switch {
	case r.Opened == 0:
		return Closed
	case now.Before(r.Retry):
		return Open
	default:
		return HalfOpen
	}
}

// NextProbe is when the next probe may pass. Zero: the breaker is closed.
func (r Record) NextProbe() time.Time {
	if r.Lease.After(r.Retry) {
		return r.Lease
	}
	return r.Retry
}

// Score is the share of recent calls that went well, from 0 to 1, the newest counting most; 1 if there were none. It
// begins at 1, each call takes it a tenth of the way to 1 or to 0, and every ten minutes half of what it lacks is
// forgiven.
func (r Record) Score(now time.Time) float64 { return 1 - r.lack(now) }

func (r Record) lack(now time.Time) float64 {
	idle := max(0, now.Sub(r.Reported))
	return r.Lack * math.Exp2(-idle.Seconds()/forgiveness.Seconds())
}

// Join returns what two nodes know that could not tell each other for a while: the worse of both. If the breaker need
// not be open, the next probe finds out. Joining again changes nothing, and neither does the order.
func (r Record) Join(other Record) Record {
	later := r.Reported
	if other.Reported.After(later) {
		later = other.Reported
	}
	worse, better := r, other
	if worse.compare(better) < 0 {
		worse, better = better, worse
	}
	worse.Failures = max(worse.Failures, better.Failures)
	worse.Opened = max(worse.Opened, better.Opened)
	worse.Latency = max(worse.Latency, better.Latency)
	// What both scores lack, forgiven until the later of the reports.
	worse.Lack, worse.Reported = max(r.lack(later), other.lack(later)), later
	return worse
}

// compare orders records by how much their breakers refuse.
func (r Record) compare(other Record) int {
	switch {
	case (r.Opened > 0) != (other.Opened > 0):
		if r.Opened > 0 {
			return 1
		}
		return -1
	case !r.Retry.Equal(other.Retry):
		return r.Retry.Compare(other.Retry)
	case !r.Lease.Equal(other.Lease):
		return r.Lease.Compare(other.Lease)
	case r.Probe != other.Probe:
		if r.Probe > other.Probe {
			return 1
		}
		return -1
	}
	return 0
}

// clockSlack is how far clocks may be apart without anybody minding.
const clockSlack = 10 * time.Second

// within returns the record of a breaker that opened as it counts at an instant. No wait is longer than the policy has
// any: one that is was begun when the clock was ahead, and is over, so that the next probe finds out.
func (r Record) within(p Policy, now time.Time) Record {
	if r.Retry.After(now.Add(p.cooldown(r.Opened, 1) + clockSlack)) {
		r.Retry = now.Truncate(time.Millisecond)
	}
	if r.Lease.After(now.Add(p.ProbeLease + clockSlack)) {
		r.Probe, r.Lease = "", time.Time{}
	}
	return r
}

// shift moves all times, when it turns out that the clock that they were taken from was wrong.
func (r Record) shift(by time.Duration) Record {
	for _, t := range []*time.Time{&r.Retry, &r.Lease, &r.Reported} {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	return r
}
