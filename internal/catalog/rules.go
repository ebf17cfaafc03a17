package catalog

import (
	"maps"
	"slices"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// UserRules are all rules that count each user alone, by id.
func (s *Snapshot) UserRules() []quota.Limited {
	var rules []quota.Limited
	for _, name := range slices.Sorted(maps.Keys(s.rule)) {
		if rule := s.rule[name]; rule.Scope == quota.ScopeUser {
			rules = append(rules, rule.Limited())
		}
	}
	return rules
}
