package health

import "maps"

// Transition is a change of a breaker: of what kind of subject, and to what state. Each probe that is let through is a
// transition to HalfOpen.
type Transition struct {
	Kind string // Subject.Kind
	To   State
}

// Stats is what a Board counts.
type Stats struct {
	// Breakers is how many stand how. (A State that none is in is 0.)
	Breakers map[Transition]int
	// Transitions are those that this node saw, whichever made them.
	Transitions map[Transition]uint64
	// Pending is how many subjects the Shared is yet to be told of.
	Pending int
	// Away: the Shared does not answer.
	Away bool
	// Exchanges with the Shared, and those of them that failed.
	Exchanges, Failures uint64
	// Lost are reports that there was no room for.
	Lost uint64
}

// Stats returns what is counted.
func (b *Board) Stats() Stats {
	b.mu.Lock()
	s := b.counts
	s.Transitions = maps.Clone(s.Transitions)
	s.Pending, s.Away = len(b.dirty), b.away
	b.mu.Unlock()
	s.Breakers = map[Transition]int{}
	now := b.Now()
	b.entries.Range(func(subject, e any) bool {
		s.Breakers[Transition{subject.(Subject).Kind(), e.(*entry).local.Load().State(now)}]++
		return true
	})
	return s
}

// count counts what a change of a record changed of its breaker, and logs it.
func (b *Board) count(s Subject, before, after Record) {
	log := b.options.Logger
	if after.Opened > before.Opened {
		b.counts.Transitions[Transition{s.Kind(), Open}]++
		log.Warn("a breaker opened: its subject is put aside", "subject", s.String(), "failures", after.Failures, "until", after.Retry)
	}
	if after.Opened == 0 && before.Opened > 0 {
		b.counts.Transitions[Transition{s.Kind(), Closed}]++
		log.Info("a breaker closed: its subject works again", "subject", s.String())
	}
	if after.Probe != "" && after.Probe != before.Probe {
		b.counts.Transitions[Transition{s.Kind(), HalfOpen}]++
	}
}
