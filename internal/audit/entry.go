// Package audit makes entries of the audit log: who did what to which object, how it was before and is after, and
// why. It decides what they tell; internal/postgres writes them in the transactions of the changes that they tell
// of, and the database refuses to change them.
package audit

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Action is what was done.
type Action string

// The actions.
const (
	ActionCreate Action = "CREATE"
	ActionUpdate Action = "UPDATE"
	ActionDelete Action = "DELETE"
	ActionAsk    Action = "ASK"
	ActionGrant  Action = "GRANT"
	ActionDeny   Action = "DENY"
	ActionUse    Action = "USE"
	ActionRevoke Action = "REVOKE"
	ActionRefuse Action = "REFUSE"
	ActionReset  Action = "RESET"
	ActionRotate Action = "ROTATE"
	ActionErase  Action = "ERASE"
	// ActionApprove pins what an MCP server changed of its functions, ActionObserve finds that it did.
	ActionApprove Action = "APPROVE"
	ActionObserve Action = "OBSERVE"
)

// Entry is one entry of the log. What needs no sequence number and no time is not written yet.
type Entry struct {
	Key
	caller.Caller
	Action   Action
	Kind     string // of object: "tool"
	ObjectID string
	User     id.User // whose object it is; empty: nobody's
	// ChangedFields names what differs after an update.
	ChangedFields []string
	Before, After *State // nil: there was no object
}

// Key is an entry's place in the log, which is read by time.
type Key struct {
	Time     time.Time
	Sequence int64
}

// Filter says which entries are looked for. Its zero fields exclude nothing.
type Filter struct {
	Action   Action
	Kind     string
	ObjectID string
	Actor    string
	User     id.User
	Start    time.Time // inclusive
	End      time.Time // exclusive
}
