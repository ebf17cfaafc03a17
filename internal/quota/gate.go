package quota

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// GateOptions is what a gate is made of.
type GateOptions struct {
	// Ledger holds the counters of USER rules, and of SYSTEM rules that something is reserved of.
	Ledger Ledger
	// Slices spends SYSTEM rules. Without it, operations that they apply to are faults.
	Slices Slices
	// Nodes is how many nodes share a limit while its counters cannot be reached; nil: this one has all of it.
	Nodes func() int
	// Outage is told when counters cannot be reached, and when they can again; nil: nobody is.
	Outage func(begins bool)
	// Now is the clock of what is counted in memory; nil: the system's.
	Now func() time.Time
}

// Gate decides operations over rules of all scopes. It is a Ledger itself. See the package's documentation.
type Gate struct {
	node   *Memory // NODE rules, and which operations took in front of the ledger
	front  inFlight
	slices Slices
	ledger *breaker
	system outage // SYSTEM rules, when what is leased does not suffice and nothing can be leased
	user   outage // rules of the ledger
	counts counts
}

var _ Ledger = (*Gate)(nil)

// NewGate returns a gate whose memory is empty.
func NewGate(o GateOptions) *Gate {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Nodes == nil {
		o.Nodes = func() int { return 1 }
	}
	if o.Outage == nil {
		o.Outage = func(bool) {}
	}
	g := &Gate{node: NewMemory(o.Now), slices: o.Slices}
	g.system, g.user = outage{NewMemory(o.Now), o.Nodes}, outage{NewMemory(o.Now), o.Nodes}
	g.ledger = newBreaker(o.Ledger, o.Outage)
	return g
}

// scopes are an operation's rules by who decides about them.
type scopes struct {
	node   []Limited
	slices []Limited // SYSTEM rules of what is consumed
	ledger []Limited // the others
}

// split divides an operation's rules. They are large: those that stand together are not copied.
func split(o *Operation) (s scopes) {
	for i := 0; i < len(o.Rules); {
		of, end := s.of(&o.Rules[i], o.Lease), i+1
		for end < len(o.Rules) && s.of(&o.Rules[end], o.Lease) == of {
			end++
		}
		if *of == nil {
			*of = o.Rules[i:end:end]
		} else {
			*of = append(*of, o.Rules[i:end]...)
		}
		i = end
	}
	return s
}

// of is where a rule belongs.
func (s *scopes) of(r *Limited, lease time.Duration) *[]Limited {
	switch {
	case r.Scope == ScopeNode:
		return &s.node
	case r.Scope == ScopeSystem && lease == 0:
		return &s.slices
	default:
		return &s.ledger
	}
}

var errNoSlices = errors.New("SYSTEM rules cannot be decided: this gate has nothing to lease slices from")

// Take consumes or reserves. A denial tells the states of the rules that were asked last, of which some denied.
//
// A tool without rules admits everything. What is reserved of it is remembered by this node, so that settling it here
// is answered; nothing is written, so other nodes do not know the operation.
func (g *Gate) Take(ctx context.Context, o Operation) (Decision, error) {
	d, err := g.take(ctx, o)
	g.counts.taken(o.Rules, &d, err)
	return d, err
}

func (g *Gate) take(ctx context.Context, o Operation) (Decision, error) {
	s := split(&o)
	if g.slices == nil && slices.ContainsFunc(o.Rules, func(r Limited) bool { return r.Scope == ScopeSystem }) {
		return Decision{}, errNoSlices
	}
	if len(s.node)+len(s.slices) == 0 && (len(s.ledger) > 0 || o.Lease == 0) {
		return g.takeLast(ctx, &o, s.ledger)
	}
	turn := consumedKey{o.User, o.ID}
	if err := g.front.enter(ctx, turn); err != nil {
		return Decision{}, err
	}
	defer g.front.leave(turn)
	front, err := g.takeFront(ctx, &o, &s)
	if err != nil || !front.Admitted {
		return front, err
	}
	if len(s.ledger) == 0 {
		front.States = byRule(front.States)
		return front, nil
	}
	last, err := g.takeLast(ctx, &o, s.ledger)
	switch {
	case notAsked(err) && front.Repeated, err != nil && unsure(err):
		// The ledger may have been charged. What was taken here stays so for whoever repeats the operation, which is
		// told from others by that it is remembered.
	case err != nil || !last.Admitted || last.Repeated && !front.Repeated:
		g.giveBack(&o, &s)
	}
	if err != nil || !last.Admitted {
		return last, err
	}
	return merge(front, last), nil
}

// unsure tells whether the ledger may have been charged although it did not say so.
func unsure(err error) bool {
	f, ok := fault.As(err)
	return !notAsked(err) && (!ok || f.Kind == fault.Unavailable)
}

// takeFront takes from NODE and SYSTEM rules, and tells the states of the former first. The node remembers that it did.
func (g *Gate) takeFront(ctx context.Context, o *Operation, s *scopes) (Decision, error) {
	node, err := g.node.take(o.only(s.node), len(s.ledger) > 0)
	if err != nil || !node.Admitted || len(s.slices) == 0 {
		return node, err
	}
	node.States = append(make([]State, 0, len(o.Rules)), node.States...) // with room for all
	if node.Repeated {
		node.States = append(node.States, g.slicesStates(ctx, o.User, s.slices)...)
		return node, nil
	}
	system, err := g.slices.Spend(ctx, s.slices, o.Cost)
	if unavailable(err) {
		system, err = g.system.take(o.only(s.slices), err)
	}
	if err != nil || !system.Admitted {
		g.node.giveBack(o.only(s.node))
		return system, err
	}
	node.States = append(node.States, system.States...)
	return node, nil
}

// takeLast takes from the rules of the ledger.
func (g *Gate) takeLast(ctx context.Context, o *Operation, rules []Limited) (Decision, error) {
	if len(rules) == 0 {
		return Decision{Admitted: true}, nil
	}
	part := o.only(rules)
	if d, known, err := g.user.repeated(&part); known || err != nil {
		return d, err
	}
	d, err := g.ledger.Take(ctx, part)
	if unavailable(err) {
		return g.user.take(part, err)
	}
	return d, err
}

// giveBack gives back what was taken in front of the ledger, last first.
func (g *Gate) giveBack(o *Operation, s *scopes) {
	if len(s.slices) > 0 && !g.system.giveBack(o.only(s.slices)) {
		g.slices.GiveBack(s.slices, o.Cost)
	}
	g.node.giveBack(o.only(s.node))
}

// only is the operation with some of its rules.
func (o *Operation) only(rules []Limited) Operation {
	part := *o
	part.Rules = rules
	return part
}

// merge makes one answer of two over parts of the rules, which both admitted.
func merge(front, last Decision) Decision {
	all := Decision{Admitted: true, Repeated: front.Repeated && last.Repeated, Over: front.Over || last.Over,
		Expire: front.Expire, States: byRule(append(front.States, last.States...))}
	if last.Expire.After(all.Expire) {
		all.Expire = last.Expire
	}
	return all
}
