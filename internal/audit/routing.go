package audit

import (
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// EverybodyElse is the object of the routing mode that counts for users of whose groups none has a mode. No group has
// this id.
const EverybodyElse = "*"

// OfRoutingMode returns what the log tells of a routing mode that was set, changed or taken back; empty: there is none.
func OfRoutingMode(group id.Group, before, after routing.Mode, by caller.Caller) Entry {
	type setting struct {
		Group id.Group     `json:"group_id"`
		Mode  routing.Mode `json:"mode"`
	}
	state := func(mode routing.Mode) any {
		if mode == "" {
			return nil
		}
		return setting{group, mode}
	}
	e := Entry{Caller: by, Action: ActionUpdate, Kind: "routing_mode", ObjectID: string(group)}
	if group == "" {
		e.ObjectID = EverybodyElse
	}
	switch {
	case before == "":
		e.Action = ActionCreate
	case after == "":
		e.Action = ActionDelete
	default:
		e.ChangedFields = []string{"mode"}
	}
	e.Before, e.After = statesOf(state(before), state(after))
	return e
}
