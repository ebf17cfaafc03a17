package call

import (
	"cmp"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// ApprovalState is how an approval stands.
type ApprovalState string

// The states.
const (
	ApprovalPending  ApprovalState = "PENDING"
	ApprovalApproved ApprovalState = "APPROVED"
	ApprovalDenied   ApprovalState = "DENIED"
	ApprovalExpired  ApprovalState = "EXPIRED"
	ApprovalRevoked  ApprovalState = "REVOKED"
	ApprovalUsed     ApprovalState = "USED" // granted for one call, which was made
)

// ApprovalScope is what a granted approval is good for.
type ApprovalScope string

// The scopes.
const (
	ScopeOnce  ApprovalScope = "ONCE"  // the one call that asked
	ScopeChat  ApprovalScope = "CHAT"  // calls of the function in the chat
	ScopeUntil ApprovalScope = "UNTIL" // calls of the function by the user, until a time
)

// Approval is a person's word on calls of one function, or the question for it.
type Approval struct {
	ID       string
	Call     string // that asked
	Chat     id.Chat
	User     id.User
	Tool     id.Tool
	Function string
	State    ApprovalState
	Scope    ApprovalScope
	// Expire is until when a grant holds, or a pending approval waits; zero: for good, but no UNTIL is.
	Expire time.Time
}

func (p *Approval) expiredAt(now time.Time) bool { return !p.Expire.IsZero() && !now.Before(p.Expire) }

func (p *Approval) pendingAt(now time.Time) bool {
	return p.State == ApprovalPending && !p.expiredAt(now)
}

// askedBy tells whether the approval was asked for by the call.
func (p *Approval) askedBy(r *Request) bool { return p.Call == r.Call && p.Chat == r.Chat }

// covers tells whether a grant is good for a call of its function.
func (p *Approval) covers(r *Request, now time.Time) bool {
	if p.expiredAt(now) {
		return false
	}
	switch {
	case p.State == ApprovalUsed:
		return p.Scope == ScopeOnce && p.askedBy(r) // the same call asks again
	case p.State != ApprovalApproved:
		return false
	case p.Scope == ScopeOnce:
		return p.askedBy(r)
	case p.Scope == ScopeChat:
		return p.Chat == r.Chat
	default:
		return p.Scope == ScopeUntil && !p.Expire.IsZero()
	}
}

// approvals finds what was asked for by this very call, and a grant that is good for it; nil: there is none.
func (f *Facts) approvals(r *Request, tool id.Tool, function string) (asked, grant *Approval) {
	for i := range f.Approvals {
		p := &f.Approvals[i]
		if p.User != f.User || p.Tool != tool || p.Function != function {
			continue
		}
		if p.askedBy(r) && (asked == nil || f.before(p, asked)) {
			asked = p
		}
		if p.covers(r, f.Now) && (grant == nil || p.ID < grant.ID) {
			grant = p
		}
	}
	return asked, grant
}

// before orders what one call asked for: what was denied, then what still waits, then the rest.
func (f *Facts) before(a, b *Approval) bool {
	rank := func(p *Approval) int {
		switch {
		case p.State == ApprovalDenied:
			return 0
		case p.pendingAt(f.Now):
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID)) < 0
}
