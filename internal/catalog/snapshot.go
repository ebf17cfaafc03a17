// Package catalog holds what tools exist: tool types and their tools. A Snapshot compiles them: tools are
// numbered densely in the order of answers, so that sets of tools are bit sets and walking one yields an
// answer in its final order.
package catalog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// Set is a set of tools, by their numbers in one Snapshot.
type Set = bitset.BitSet

// Snapshot is the compiled catalogue. It never changes, and its sets must not be changed.
type Snapshot struct {
	tools  []*Tool
	types  []*ToolType       // of each tool
	rules  [][]quota.Limited // of each tool, with its type's
	number map[id.Tool]uint
	rule   map[id.Quota]*quota.Rule

	core, retired, typeDisabled, private, namesakes, quarantined *Set
	owned                                                        map[id.User]*Set
}

// Compile numbers the tools: core tools first, then by id, byte-wise. It fails if a tool's type is missing
// or an id occurs twice, which storage prevents.
func Compile(types []ToolType, tools []Tool) (*Snapshot, error) {
	typeOf := make(map[id.ToolType]*ToolType, len(types))
	for i := range types {
		typeOf[types[i].ID] = &types[i]
	}
	ordered := make([]*Tool, len(tools))
	for i := range tools {
		ordered[i] = &tools[i]
	}
	slices.SortFunc(ordered, func(a, b *Tool) int {
		if a.Core != b.Core {
			if a.Core {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	s := &Snapshot{
		tools:  ordered,
		types:  make([]*ToolType, len(ordered)),
		rules:  make([][]quota.Limited, len(ordered)),
		rule:   make(map[id.Quota]*quota.Rule),
		number: make(map[id.Tool]uint, len(ordered)),
		owned:  make(map[id.User]*Set),
	}
	for _, t := range types {
		s.addRules(t.Quotas)
	}
	s.core, s.retired, s.typeDisabled, s.private, s.quarantined = s.NewSet(), s.NewSet(), s.NewSet(), s.NewSet(), s.NewSet()
	for i, tool := range ordered {
		n := uint(i)
		toolType, ok := typeOf[tool.Type]
		if !ok {
			return nil, fmt.Errorf("tool %q: no such tool type %q", tool.ID, tool.Type)
		}
		if _, twice := s.number[tool.ID]; twice {
			return nil, fmt.Errorf("tool %q occurs twice", tool.ID)
		}
		s.types[n], s.number[tool.ID] = toolType, n
		s.rules[n] = quota.RulesFor(tool.Quotas, toolType.Quotas)
		s.addRules(tool.Quotas)
		s.core.SetTo(n, tool.Core)
		s.retired.SetTo(n, tool.Status == StatusRetired)
		s.typeDisabled.SetTo(n, toolType.Disabled)
		if usable, quarantined := tool.Usable(toolType); len(usable) == 0 && len(quarantined) > 0 {
			s.quarantined.Set(n)
		}
		if tool.Owner != "" {
			s.private.Set(n)
			if s.owned[tool.Owner] == nil {
				s.owned[tool.Owner] = s.NewSet()
			}
			s.owned[tool.Owner].Set(n)
		}
	}
	s.namesakes = s.NewSet()
	first := make(map[string]uint, len(ordered))
	for i, tool := range ordered {
		if other, taken := first[tool.Name]; taken {
			s.namesakes.Set(other).Set(uint(i))
			continue
		}
		first[tool.Name] = uint(i)
	}
	return s, nil
}

func (s *Snapshot) addRules(rules []quota.Rule) {
	for i := range rules {
		s.rule[rules[i].ID] = &rules[i]
	}
}

// Len is how many tools there are; they are numbered 0 to Len-1.
func (s *Snapshot) Len() int { return len(s.tools) }

// NewSet returns an empty set with room for every tool.
func (s *Snapshot) NewSet() *Set { return bitset.New(uint(len(s.tools))) }

// SetOf returns the set of those of the ids that exist.
func (s *Snapshot) SetOf(ids []id.Tool) *Set {
	set := s.NewSet()
	for _, tool := range ids {
		if n, ok := s.number[tool]; ok {
			set.Set(n)
		}
	}
	return set
}

// Number returns a tool's number.
func (s *Snapshot) Number(tool id.Tool) (uint, bool) {
	n, ok := s.number[tool]
	return n, ok
}

// Tool returns the tool of a number.
func (s *Snapshot) Tool(n uint) *Tool { return s.tools[n] }

// Type returns the type of the tool of a number.
func (s *Snapshot) Type(n uint) *ToolType { return s.types[n] }

// Rules returns the rules of quotas that a call of the tool of a number touches, by id, with their own limits. They must not
// be changed.
func (s *Snapshot) Rules(n uint) []quota.Limited { return s.rules[n] }

// Rule returns the rule of quotas of an id; nil: there is none.
func (s *Snapshot) Rule(rule id.Quota) *quota.Rule { return s.rule[rule] }

// Core is the set of core tools.
func (s *Snapshot) Core() *Set { return s.core }

// Retired is the set of tools out of service.
func (s *Snapshot) Retired() *Set { return s.retired }

// TypeDisabled is the set of tools whose type is switched off.
func (s *Snapshot) TypeDisabled() *Set { return s.typeDisabled }

// Quarantined is the set of tools all of whose functions are in quarantine.
func (s *Snapshot) Quarantined() *Set { return s.quarantined }

// Private is the set of tools that some user owns.
func (s *Snapshot) Private() *Set { return s.private }

// Namesakes is the set of tools that share their name with another tool.
func (s *Snapshot) Namesakes() *Set { return s.namesakes }

// OwnedBy is the set of a user's own tools, empty if there are none.
func (s *Snapshot) OwnedBy(user id.User) *Set {
	if set, ok := s.owned[user]; ok {
		return set
	}
	return &Set{}
}

// ExistsFor tells whether a user may know of a tool: it exists and is shared or the user's own.
func (s *Snapshot) ExistsFor(user id.User, tool id.Tool) bool {
	n, ok := s.number[tool]
	return ok && (s.tools[n].Owner == "" || s.tools[n].Owner == user)
}
