package quota

import (
	"context"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Operation is a request to take units, named by its caller.
type Operation struct {
	ID    string
	User  id.User
	Tool  id.Tool
	Rules []Limited // every rule that applies, by id
	Cost  Cost
	// Lease, if not zero, makes it a reservation, which is held so long.
	Lease time.Duration
	// Note is the caller's, of a reservation: another note is another content, and settling tells it.
	Note string
}

// Limited is a rule with the limit that counts for the user.
type Limited struct {
	Rule
	Own int64 // the limit, or the user's override
}

// Limited is the rule with its own limit.
func (r *Rule) Limited() Limited { return Limited{Rule: *r, Own: r.Limit} }

// Decision is what became of an operation.
type Decision struct {
	Admitted bool
	States   []State // every rule, by id
	// Denied are the rules that denied it, by id.
	Denied []id.Quota
	Expire time.Time // of a reservation
	// Repeated says that the operation was decided before; this is what was decided then.
	Repeated bool
	// Over says that it is a reservation which is taken again, and was settled.
	Over bool
	// Settled is what a reservation that was settled now, or before, came to.
	Settled Settled
}

// Settled is what a reservation came to. One that was released cost nothing.
type Settled struct {
	User id.User
	Tool id.Tool
	Cost Cost
	Note string
}

// Ledger holds counters. Its clock decides, not its callers'. Every operation is all or nothing and can be
// repeated: what was admitted or settled is told again, with the rules as they stand by then. What was denied charged
// nothing, and is decided anew.
type Ledger interface {
	// Take consumes or reserves.
	Take(context.Context, Operation) (Decision, error)
	// Commit settles a reservation at its cost; nil: as it was reserved.
	Commit(ctx context.Context, operation string, tokens *int64) (Decision, error)
	// Release gives a reservation back.
	Release(ctx context.Context, operation string) (Decision, error)
	// States tells how rules stand for a user, in one round trip.
	States(context.Context, id.User, []Limited) ([]State, error)
	// Reset forgets what was used.
	Reset(context.Context, id.User, Limited) (State, error)
}
