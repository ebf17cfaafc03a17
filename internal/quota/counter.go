package quota

import (
	"container/heap"
	"slices"
	"time"
)

// counter counts one rule in memory.
type counter struct {
	charged tally
	last    time.Time // when it was last advanced to
	leases  leases
	held    int64
	keep    bool // what is abandoned is charged
}

// lease is what one operation holds of a counter.
type lease struct {
	units int64
	end   time.Time
	place int // among the leases; -1: settled, or run out
}

func newCounter(r *Rule) *counter {
	return &counter{charged: newTally(r), keep: r.OnAbandoned == AbandonedCharge}
}

// advance gives back or charges what nobody settled, as it would have been when its lease ran out, and forgets what has
// come back by now.
func (c *counter) advance(now time.Time) {
	if now.Before(c.last) {
		c.shorten(now)
	}
	c.last = now
	for len(c.leases) > 0 && !c.leases[0].end.After(now) {
		over := heap.Pop(&c.leases).(*lease)
		c.held -= over.units
		if c.keep {
			c.charged.advance(over.end)
			c.charged.charge(over.units, over.end)
		}
	}
	c.charged.advance(now)
}

// longestLease is how long a reservation may be held, as requests are validated.
const longestLease = 24 * time.Hour

// shorten has leases from when the clock was ahead end no later than one that begins now could.
func (c *counter) shorten(now time.Time) {
	ends := now.Truncate(time.Millisecond).Add(longestLease)
	for _, l := range c.leases {
		if l.end.After(ends) {
			l.end = ends
		}
	}
	heap.Init(&c.leases)
}

// idle tells that the counter is as good as a new one.
func (c *counter) idle(now time.Time) bool {
	c.advance(now)
	return c.held == 0 && c.charged.used() == 0
}

func (c *counter) fits(units, limit int64) bool { return c.charged.used()+c.held+units <= limit }

func (c *counter) hold(units int64, end time.Time) *lease {
	l := &lease{units: units, end: end}
	heap.Push(&c.leases, l)
	c.held += units
	return l
}

// settle charges what a lease cost in the end, of which a part may be charged already, because it was abandoned. A nil
// lease held nothing.
func (c *counter) settle(l *lease, cost int64, now time.Time) {
	charged := int64(0)
	switch {
	case l == nil:
	case l.place >= 0:
		heap.Remove(&c.leases, l.place)
		c.held -= l.units
	case c.keep:
		charged = l.units
	}
	if cost > charged {
		c.charged.charge(cost-charged, now)
	}
	if cost < charged {
		c.charged.refund(charged-cost, l.end)
	}
}

func (c *counter) state(r *Limited) State {
	s := State{Rule: r.ID, Limit: r.Own, Used: c.charged.used(), Held: c.held}
	s.Remaining = max(0, s.Limit-s.Used-s.Held)
	if s.Used > 0 {
		s.Reset = c.charged.falls(s.Used - 1)
	}
	return s
}

// leasesAhead is at how many leases wait looks.
const leasesAhead = 100

// wait is how long to wait until so many units fit, if nobody takes or settles any; negative: they never do. It lets
// time pass on a copy, from the end of one lease to that of the next.
func (c *counter) wait(units, limit int64, now time.Time) time.Duration {
	if units > limit {
		return -time.Millisecond
	}
	ahead := &counter{charged: c.charged.clone(), held: c.held, keep: c.keep}
	ends := c.leases.first(leasesAhead)
	after := now.Truncate(time.Millisecond)
	begin := after
	for i := 0; ; i++ {
		if room := limit - ahead.held - units; room >= 0 {
			at := ahead.charged.falls(room)
			if at.Before(after) {
				at = after
			}
			if i == len(ends) || at.Before(ends[i].end) {
				return at.Sub(begin)
			}
		}
		if i == len(ends) {
			return after.Sub(begin)
		}
		after = ends[i].end
		ahead.held -= ends[i].units
		ahead.charged.advance(after)
		if ahead.keep {
			ahead.charged.charge(ends[i].units, after)
		}
	}
}

// leases is a heap: the first is the one that ends first.
type leases []*lease

// first returns the leases that end first, at most so many, by their ends. Those that follow a lease in the heap's order
// are at twice its place, and one further.
func (l leases) first(atMost int) (first []*lease) {
	next := l[:min(1, len(l))]
	for len(next) > 0 && len(first) < atMost {
		k := 0
		for i := range next {
			if next[i].end.Before(next[k].end) {
				k = i
			}
		}
		one := next[k]
		first = append(first, one)
		below := min(2*one.place+1, len(l))
		next = slices.Concat(next[:k], next[k+1:], l[below:min(below+2, len(l))])
	}
	return first
}

// Len implements heap.Interface.
func (l leases) Len() int { return len(l) }

// Less implements heap.Interface.
func (l leases) Less(i, j int) bool { return l[i].end.Before(l[j].end) }

// Swap implements heap.Interface.
func (l leases) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push implements heap.Interface.
func (l *leases) Push(x any) {
	added := x.(*lease)
	added.place = len(*l)
	*l = append(*l, added)
}

// Pop implements heap.Interface.
func (l *leases) Pop() any {
	last := len(*l) - 1
	removed := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	removed.place = -1
	return removed
}
