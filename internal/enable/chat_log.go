package enable

import (
	"math"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Action is what an entry of a chat's log does.
type Action string

// The actions.
const (
	ActionEnable  Action = "ENABLE"
	ActionDisable Action = "DISABLE"
)

// Actor is who asked for an entry; empty: it was not told.
type Actor string

// The actors.
const (
	ActorModel  Actor = "MODEL"
	ActorPerson Actor = "PERSON"
)

// Entry is an entry of a chat's log, about a tool or about an avatar.
type Entry struct {
	Sequence int32 // 1, 2, 3 ... within the chat, tools and avatars together
	Tool     id.Tool
	Avatar   id.Avatar
	Action   Action
	TTLTurns int32 // of a tool's ENABLE: live in turns Turn to Turn+TTLTurns-1; 0: for good
	Turn     int32 // the turn it was written in
	Actor    Actor // of a tool: who asked for it
}

// State is a chat's log, folded. Its size depends on how many tools and avatars the chat ever touched, not
// on how long the log is. The zero value is the fold of an empty log.
type State struct {
	Avatars map[id.Avatar]AvatarState `json:"avatars,omitempty"`
	Tools   map[id.Tool]ToolState     `json:"tools,omitempty"`
}

// AvatarState is the last entry of an avatar.
type AvatarState struct {
	Sequence int32 `json:"seq"`
	On       bool  `json:"on"`
}

// ToolState is what may still show of a tool's entries: the last one without a TTL, and how far those with a
// TTL after it reach. (All of them are ENABLEs, so which of them is live does not matter.)
type ToolState struct {
	Lasting      Action `json:"lasting,omitempty"`    // empty: none
	LastingSince int32  `json:"seq,omitempty"`        // its sequence number
	ThroughTurn  *int32 `json:"until_turn,omitempty"` // last turn of the longest TTL; nil: none
	ThroughSince int32  `json:"until_seq,omitempty"`  // its sequence number
}

// Fold returns the state after more entries. Entries are folded in the order of their sequence numbers; those of
// tools and those of avatars do not mind each other.
func (s State) Fold(entries ...Entry) State {
	next := State{Avatars: make(map[id.Avatar]AvatarState, len(s.Avatars)), Tools: make(map[id.Tool]ToolState, len(s.Tools))}
	for avatar, state := range s.Avatars {
		next.Avatars[avatar] = state
	}
	for tool, state := range s.Tools {
		next.Tools[tool] = state
	}
	for _, e := range entries {
		if e.Avatar != "" {
			if e.Sequence > next.Avatars[e.Avatar].Sequence {
				next.Avatars[e.Avatar] = AvatarState{Sequence: e.Sequence, On: e.Action == ActionEnable}
			}
			continue
		}
		next.Tools[e.Tool] = next.Tools[e.Tool].fold(e)
	}
	return next
}

func (t ToolState) fold(e Entry) ToolState {
	if e.TTLTurns == 0 {
		return ToolState{Lasting: e.Action, LastingSince: e.Sequence}
	}
	through := int32(min(int64(e.Turn)+int64(e.TTLTurns)-1, math.MaxInt32)) // no turn comes after that
	if t.ThroughTurn == nil || *t.ThroughTurn < through {
		t.ThroughTurn, t.ThroughSince = &through, e.Sequence
	}
	return t
}

// LiveTTL tells whether an enabling with a TTL holds in a turn.
func (t ToolState) LiveTTL(turn int32) bool { return t.ThroughTurn != nil && turn <= *t.ThroughTurn }

// ActiveAvatars are those whose last entry enabled them, in no order.
func (s State) ActiveAvatars() []id.Avatar {
	var active []id.Avatar
	for avatar, state := range s.Avatars {
		if state.On {
			active = append(active, avatar)
		}
	}
	return active
}

// DependsOnTurn tells whether some enabling with a TTL is live in a turn: only then does it matter to others
// that the chat moved on.
func (s State) DependsOnTurn(turn int32) bool {
	for _, state := range s.Tools {
		if state.LiveTTL(turn) {
			return true
		}
	}
	return false
}

// HasTTL tells whether any enabling with a TTL may show, in this turn or an earlier one: then what is on
// depends on the turn.
func (s State) HasTTL() bool {
	for _, state := range s.Tools {
		if state.ThroughTurn != nil {
			return true
		}
	}
	return false
}

// LogEntry is an entry as it was written.
type LogEntry struct {
	Entry
	RequestID  string
	CreateTime time.Time
}

// Request names a request to write to a chat among the chat's.
type Request struct {
	ID          string
	Fingerprint []byte // of its content: another content under the same id is refused
	Answer      []byte // what it is answered besides its entries, encoded, to be kept with it; nil: nothing
}

// Result is what a request to write to a chat did.
type Result struct {
	Chat     Chat
	Entries  []LogEntry
	Revision string
	Answer   []byte // that of the request when it was first made
}
