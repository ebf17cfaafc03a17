package health

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// interval is how often a node tells the others what was reported to it, and hears what was to them. Transport
	// failures, and reports of probes, are told at once.
	interval = 250 * time.Millisecond
	// gap is the least time between two exchanges that are for what must be told at once.
	gap = 10 * time.Millisecond
	// maxSubjects bounds what is known. Then those are forgotten that were not called for the longest time, but for
	// those that are put aside.
	maxSubjects = 10_000
	// maxPending is how many reports of a subject wait to be told one by one.
	maxPending = 128
	// keep is how long a subject is known after its last report.
	keep = 24 * time.Hour
	// sweepInterval is how often subjects are looked for that are known for longer.
	sweepInterval = time.Minute
)

// Board has the records of all subjects. What asks it and what reports to it never waits for anybody, but for Claim,
// which is for the one call that probes.
//
// With a Shared, each node has a copy of all records, never older than a quarter of a second and one exchange, unless
// the Shared does not answer. Reports change the copy at once, and a goroutine, Run, offers the changed records to the
// Shared, whose clock counts: what a node's clock says makes no difference. A record that somebody else changed first
// comes back, and the reports are applied to that one, in their order, and offered again. An offer that got no answer is
// repeated as it was. So nothing is lost, and nothing is counted twice, unless somebody changed a record further before
// this node knew that its offer was taken.
//
// While the Shared is away a node goes on alone: it opens and closes breakers by its own reports, and lets through
// probes of its own. Up to 128 reports of a subject are kept, and counted afterwards as if they came then. When there
// were more, or a probe, two cases are told apart. If nobody else changed the record meanwhile, the node's takes its
// place. Else, or if the Shared lost its records, both are joined: the worse of both counts (Record.Join), and the next
// probe finds out.
//
// A node that is killed takes with it what it did not tell yet: successes of a quarter of a second.
type Board struct {
	options Options
	anchor  atomic.Pointer[anchor]
	entries sync.Map // Subject to *entry
	poked   chan struct{}

	mu      sync.Mutex
	known   int // entries
	dirty   map[*entry]struct{}
	counts  Stats
	away    bool
	sweptAt time.Time

	// exchanging holds a token while somebody talks to the Shared; only he uses these.
	exchanging chan struct{}
	epoch      string
	since      Version
}

// Options is what a Board is made of.
type Options struct {
	// Shared has the records of all nodes; nil: there is one node.
	Shared Shared
	// Policy tells when a subject is put aside. It must not ask the Board.
	Policy func(Subject) Policy
	// Logger is told of breakers that open and close, and of outages of the Shared.
	Logger *slog.Logger
	// Now is the clock; nil: the system's.
	Now func() time.Time
	// Chance returns random numbers from [0, 1); nil: those of math/rand.
	Chance func() float64
}

// anchor is the same instant on the clocks of the Shared and of the node.
type anchor struct{ shared, node time.Time }

// entry is a subject. Only whoever holds the Board's mu changes it.
type entry struct {
	subject Subject
	local   atomic.Pointer[Record] // what counts here
	edits   int                    // changes of local

	version Version // of the shared record that local came from; 0: of none
	base    Record  // that record
	pending []dated // the reports by which local differs from base, oldest first, unless
	drifted bool    // local differs from it by what pending does not tell

	sent     *offered      // an offer whose fate is not known yet; nil: there is none
	claiming chan struct{} // closed when a claim that is under way has its answer; nil: there is none
}

type dated struct {
	Report
	at time.Time // by the clock of the Shared, as far as known
}

// NewBoard returns an empty Board.
func NewBoard(o Options) *Board {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	b := &Board{options: o, poked: make(chan struct{}, 1), dirty: map[*entry]struct{}{}, exchanging: make(chan struct{}, 1)}
	now := o.Now()
	b.anchor.Store(&anchor{shared: now, node: now})
	b.counts.Transitions = map[Transition]uint64{}
	return b
}

// Now is the time by which it is decided what may be called: the Shared's, as far as known.
func (b *Board) Now() time.Time {
	a := b.anchor.Load()
	return a.shared.Add(b.options.Now().Sub(a.node)).Truncate(time.Millisecond).UTC()
}

// Health tells how subjects do, for one call: a breaker is half open if this call may be the probe, or is. It asks the
// memory only.
func (b *Board) Health(call id.Call) func(Subject) Condition {
	return func(s Subject) Condition {
		e := b.find(s)
		if e == nil {
			return Condition{}
		}
		now := b.Now()
		return b.within(e, now).Condition(call, now)
	}
}

