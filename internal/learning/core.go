package learning

import (
	"cmp"
	"slices"

	"github.com/toolgrant/toolgrant/internal/id"
)

// CoreEvidence is who called which tools in a span of time.
type CoreEvidence struct {
	Users, Chats int64 // with any call
	Tools        []ToolEvidence
}

// ToolEvidence is who called a tool. Users, chats and days are those with a call that went well.
type ToolEvidence struct {
	Tool               id.Tool
	Users, Chats, Days int64
	Calls, Failed      int64
	Searches           int64 // that led to calls that went well
}

// CoreCriteria are what a tool must meet to be suggested as a core tool.
type CoreCriteria struct {
	MinUsers     int64
	MinUserShare float64 // of all users with any call
	MinDays      int64
	MaxErrorRate float64
	Limit        int
}

// DefaultCoreCriteria suggest up to ten tools that a fifth of all users need, five at least, on three days at least, and
// of whose calls no more than a fifth fail. Users are counted, not calls: one alone makes no core tool.
func DefaultCoreCriteria() CoreCriteria {
	return CoreCriteria{MinUsers: 5, MinUserShare: 0.2, MinDays: 3, MaxErrorRate: 0.2, Limit: 10}
}

// SuggestCore returns the tools that meet the criteria, those of the most users first.
func SuggestCore(e *CoreEvidence, eligible func(id.Tool) bool, c *CoreCriteria) []ToolEvidence {
	var suggested []ToolEvidence
	for _, t := range e.Tools {
		share, _ := Rate(t.Users, e.Users)
		failing, _ := Rate(t.Failed, t.Calls)
		if t.Users >= c.MinUsers && share >= c.MinUserShare && t.Days >= c.MinDays && failing <= c.MaxErrorRate && eligible(t.Tool) {
			suggested = append(suggested, t)
		}
	}
	slices.SortFunc(suggested, func(a, b ToolEvidence) int {
		return cmp.Or(-cmp.Compare(a.Users, b.Users), cmp.Compare(a.Tool, b.Tool))
	})
	return suggested[:min(len(suggested), c.Limit)]
}
