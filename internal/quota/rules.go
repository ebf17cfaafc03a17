package quota

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// DefaultWarnAt is from which share of the limit on a rule warns that it is near.
const DefaultWarnAt = 0.8

// RulesFor returns the rules that a call of a tool touches: the tool's own and its type's, by id.
func RulesFor(tool, toolType []Rule) []Limited {
	all := make([]Limited, 0, len(tool)+len(toolType))
	for _, rule := range slices.Concat(tool, toolType) {
		all = append(all, rule.Limited())
	}
	slices.SortFunc(all, func(a, b Limited) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// In returns the cost in a rule's unit. Each call holds a place.
func (c Cost) In(unit Unit) int64 {
	if unit == UnitTokens {
		return c.Tokens
	}
	return c.Calls
}

// Near tells whether so much of the limit is used or held that the rule warns of it.
func (r *Rule) Near(s State) bool {
	// Divided, since the product of 0.07 and 100 is more than 7.
	return s.Limit == 0 || float64(s.Used+s.Held)/float64(s.Limit) >= r.WarnAt
}

// MarshalJSON writes a length of time as protos do: "60s".
func (w Window) MarshalJSON() ([]byte, error) {
	type plain Window // without this method
	var fixed string
	if w.Fixed != 0 {
		fixed = strconv.FormatFloat(w.Fixed.Seconds(), 'f', -1, 64) + "s"
	}
	return json.Marshal(struct {
		Fixed string `json:"fixed,omitempty"`
		plain
	}{fixed, plain(w)})
}