// within is an entry's record as it counts at an instant.
func (b *Board) within(e *entry, now time.Time) Record {
	r := *e.local.Load()
	if r.Opened == 0 { // the usual case
		return r
	}
	return r.within(b.options.Policy(e.subject), now)
}

// Score is the share of a subject's recent calls that went well, see Record.Score. It asks the memory only.
func (b *Board) Score(s Subject) float64 {
	e := b.find(s)
	if e == nil {
		return 1
	}
	return e.local.Load().Score(b.Now())
}

// Report tells how a call went; of a call that has a tool and a server, it is told of both. It never waits. A call that
// was let through as a probe and is not made must be reported as Cancelled.
func (b *Board) Report(s Subject, r Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.enter(s)
	if e == nil {
		b.counts.Lost++
		return
	}
	now := b.Now()
	before := *e.local.Load()
	b.set(e, before.Report(r, b.options.Policy(s), now, b.options.Chance()))
	if b.options.Shared == nil {
		return
	}
	switch {
	case e.drifted:
	case len(e.pending) < maxPending:
		e.pending = append(e.pending, dated{r, now})
	default:
		b.drift(e)
	}
	b.dirty[e] = struct{}{}
	if r.Outcome.transportFailure() || before.Opened > 0 {
		b.poke()
	}
}

// Status is how a subject does.
type Status struct {
	Subject Subject
	Record  Record
	// Local: only this node knows, because the Shared does not answer.
	Local bool
}

// List tells how all subjects do, servers first, then tools, each by id.
func (b *Board) List() []Status {
	b.mu.Lock()
	local := b.away
	b.mu.Unlock()
	var all []Status
	now := b.Now()
	b.entries.Range(func(s, e any) bool {
		all = append(all, Status{s.(Subject), b.within(e.(*entry), now), local})
		return true
	})
	slices.SortFunc(all, func(x, y Status) int { return x.Subject.Compare(y.Subject) })
	return all
}

func (b *Board) find(s Subject) *entry {
	e, ok := b.entries.Load(s)
	if !ok {
		return nil
	}
	return e.(*entry)
}

// enter finds a subject, or makes room for it; nil: there is none.
func (b *Board) enter(s Subject) *entry {
	if e := b.find(s); e != nil {
		return e
	}
	if b.known >= maxSubjects {
		b.evict()
		if b.known >= maxSubjects {
			return nil
		}
	}
	e := &entry{subject: s}
	e.local.Store(&Record{})
	b.entries.Store(s, e)
	b.known++
	return e
}

// evict forgets a tenth of what is known, of that whose breakers are closed.
func (b *Board) evict() {
	var closed []*entry
	b.entries.Range(func(_, e any) bool {
		if e := e.(*entry); e.local.Load().Opened == 0 && e.claiming == nil {
			closed = append(closed, e)
		}
		return true
	})
	slices.SortFunc(closed, func(x, y *entry) int { return x.local.Load().Reported.Compare(y.local.Load().Reported) })
	for _, e := range closed[:min(len(closed), maxSubjects/10)] {
		b.forget(e)
	}
}

func (b *Board) forget(e *entry) {
	b.entries.Delete(e.subject)
	delete(b.dirty, e)
	b.known--
}

// sweep forgets what was not called for long, now and then.
func (b *Board) sweep() {
	now := b.Now()
	if now.Sub(b.sweptAt).Abs() < sweepInterval {
		return
	}
	b.sweptAt = now
	b.entries.Range(func(_, e any) bool {
		if e := e.(*entry); now.Sub(e.local.Load().Reported) > keep && e.claiming == nil {
			b.forget(e)
		}
		return true
	})
}

// drift makes the record of an entry one that the reports that wait cannot explain.
func (b *Board) drift(e *entry) { e.drifted, e.pending = true, nil }

// set changes what counts here.
func (b *Board) set(e *entry, r Record) {
	before := *e.local.Load()
	if before == r {
		return
	}
	e.local.Store(&r)
	e.edits++
	b.count(e.subject, before, r)
}

func (b *Board) poke() {
	select {
	case b.poked <- struct{}{}:
	default:
	}
}

// Run tells the Shared what was reported and hears what is new, until ctx ends.
func (b *Board) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	b.poke()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			if b.options.Shared != nil { // a farewell
				limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				b.Sync(limit)
			}
			return
		case <-ticker.C:
		case <-b.poked:
			if b.isAway() { // it is asked often enough
				continue
			}
			select { // what comes close together goes together
			case <-time.After(gap - time.Since(last)):
			case <-ctx.Done():
			}
		}
		last = time.Now()
		if b.options.Shared != nil {
			b.Sync(ctx)
		}
		b.mu.Lock()
		b.sweep()
		b.mu.Unlock()
	}
}

func (b *Board) isAway() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away
}
