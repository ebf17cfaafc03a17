// Package approval decides what a person's word on a risky call is worth. An approval is the fold of what happened to
// it: it was asked for, it was granted or refused once, a grant was used or taken back. How it stands follows from
// that and from the instant. It does no I/O.
package approval

import (
	"bytes"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// State is how an approval stands.
type State string

// The states.
const (
	Pending  State = "PENDING"  // nobody decided yet
	Approved State = "APPROVED" // granted, and still good for a call
	Denied   State = "DENIED"
	Expired  State = "EXPIRED" // nobody decided in time, or the grant has run out
	Revoked  State = "REVOKED" // granted, and taken back
	Used     State = "USED"    // granted for one call, which was made
)

// Scope is what a grant is good for.
type Scope string

// The scopes.
const (
	Once  Scope = "ONCE"  // the one call that asked
	Chat  Scope = "CHAT"  // calls of the tool's function in the chat
	Until Scope = "UNTIL" // calls of the tool's function by the user, until a time
)

// Call is what an approval is asked for.
type Call struct {
	ID        id.Call
	Chat      id.Chat
	User      id.User
	Tool      id.Tool
	Function  string
	Arguments []byte // as JSON; empty: they were not sent
}

// Request is the question to a person.
type Request struct {
	ID id.Approval
	Call
	// Digest is that of the whole arguments; those of the call may have been cut.
	Digest []byte
	Create time.Time
	Expire time.Time // until when it waits
}

// Approval is all that happened to a request.
type Approval struct {
	Request
	Decision   *Decision
	Use        time.Time // zero: not used
	Revocation *Revocation
}

// Decision is the answer. There is one at most.
type Decision struct {
	Approve bool
	Scope   Scope     // of a grant
	Expire  time.Time // of a grant; zero: none
	By      string
	Reason  string
	Time    time.Time
}

// Revocation takes a grant back.
type Revocation struct {
	By     string
	Reason string
	Time   time.Time
}

// State is how the approval stands at an instant.
func (a *Approval) State(now time.Time) State {
	d := a.Decision
	switch {
	case d == nil && now.Before(a.Request.Expire):
		return Pending
	case d == nil:
		return Expired
	case !d.Approve:
		return Denied
	case a.Revocation != nil:
		return Revoked
	case !a.Use.IsZero():
		return Used
	case !d.Expire.IsZero() && !now.Before(d.Expire):
		return Expired
	}
	return Approved
}

// Expire is when time alone changes the state; zero: never.
func (a *Approval) Expire(now time.Time) time.Time {
	switch a.State(now) {
	case Pending:
		return a.Request.Expire
	case Approved:
		return a.Decision.Expire
	}
	return time.Time{}
}

// Covers tells whether the approval lets a call through at an instant. A call that was let through once, and is asked
// for again, is the same call.
func (a *Approval) Covers(c *Call, now time.Time) bool {
	state := a.State(now)
	if a.User != c.User || a.Tool != c.Tool || a.Function != c.Function || (state != Approved && state != Used) {
		return false
	}
	switch a.Decision.Scope {
	case Once:
		return a.For(c)
	case Chat:
		return a.Chat == c.Chat
	case Until:
		return true
	}
	return false
}

// For tells whether the approval was asked for by this very call, arguments included: a person saw them.
func (a *Approval) For(c *Call) bool {
	return a.Call.ID == c.ID && a.Chat == c.Chat && a.User == c.User && a.Tool == c.Tool && a.Function == c.Function &&
		bytes.Equal(a.Digest, c.Digest())
}

// Find returns the first of the approvals that lets a call through; nil: none does.
func Find(approvals []Approval, c *Call, now time.Time) *Approval {
	for i := range approvals {
		if approvals[i].Covers(c, now) {
			return &approvals[i]
		}
	}
	return nil
}

// Key is where an approval stands in lists, which are newest first.
type Key struct {
	Create time.Time   `json:"t"`
	ID     id.Approval `json:"id"`
}

// Key returns the approval's.
func (a *Approval) Key() Key { return Key{a.Create, a.ID} }

// Filter chooses approvals. Empty fields choose all.
type Filter struct {
	State State
	User  id.User
	Chat  id.Chat
}

// Fits tells whether the filter chooses an approval at an instant.
func (f *Filter) Fits(a *Approval, now time.Time) bool {
	return (f.State == "" || a.State(now) == f.State) && (f.User == "" || a.User == f.User) && (f.Chat == "" || a.Chat == f.Chat)
}

// Ref names an approval, and whose it is.
type Ref struct {
	User id.User
	ID   id.Approval
}
