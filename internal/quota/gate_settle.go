package quota

import (
	"cmp"
	"context"
	"slices"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Commit settles a reservation at its cost; nil: as it was reserved.
func (g *Gate) Commit(ctx context.Context, operation string, tokens *int64) (Decision, error) {
	return g.settle(operation, func(l Ledger) (Decision, error) { return l.Commit(ctx, operation, tokens) })
}

// Release gives a reservation back.
func (g *Gate) Release(ctx context.Context, operation string) (Decision, error) {
	return g.settle(operation, func(l Ledger) (Decision, error) { return l.Release(ctx, operation) })
}

// settle settles a reservation where it was made. The ledger comes first: it knows what other nodes may have settled.
// One that it has lost, or that an outage decided about, ends here too.
func (g *Gate) settle(operation string, in func(Ledger) (Decision, error)) (Decision, error) {
	known, others := g.node.reservation(operation)
	if known && !others {
		return in(g.node)
	}
	var last Ledger = g.ledger
	byOutage, _ := g.user.share.reservation(operation)
	if byOutage {
		last = g.user.share
	}
	d, err := in(last)
	for i := range d.States {
		d.States[i].ByOutage = byOutage
	}
	if f, ok := fault.As(err); known && (err == nil || ok && f.Kind == fault.NotFound) {
		node, nodeErr := in(g.node)
		if err == nil && nodeErr == nil {
			d.States = byRule(slices.Concat(node.States, d.States))
		}
	}
	return d, err
}

// States tells how rules stand for a user, in one round trip. It tells so, too, of rules whose counters cannot be
// reached.
func (g *Gate) States(ctx context.Context, user id.User, rules []Limited) ([]State, error) {
	var node, system, last []Limited
	for _, r := range rules {
		switch r.Scope {
		case ScopeNode:
			node = append(node, r)
		case ScopeSystem:
			system = append(system, r)
		default:
			last = append(last, r)
		}
	}
	states, err := g.node.States(ctx, user, node)
	if err != nil {
		return nil, err
	}
	states = append(states, g.slicesStates(ctx, user, system)...)
	if len(last) > 0 {
		of, err := g.ledger.States(ctx, user, last)
		if unavailable(err) {
			of, err = g.user.look(ctx, user, last), nil
		}
		if err != nil {
			return nil, err
		}
		states = append(states, of...)
	}
	return byRule(states), nil
}

// slicesStates tells how SYSTEM rules stand.
func (g *Gate) slicesStates(ctx context.Context, user id.User, rules []Limited) []State {
	if len(rules) == 0 {
		return nil
	}
	if g.slices != nil && !g.ledger.givenUp.Load() {
		if states, err := g.slices.States(ctx, rules); err == nil {
			return states
		}
	}
	return g.system.look(ctx, user, rules)
}

// Reset forgets what a user used of a USER rule. What is held stays held.
func (g *Gate) Reset(ctx context.Context, user id.User, rule Limited) (State, error) {
	if rule.Scope != ScopeUser {
		return State{}, fault.Invalid(fault.Violation{Field: "quota_id", Description: "it counts all users together: only what single users used can be reset"})
	}
	s, err := g.ledger.Reset(ctx, user, rule)
	if err == nil {
		_, err = g.user.share.Reset(ctx, user, rule)
	}
	return s, err
}

func byRule(states []State) []State {
	for i := 1; i < len(states); i++ {
		if states[i].Rule < states[i-1].Rule { // often they are in order already
			slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.Rule, b.Rule) })
			break
		}
	}
	return states
}
