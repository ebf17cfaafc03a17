package quota

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Override is a user's own limit of a USER rule.
type Override struct {
	Rule   id.Quota
	Limit  int64
	Expire time.Time // zero: never
}

// Overrides are those of one user.
type Overrides []Override

// Apply returns rules with the limits that count for the user at an instant. An override ends when its time comes,
// without anybody having to write anything.
func (o Overrides) Apply(rules []Rule, now time.Time) []Limited {
	limited := make([]Limited, len(rules))
	for i, r := range rules {
		limited[i] = Limited{Rule: r, Own: r.Limit}
		if r.Scope != ScopeUser {
			continue
		}
		for _, own := range o {
			if own.Rule == r.ID && (own.Expire.IsZero() || now.Before(own.Expire)) {
				limited[i].Own = own.Limit
			}
		}
	}
	return limited
}
