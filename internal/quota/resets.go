package quota

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Reset is a request to forget what a user has used of a rule.
type Reset struct {
	ID     string // names the request
	User   id.User
	Quota  id.Quota
	Reason string
}

// ResetLog writes down who asked counters to forget, for those who look later. Nothing in it changes.
type ResetLog interface {
	// BeginReset writes a request down, with what was used before, unless it was written down earlier. done says that
	// it was also carried out. Another request under the same id is a fault: ReasonRequestIDReused.
	BeginReset(ctx context.Context, r Reset, used int64) (done bool, err error)
	// EndReset writes down that a request was carried out.
	EndReset(ctx context.Context, request string) error
}

// Resettable are counters that can forget. Ledgers are.
type Resettable interface {
	States(context.Context, id.User, []Limited) ([]State, error)
	Reset(context.Context, id.User, Limited) (State, error)
}

// CarryOut has a rule's counters forget what a user used. It is written down before, so that no reset goes unseen, and
// after: a request that was carried out, as far as the log knows, resets nothing again. One that broke off in
// between is carried out when it is repeated.
func (r Reset) CarryOut(ctx context.Context, log ResetLog, counters Resettable, rule Limited) (State, error) {
	states, err := counters.States(ctx, r.User, []Limited{rule})
	if err != nil {
		return State{}, err
	}
	done, err := log.BeginReset(ctx, r, states[0].Used)
	if err != nil || done {
		return states[0], err
	}
	after, err := counters.Reset(ctx, r.User, rule)
	if err != nil {
		return State{}, err
	}
	return after, log.EndReset(ctx, r.ID)
}
