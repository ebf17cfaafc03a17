package quota

import (
	"context"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// ArchivedFrom is the shortest window of rules whose counters are archived. What a shorter one counts comes back by
// itself before anybody could miss it.
const ArchivedFrom = time.Hour

// Archived tells whether a rule's counters are kept in the archive, too. Buckets refill and places are held: neither
// is a quota that somebody paid for.
func (r *Rule) Archived() bool {
	return r.Unit != UnitConcurrentCalls && r.Scope != ScopeNode && (r.Window.Calendar != nil || r.Window.Fixed >= ArchivedFrom)
}

// Archive keeps counters where they outlive the memory that a Ledger counts in. They are absolute: a counter that is
// written twice, or late, counts nothing twice.
type Archive interface {
	// Keep writes counters, except those of which it has a version that is as new. None may be there twice.
	Keep(context.Context, []ArchivedCounter) error
	// Kept returns the counters of a subject.
	Kept(ctx context.Context, subject string) ([]ArchivedCounter, error)
	// Prune forgets counters that had expired by then.
	Prune(context.Context, time.Time) error
}

// CounterName is what a counter is of.
type CounterName struct {
	Subject string // u:<user>, or s:<rule> where all users count together
	Rule    id.Quota
	Shape   string // what is counted, and over what time
}

// ArchivedCounter is how a counter stood. What was held is not part of it.
type ArchivedCounter struct {
	CounterName
	Version int64  // grows with every change
	Content string // the Ledger's
	Expire  time.Time
}
