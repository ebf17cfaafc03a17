package quota

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// tally is what was charged over a window and still counts. What has come back stays so, if clocks go back, and what
// has not, too. But what was charged further ahead of the clock than a window's length, or after the next period of the
// calendar, was dated by a clock that was wrong: it counts as if it were charged now.
type tally interface {
	// advance forgets what has come back by now.
	advance(now time.Time)
	// charge counts units as taken at an instant, to which the tally was advanced.
	charge(units int64, at time.Time)
	// refund takes back units that were charged at an instant, as far as they still count.
	refund(units int64, at time.Time)
	// used is how many units count.
	used() int64
	// falls is when no more than so many units count, if nothing else is charged.
	falls(to int64) time.Time
	clone() tally
}

func newTally(r *Rule) tally {
	switch w := r.Window; {
	case r.Unit == UnitConcurrentCalls:
		return places{}
	case w.Calendar != nil:
		return &period{window: w}
	case w.TokenBucket != nil:
		return &bucket{rate: w.TokenBucket.RefillPerSecond}
	default:
		return &sliding{window: w}
	}
}

// places are held, never used up.
type places struct{}

func (places) advance(time.Time)       {}
func (places) charge(int64, time.Time) {}
func (places) refund(int64, time.Time) {}
func (places) used() int64             { return 0 }
func (places) falls(int64) time.Time   { return time.Time{} }
func (places) clone() tally            { return places{} }

// sliding counts in the slots of a fixed window.
type sliding struct {
	window Window
	cells  []cell // by slot
	total  int64
}

type cell struct{ slot, units int64 }

func (s *sliding) advance(now time.Time) {
	slot := s.window.Slot(now)
	if len(s.cells) > 0 && s.cells[0].slot-slot > Slots {
		s.cells = []cell{{slot, s.total}}
	}
	oldest, gone := slot-Slots, 0
	for gone < len(s.cells) && s.cells[gone].slot < oldest {
		s.total -= s.cells[gone].units
		gone++
	}
	s.cells = slices.Delete(s.cells, 0, gone)
}

func (s *sliding) charge(units int64, at time.Time) {
	slot := s.window.Slot(at)
	if len(s.cells) > 0 { // if the clock went back, together with what was charged before
		slot = max(slot, s.cells[0].slot)
	}
	i, found := s.find(slot)
	if !found {
		s.cells = slices.Insert(s.cells, i, cell{slot: slot})
	}
	s.cells[i].units += units
	s.total += units
}

func (s *sliding) find(slot int64) (int, bool) {
	return slices.BinarySearchFunc(s.cells, slot, func(c cell, slot int64) int { return cmp.Compare(c.slot, slot) })
}

func (s *sliding) refund(units int64, at time.Time) {
	i, found := s.find(s.window.Slot(at))
	if !found {
		return
	}
	units = min(units, s.cells[i].units)
	s.total -= units
	if s.cells[i].units -= units; s.cells[i].units == 0 {
		s.cells = slices.Delete(s.cells, i, i+1)
	}
}

func (s *sliding) used() int64 { return s.total }

func (s *sliding) falls(to int64) (at time.Time) {
	left := s.total
	for i := 0; left > to && i < len(s.cells); i++ {
		left -= s.cells[i].units
		at = s.window.SlotStart(s.cells[i].slot + Slots + 1)
	}
	return at
}

func (s *sliding) clone() tally {
	c := *s
	c.cells = slices.Clone(s.cells)
	return &c
}

// period counts in one period of the calendar.
type period struct {
	window     Window
	start, end time.Time
	since      time.Time // what is charged as of before counted in a period before
	total      int64
}

func (p *period) advance(now time.Time) {
	if !now.Before(p.start) && now.Before(p.end) {
		return
	}
	start, end := p.window.Period(now)
	switch {
	case !now.Before(p.end):
		p.start, p.end, p.since, p.total = start, end, start, 0
	case p.start.After(end):
		p.start, p.end, p.since = start, end, start
	default: // it counts in the next period, and here
		p.since = start
	}
}

func (p *period) charge(units int64, at time.Time) {
	if !at.Before(p.since) {
		p.total += units
	}
}

func (p *period) refund(units int64, at time.Time) {
	if !at.Before(p.since) {
		p.total = max(0, p.total-units)
	}
}

func (p *period) used() int64 { return p.total }

func (p *period) falls(to int64) (at time.Time) {
	if p.total > to {
		at = p.end
	}
	return at
}

func (p *period) clone() tally { c := *p; return &c }

// bucket counts from when it was last full, so that no rounding adds up.
type bucket struct {
	rate  float64 // units per second
	full  int64   // when it was, in microseconds
	taken int64   // since
	left  int64   // of what was taken, what has not come back
}

func (b *bucket) advance(now time.Time) {
	at := now.UnixMicro()
	if float64(b.full-at) > float64(b.taken)*1e6/b.rate {
		b.full = at
	}
	b.left = b.taken - int64(math.Floor(float64(max(0, at-b.full))*b.rate/1e6))
	if b.left <= 0 {
		b.taken, b.left, b.full = 0, 0, max(at, b.full)
	}
}

func (b *bucket) charge(units int64, _ time.Time) {
	b.taken += units
	b.left += units
}

func (b *bucket) refund(units int64, at time.Time) { b.charge(-min(units, b.left), at) }

func (b *bucket) used() int64 { return b.left }

// falls is in whole milliseconds, as retries are.
func (b *bucket) falls(to int64) time.Time {
	wait := float64(max(0, b.taken-to)) * 1e6 / b.rate
	return time.UnixMilli(int64(math.Ceil((float64(b.full) + wait) / 1000)))
}

func (b *bucket) clone() tally { c := *b; return &c }
