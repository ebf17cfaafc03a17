package quota

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/id"
)

// outage decides about rules whose counters cannot be reached, as their on_outage says. It remembers what it admitted:
// this node answers a repetition alike, and settles what was reserved.
type outage struct {
	share *Memory // what this node may admit of LOCAL_SHARE rules
	nodes func() int
}

// take decides an operation. If one of the rules denies, the error is why the counters could not be reached.
func (g *outage) take(o Operation, unreachable error) (Decision, error) {
	for _, r := range o.Rules {
		if r.OnOutage == OutageDeny && !r.Shadow {
			return Decision{}, unreachable
		}
	}
	part := o.only(g.shares(o.Rules))
	d, err := g.share.take(part, false)
	d.States = g.states(o.Rules, part.Rules, d.States)
	return d, err
}

// repeated tells what was admitted before.
func (g *outage) repeated(o *Operation) (d Decision, known bool, err error) {
	if !g.share.knows(o) {
		return Decision{}, false, nil
	}
	part := o.only(g.shares(o.Rules))
	d, err = g.share.take(part, false)
	d.States = g.states(o.Rules, part.Rules, d.States)
	return d, true, err
}

// look tells how rules stand while their counters cannot be reached. Of rules that deny nothing is left.
func (g *outage) look(ctx context.Context, user id.User, rules []Limited) []State {
	shares := g.shares(rules)
	states, err := g.share.States(ctx, user, shares)
	if err != nil {
		shares = nil
	}
	return g.states(rules, shares, states)
}

// shares are the LOCAL_SHARE rules, with the limits of one node. Together the nodes' are not over the rule's.
func (g *outage) shares(rules []Limited) (shares []Limited) {
	nodes := int64(max(1, g.nodes()))
	for _, r := range rules {
		if r.OnOutage == OutageLocalShare {
			r.Own /= nodes
			shares = append(shares, r)
		}
	}
	return shares
}

// states tells of all rules: of those that have a share, how this node's stands.
func (g *outage) states(rules, shares []Limited, ofShares []State) []State {
	states := make([]State, len(rules))
	for i, r := range rules {
		states[i] = State{Rule: r.ID, Limit: r.Own}
		if r.OnOutage == OutageAllow {
			states[i].Remaining = r.Own
		}
		if len(shares) > 0 && shares[0].ID == r.ID {
			states[i] = ofShares[0]
			shares, ofShares = shares[1:], ofShares[1:]
		}
		states[i].ByOutage = true
	}
	return states
}

func (g *outage) giveBack(o Operation) (known bool) {
	if !g.share.knows(&o) {
		return false
	}
	g.share.giveBack(o.only(g.shares(o.Rules)))
	return true
}

// knows tells whether an operation was admitted.
func (m *Memory) knows(o *Operation) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.consumed.empty() && m.reserved.Len() == 0 { // there was no outage
		return false
	}
	_, known, err := m.known(o, m.now())
	return known || err != nil
}
