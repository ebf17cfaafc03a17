package redisstore

import (
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
)

const (
	// sliceLease is how long Redis holds a slice for a node that it hears nothing of.
	sliceLease = 3 * time.Second
	// sliceTerm is how long the node spends it, from before it asked: less, so that clocks may differ in speed.
	sliceTerm = sliceLease - 200*time.Millisecond
	// sliceRenewal is about how often a slice is renewed: it is so large that it lasts twice as long.
	sliceRenewal = 500 * time.Millisecond
	// sliceDoubt is how long an operation may be undone for nothing. Until then it is not reported, but held.
	sliceDoubt = 500 * time.Millisecond
	// sliceIdle is how long nobody needs a slice until it goes back.
	sliceIdle = 750 * time.Millisecond
	// slicePause is how long nobody asks again for what was not there.
	slicePause = 50 * time.Millisecond
	// sliceBreath is for how long it is not asked again, at the least.
	sliceBreath = 5 * time.Millisecond
	// sliceTick is how often a slice is looked at, whether anybody spends it or not.
	sliceTick = 200 * time.Millisecond
	// sliceProbe is how long a Redis that failed is not asked again; meanwhile callers fail at once.
	sliceProbe = 150 * time.Millisecond
)

// verdict is what becomes of a request to spend.
type verdict int

const (
	waits verdict = iota // until the slice was renewed
	taken
	refused
	failed
)

// slice is what a node leased of a SYSTEM rule. It decides and counts; whoever owns it asks Redis what it wants to
// ask, and tells the answer. It is not safe for concurrent use.
type slice struct {
	limit   int64
	shadow  bool // counts, never denies, leases nothing
	places  bool // of calls at a time: nothing is spent, there must be some
	retired bool // gives everything back

	free   int64     // leased and not spent
	leased int64     // held in Redis, when it last answered
	ends   time.Time // when it may no longer be spent

	// All units ever spent; those that Redis charged as far as is known; those that it was told to charge; those that
	// were spent when the mark was set. Each is at most the one before or, of the last two, spent.
	spent, charged, reported, mark int64
	marked                         time.Time

	sequence int64
	asked    time.Time
	demand   int64 // units spent in the last sliceRenewal, about
	counted  int64 // spent, when the demand was last counted
	low      int64 // of free units, when to renew
	changed  bool  // the limit

	known              bool // what Redis last said:
	used, others, room int64
	reset, answered    time.Time
	denial             denial
	failure            error

	queue   []*waiter
	touched time.Time
}

// denial is what Redis said when it could not give more units, beyond those that the node keeps.
type denial struct {
	units int64     // fewer might have been there
	until time.Time // when to ask again
	retry time.Time // when there might be so many, if not never
}

// waiter is a caller who waits for units.
type waiter struct {
	cost   int64
	result chan verdict // holds one
}

// sliceRequest is what slice.lua wants to know.
type sliceRequest struct {
	sent                     time.Time
	limit                    int64
	sequence, total, charged int64
	keep, need, least, want  int64
}

// sliceAnswer is what it answers.
type sliceAnswer struct {
	granted int64
	state   quota.State
	denied  bool
}

// adopt takes over what may change of a rule while it counts. A lower limit holds at once: what is leased goes back.
func (s *slice) adopt(rule *quota.Limited) {
	s.shadow = rule.Shadow
	if s.limit == rule.Own {
		return
	}
	if rule.Own < s.limit {
		s.free = 0
	}
	s.limit, s.changed, s.denial = rule.Own, true, denial{}
}

// spend takes units, or says that they are not to be had, or that it takes an answer to know.
func (s *slice) spend(now time.Time, cost int64) verdict {
	s.touched = now
	if len(s.queue) > 0 && s.failure == nil { // they came first
		return waits
	}
	return s.decide(now, cost)
}

func (s *slice) decide(now time.Time, cost int64) verdict {
	switch {
	case s.fits(now, cost):
		if !s.places {
			s.spent += cost
		}
		if !s.places && !s.shadow {
			s.free -= cost
		}
		return taken
	case s.failure != nil:
		return failed
	case s.denies(now, cost):
		return refused
	default:
		return waits
	}
}

func (s *slice) fits(now time.Time, cost int64) bool {
	switch {
	case s.shadow:
		return true
	case s.places:
		return s.known && cost <= s.room && now.Before(s.ends)
	case cost == 0:
		return s.known
	default:
		return cost <= s.free && now.Before(s.ends)
	}
}

// denies tells whether Redis denied as much lately.
func (s *slice) denies(now time.Time, cost int64) bool {
	more := cost - s.free
	return now.Before(s.denial.until) && more >= s.denial.units && more > s.room
}

// undo gives back what an operation spent. What was reported stays charged: it was long ago.
func (s *slice) undo(cost int64) {
	if s.places {
		return
	}
	cost = min(cost, s.spent-s.reported)
	s.spent -= cost
	s.mark = min(s.mark, s.spent)
	if !s.shadow {
		s.free += cost
	}
}

// idle tells whether nobody needs the slice.
func (s *slice) idle(now time.Time) bool {
	return len(s.queue) == 0 && now.Sub(s.touched) >= sliceIdle
}

