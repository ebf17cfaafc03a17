package quota

import "context"

// Slices spends SYSTEM rules from what this node leased of them, so that their counters are asked now and then and
// not by every call.
type Slices interface {
	// Spend takes a cost from all rules, or from none. It asks the counters only if what is leased does not suffice.
	Spend(ctx context.Context, rules []Limited, cost Cost) (Decision, error)
	// GiveBack undoes a Spend of an operation that another rule denied.
	GiveBack(rules []Limited, cost Cost)
	// States tells how rules stand, as this node knows.
	States(ctx context.Context, rules []Limited) ([]State, error)
}
