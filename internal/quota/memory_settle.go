package quota

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Commit settles a reservation at its cost; nil: as it was reserved.
func (m *Memory) Commit(_ context.Context, operation string, tokens *int64) (Decision, error) {
	return m.settle(operation, committed, tokens)
}

// Release gives a reservation back; also one that was charged because it was abandoned.
func (m *Memory) Release(_ context.Context, operation string) (Decision, error) {
	return m.settle(operation, released, nil)
}

func (m *Memory) settle(operation string, to state, tokens *int64) (Decision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	r, ok := m.reserved.Get(operation)
	if !ok || now.After(r.forget) {
		return Decision{}, fault.Missing("operation", operation)
	}
	cost := r.cost
	switch {
	case to == released:
		cost = Cost{}
	case tokens != nil:
		cost.Tokens = *tokens
	}
	if r.state != taken {
		if r.state != to {
			return Decision{}, settledBefore(r.state)
		}
		if r.tokens != cost.Tokens {
			return Decision{}, CommittedOtherwise(operation)
		}
	}
	counters, err := m.open(r.user, r.rules, now)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Admitted: true, Repeated: r.state != taken, Expire: r.expire, States: make([]State, len(r.rules)), Settled: Settled{r.user, r.tool, cost, r.note}}
	if r.state == taken {
		for i, c := range counters {
			c.settle(r.leases[i], cost.In(r.rules[i].Unit), now)
		}
		r.state, r.tokens, r.forget = to, cost.Tokens, now.Add(rememberSettled)
	}
	d.look(r.rules, counters)
	return d, nil
}

func settledBefore(s state) error {
	message := "the reservation was committed before"
	if s == released {
		message = "the reservation was released before"
	}
	return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonOperationSettled, Message: message}
}

// giveBack undoes an operation that others denied, and forgets it. Its rules are those that it took from here.
func (m *Memory) giveBack(o Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	before, known, err := m.known(&o, now)
	if !known || err != nil {
		return
	}
	r := before.reservation
	if r != nil {
		if r.state != taken {
			return
		}
		o.Rules = r.rules
		m.reserved.Remove(o.ID)
	} else {
		m.consumed.remove(before.key)
	}
	counters, err := m.open(o.User, o.Rules, now)
	if err != nil {
		return // then they are gone
	}
	for i, c := range counters {
		if r != nil {
			c.settle(r.leases[i], 0, now)
		} else {
			c.charged.refund(o.Cost.In(o.Rules[i].Unit), before.consumed)
		}
	}
}

// reservation tells whether a reservation is known, and whether it has rules that are counted elsewhere.
func (m *Memory) reservation(operation string) (known, others bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.reserved.Peek(operation)
	if !ok || m.now().After(r.forget) {
		return false, false
	}
	return true, r.others
}

// States tells how rules stand for a user.
func (m *Memory) States(_ context.Context, user id.User, rules []Limited) ([]State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counters, err := m.open(user, rules, m.now())
	if err != nil {
		return nil, err
	}
	d := Decision{States: make([]State, len(rules))}
	d.look(rules, counters)
	return d.States, nil
}

// Reset forgets what was used. What is held stays held.
func (m *Memory) Reset(_ context.Context, user id.User, rule Limited) (State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counters, err := m.open(user, []Limited{rule}, m.now())
	if err != nil {
		return State{}, err
	}
	c := counters[0]
	c.charged = newTally(&rule.Rule)
	c.advance(m.now())
	return c.state(&rule), nil
}