// over tells whether nothing is left to do for a slice that was retired: Redis knows all and holds nothing, or charges
// what it holds, or doesn't answer.
func (s *slice) over(now time.Time) bool {
	switch {
	case len(s.queue) > 0:
		return false
	case s.leased > 0:
		return !now.Before(s.ends)
	}
	return s.spent == s.charged || s.failure != nil && now.Sub(s.touched) >= sliceLease
}

// due tells whether Redis should be asked.
func (s *slice) due(now time.Time) bool {
	since := now.Sub(s.asked)
	switch {
	case s.failure != nil:
		return since >= sliceProbe
	case len(s.queue) > 0 || !s.known || s.changed || s.retired:
		return true
	case s.places:
		return since >= sliceRenewal
	case s.free < s.low && !s.denies(now, s.free+1):
		return true
	case s.spent > s.charged && now.Sub(s.marked) >= sliceDoubt:
		return true
	default:
		return (s.free > 0 || s.spent > s.charged) && since >= sliceLease/3
	}
}

// ask prepares a request.
func (s *slice) ask(now time.Time) sliceRequest {
	ended := s.leased > 0 && !now.Before(s.ends)
	if ended || s.shadow || s.retired {
		s.free = 0
	}
	charged := s.charged
	switch {
	case ended: // Redis charges what it held, unless it hears of this before
		charged = min(s.spent, s.charged+s.leased)
		s.reported, s.mark, s.marked = s.spent, s.spent, now
	case s.retired:
		s.reported, s.mark, s.marked = s.spent, s.spent, now
	case now.Sub(s.marked) >= sliceDoubt:
		s.reported, s.mark, s.marked = s.mark, s.spent, now
	}
	s.sequence++
	r := sliceRequest{sent: now, limit: s.limit, sequence: s.sequence, total: s.reported, charged: charged, keep: s.free + s.spent - s.reported}
	s.count(now)
	for i, w := range s.queue {
		r.need += w.cost
		if i == 0 || w.cost < r.least {
			r.least = w.cost
		}
	}
	r.need, r.least = max(0, r.need-s.free), max(0, r.least-s.free)
	switch {
	case s.places || s.shadow:
		r.need = 0
	case !s.retired:
		r.want = max(0, 2*s.demand-s.free)
	}
	s.asked, s.changed = now, false
	return r
}

// count forgets the demand as fast as time goes by, and adds what was spent since.
func (s *slice) count(now time.Time) {
	since := min(now.Sub(s.asked), sliceRenewal)
	s.demand += max(0, s.spent-s.counted) - s.demand*since.Milliseconds()/sliceRenewal.Milliseconds()
	s.counted = s.spent
}

// hear takes over an answer, and serves who waits for it.
func (s *slice) hear(now time.Time, r sliceRequest, a sliceAnswer) {
	s.failure, s.known, s.answered = nil, true, now
	s.ends, s.leased, s.charged = r.sent.Add(sliceTerm), r.keep+a.granted, r.total
	if r.limit == s.limit {
		s.free += a.granted
	}
	s.low = s.free / 2
	s.used, s.others, s.reset = a.state.Used, max(0, a.state.Held-s.leased), a.state.Reset
	s.room = max(0, r.limit-a.state.Used-a.state.Held)
	s.denial = denial{}
	if a.denied && r.limit == s.limit {
		s.denial = newDenial(now, r, a)
	}
	s.serve(now)
}

func newDenial(now time.Time, r sliceRequest, a sliceAnswer) denial {
	d := denial{units: 1, until: now.Add(slicePause)}
	if r.need == 0 || a.granted < r.need {
		d.units = max(1, r.least)
	}
	if wait := a.state.RetryAfter; wait > 0 {
		d.retry = now.Add(wait)
		d.until = now.Add(min(slicePause, max(wait, sliceBreath)))
	}
	return d
}

// fail serves who waits, with what there is.
func (s *slice) fail(now time.Time, err error) {
	s.failure, s.denial = err, denial{}
	s.serve(now)
}

func (s *slice) serve(now time.Time) {
	waiting := s.queue
	s.queue = nil
	for _, w := range waiting {
		if v := s.decide(now, w.cost); v != waits {
			w.result <- v
		} else {
			s.queue = append(s.queue, w)
		}
	}
}

// leave is for a waiter who doesn't wait any longer, maybe with what he no longer wants.
func (s *slice) leave(w *waiter) {
	s.queue = slices.DeleteFunc(s.queue, func(other *waiter) bool { return other == w })
	select {
	case v := <-w.result:
		if v == taken {
			s.undo(w.cost)
		}
	default:
	}
}

// state tells how the rule stands, as far as this node knows. What it leased is not held to itself.
func (s *slice) state(rule *quota.Limited) quota.State {
	st := quota.State{Rule: rule.ID, Limit: s.limit, Used: s.used + s.spent - s.charged, Held: s.others}
	st.Remaining = max(0, st.Limit-st.Used-st.Held)
	if st.Used > 0 {
		st.Reset = s.reset
	}
	return st
}

// retryAfter is how long to wait with a cost that was denied.
func (s *slice) retryAfter(now time.Time, cost int64) time.Duration {
	if cost > s.limit {
		return -time.Millisecond
	}
	return max(slicePause, s.denial.retry.Sub(now))
}
