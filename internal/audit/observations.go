package audit

import (
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
)

// functionsState are some functions of a tool type, as the log tells them.
type functionsState struct {
	Functions []catalog.Function `json:"functions"`
}

// OfObservations returns what the log tells of functions that an MCP server was found to have otherwise than they are pinned
// in a tool type.
func OfObservations(t *catalog.ToolType, news []catalog.Observation, by caller.Caller) Entry {
	var pinned, observed functionsState
	for i := range news {
		if f := t.Pinned(news[i].Name); f != nil {
			pinned.Functions = append(pinned.Functions, *f)
		}
		if f := news[i].Function; f != nil {
			observed.Functions = append(observed.Functions, *f)
		}
	}
	e := Entry{Caller: by, Action: ActionObserve, Kind: "tool_type", ObjectID: string(t.ID), ChangedFields: []string{"functions"}}
	e.Before, e.After = statesOf(pinned, observed)
	return e
}
