package enable

import (
	"fmt"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Chat is a conversation.
type Chat struct {
	ID         id.Chat
	User       id.User
	Turn       int32 // the highest known
	EntryCount int32
	State      State
	CreateTime time.Time
	EndTime    time.Time // zero: it goes on
}

// Ended is the refusal to do anything with an ended chat.
func (c *Chat) Ended() error {
	if c.EndTime.IsZero() {
		return nil
	}
	return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonChatEnded,
		Message: fmt.Sprintf("chat %q was ended", c.ID)}
}

// Append returns the chat with entries at the end of its log, and the entries as numbered. A nil turn means
// the chat's.
func (c Chat) Append(entries []Entry, turn *int32) (Chat, []Entry) {
	at := c.Turn
	if turn != nil {
		at = *turn
	}
	numbered := make([]Entry, len(entries))
	for i, e := range entries {
		c.EntryCount++
		e.Sequence, e.Turn = c.EntryCount, at
		numbered[i] = e
	}
	c.Turn = max(c.Turn, at)
	c.State = c.State.Fold(numbered...)
	return c, numbered
}

// CheckTools tells what is wrong with changes of tools, with the path of every fault; nil: nothing.
func CheckTools(tools *catalog.Snapshot, user id.User, entries []Entry) error {
	var missing, core *fault.Fault
	for i, e := range entries {
		field := fmt.Sprintf("changes[%d].tool_id", i)
		if !tools.ExistsFor(user, e.Tool) {
			if missing == nil {
				missing = fault.Missing("tool", string(e.Tool))
			}
			missing.Violations = append(missing.Violations, fault.Violation{Field: field, Description: fmt.Sprintf("no such tool: %q", e.Tool)})
			continue
		}
		if n, _ := tools.Number(e.Tool); e.Action == ActionDisable && tools.Core().Test(n) {
			if core == nil {
				core = &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonCoreTool, Message: "core tools cannot be disabled"}
			}
			core.Violations = append(core.Violations, fault.Violation{Field: field, Description: fmt.Sprintf("%q is a core tool, which cannot be disabled in a chat", e.Tool)})
		}
	}
	switch {
	case missing != nil && core != nil:
		missing.Violations = append(missing.Violations, core.Violations...)
		return missing
	case missing != nil:
		return missing
	case core != nil:
		return core
	}
	return nil
}

// CheckAvatars tells what is wrong with changes of avatars, with the path of every fault; nil: nothing.
func (s *Snapshot) CheckAvatars(entries []Entry) error {
	var missing *fault.Fault
	for i, e := range entries {
		if _, ok := s.avatars[e.Avatar]; ok {
			continue
		}
		if missing == nil {
			missing = fault.Missing("avatar", string(e.Avatar))
		}
		missing.Violations = append(missing.Violations, fault.Violation{
			Field: fmt.Sprintf("changes[%d].avatar_id", i), Description: fmt.Sprintf("no such avatar: %q", e.Avatar)})
	}
	if missing != nil {
		return missing
	}
	return nil
}
