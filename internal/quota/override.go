package quota

import (
	"slices"
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

// Apply returns rules with the limits that count for the user at an instant: those that it is given, if no override
// changes them. An override ends when its time comes, without anybody having to write anything.
func (o Overrides) Apply(rules []Limited, now time.Time) []Limited {
	if len(o) == 0 {
		return rules
	}
	rules = slices.Clone(rules)
	for i := range rules {
		r := &rules[i]
		for _, own := range o {
			if own.Rule == r.ID && r.Scope == ScopeUser && (own.Expire.IsZero() || now.Before(own.Expire)) {
				r.Own = own.Limit
			}
		}
	}
	return rules
}
