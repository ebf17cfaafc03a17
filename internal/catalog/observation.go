package catalog

import "time"

// Observation is what an external MCP server says of a function, where that differs from what is pinned.
type Observation struct {
	Name     string
	Function *Function // nil: the server has no such function
	Since    time.Time
}

// Difference is how a server differs from what is pinned.
type Difference string

// The differences.
const (
	DifferenceNone    Difference = ""        // any more: the pin was changed since it was observed
	DifferenceNew     Difference = "NEW"     // the server has a function that is not pinned
	DifferenceChanged Difference = "CHANGED" // it says something else of it
	DifferenceRemoved Difference = "REMOVED" // it has it no longer
)

// Difference compares an observation with what is pinned now.
func (t *ToolType) Difference(o *Observation) Difference {
	pinned := t.Pinned(o.Name)
	switch {
	case t.Source != SourceExternalMCP:
		return DifferenceNone
	case pinned == nil && o.Function != nil:
		return DifferenceNew
	case pinned != nil && o.Function == nil:
		return DifferenceRemoved
	case pinned != nil && pinned.Digest() != o.Function.Digest():
		return DifferenceChanged
	}
	return DifferenceNone
}

// Pinned returns the function of a name as it is pinned; nil: it is not.
func (t *ToolType) Pinned(name string) *Function {
	for i := range t.Functions {
		if t.Functions[i].Name == name {
			return &t.Functions[i]
		}
	}
	return nil
}

// Usable returns the functions that are as they are pinned, and those that are in quarantine: what their server
// changed, or added, until an operator approves it.
func (t *ToolType) Usable() (usable []Function, quarantined []Observation) {
	if len(t.Observations) == 0 {
		return t.Functions, nil
	}
	differs := make(map[string]bool, len(t.Observations))
	for i := range t.Observations {
		o := &t.Observations[i]
		switch t.Difference(o) {
		case DifferenceNew, DifferenceChanged:
			quarantined = append(quarantined, *o)
			differs[o.Name] = true
		case DifferenceRemoved:
			differs[o.Name] = true
		}
	}
	for i := range t.Functions {
		if !differs[t.Functions[i].Name] {
			usable = append(usable, t.Functions[i])
		}
	}
	return usable, quarantined
}
