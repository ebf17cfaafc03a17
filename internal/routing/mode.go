package routing

import (
	"github.com/toolgrant/toolgrant/internal/id"
)

// Mode is a strategy.
type Mode string

// The modes, the most cautious first.
const (
	// Legacy tells the model all that is enabled. Nothing is narrowed, and nothing is found.
	Legacy Mode = "LEGACY"
	// Hybrid answers as Legacy does. What V2 would answer is worked out in the shadow, and recorded.
	Hybrid Mode = "HYBRID"
	// V2 narrows and finds.
	V2 Mode = "V2"
)

// Default is the mode where none is set.
const Default = V2

// Modes are all modes, the most cautious first.
func Modes() []Mode { return []Mode{Legacy, Hybrid, V2} }

// Set is the mode that was set for a group's users; of the empty group: for users of whose groups none has a mode.
type Set struct {
	Group id.Group
	Mode  Mode
}

// Table is what was set, ready to be asked. Its zero value has Default for everybody.
type Table struct {
	rest   Mode
	groups map[id.Group]entry
}

type entry struct {
	mode     Mode
	priority int32
}

// Compile makes a table. priorities are those of the groups; groups that have none do not count.
func Compile(sets []Set, priorities map[id.Group]int32) Table {
	t := Table{}
	for _, s := range sets {
		if s.Group == "" {
			t.rest = s.Mode
			continue
		}
		if priority, ok := priorities[s.Group]; ok {
			if t.groups == nil {
				t.groups = map[id.Group]entry{}
			}
			t.groups[s.Group] = entry{s.Mode, priority}
		}
	}
	return t
}

// Of returns the mode of a user with these active groups: that of the group with the highest priority that has one. Of
// several at one priority the most cautious counts. groups is called only if it matters.
func (t *Table) Of(groups func() []id.Group) Mode {
	best := entry{}
	if len(t.groups) > 0 {
		for _, g := range groups() {
			e, ok := t.groups[g]
			if ok && (best.mode == "" || e.priority > best.priority || e.priority == best.priority && e.mode.caution() > best.mode.caution()) {
				best = e
			}
		}
	}
	switch {
	case best.mode != "":
		return best.mode
	case t.rest != "":
		return t.rest
	}
	return Default
}

// caution is higher for a mode that changes less.
func (m Mode) caution() int {
	switch m {
	case Legacy:
		return 2
	case Hybrid:
		return 1
	}
	return 0
}
