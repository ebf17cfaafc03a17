package pin

import (
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// Compare holds what a server lists now against what is pinned, and tells how its observations must change: what is to
// be put, and which names are to be dropped. Nothing of either: they are up to date.
func Compare(t *catalog.ToolType, listed []catalog.Function, now time.Time) (put []catalog.Observation, drop []string) {
	held := make(map[string]*catalog.Observation, len(t.Observations))
	for i := range t.Observations {
		held[t.Observations[i].Name] = &t.Observations[i]
	}
	wanted, there := map[string]bool{}, make(map[string]bool, len(listed))
	observe := func(o catalog.Observation) {
		if t.Difference(&o) == catalog.DifferenceNone {
			return
		}
		wanted[o.Name] = true
		if old := held[o.Name]; old == nil || !same(old.Function, o.Function) {
			put = append(put, o)
		}
	}
	for i := range listed {
		there[listed[i].Name] = true
		observe(catalog.Observation{Name: listed[i].Name, Function: &listed[i], Since: now})
	}
	for i := range t.Functions {
		if !there[t.Functions[i].Name] {
			observe(catalog.Observation{Name: t.Functions[i].Name, Since: now})
		}
	}
	for i := range t.Observations {
		if name := t.Observations[i].Name; !wanted[name] {
			drop = append(drop, name)
		}
	}
	slices.SortFunc(put, func(a, b catalog.Observation) int { return strings.Compare(a.Name, b.Name) })
	return put, drop
}

func same(a, b *catalog.Function) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest() == b.Digest()
}

// Approval names a difference that an operator has looked at.
type Approval struct {
	Name string
	// Digest is that of the function as it was looked at; empty where the server has none.
	Digest string
}

// Approve returns a tool type's functions with the server's differences of some names made its pins, what the operator
// judged of their risks kept. It returns the names whose differences are not, or no longer, what was looked at.
func Approve(t *catalog.ToolType, approvals []Approval) (functions []catalog.Function, outdated []string) {
	functions = slices.Clone(t.Functions)
	for _, a := range approvals {
		at := slices.IndexFunc(t.Observations, func(o catalog.Observation) bool { return o.Name == a.Name })
		if at < 0 {
			outdated = append(outdated, a.Name)
			continue
		}
		o := &t.Observations[at]
		digest := ""
		if o.Function != nil {
			digest = o.Function.Digest()
		}
		if digest != a.Digest || t.Difference(o) == catalog.DifferenceNone {
			outdated = append(outdated, a.Name)
			continue
		}
		pinned := slices.IndexFunc(functions, func(f catalog.Function) bool { return f.Name == a.Name })
		switch {
		case o.Function == nil:
			functions = slices.Delete(functions, pinned, pinned+1)
		case pinned < 0:
			functions = append(functions, *o.Function)
		default:
			f := *o.Function
			f.Declared = functions[pinned].Declared
			functions[pinned] = f
		}
	}
	return functions, outdated
}
