package call

import (
	"cmp"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
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

// harmless refuses what is too risky. LOW runs once it is enabled. MEDIUM must have been enabled by somebody, in the
// chat or in an Avatar, and not merely be on as a core tool. HIGH needs a person's approval besides. Nothing but a
// person's decision grants one, and none lowers a risk.
func harmless(f *Facts, r *Request, c *candidate, a *Answer) bool {
	t := c.tool(f.Index)
	english, chinese := title(t, "en"), title(t, "zh")
	if level(a.Risk) < level(catalog.RiskMedium) {
		return true
	}
	if f.Index.tools.Core().Test(c.number) && !f.Answer.Enable.ByChat.Test(c.number) && len(f.Answer.Enable.Binding(c.number)) == 0 {
		a.refuse(ReasonNotEnabledExplicitly, english+" may change things, so it must be enabled in this conversation first.",
			chinese+"可能会更改内容，因此必须先在此对话中启用。")
		a.Next.Enable = enable(r, t.ID)
		return false
	}
	if level(a.Risk) < level(catalog.RiskHigh) {
		return true
	}
	asked, grant := f.approvals(r, t.ID, c.function.name)
	switch {
	case asked != nil && asked.State == ApprovalDenied:
		a.Approval = asked.ID
		a.refuse(ReasonApprovalDenied, "The call of "+english+" was not approved.", "对"+chinese+"的调用未获批准。")
		a.instead(f, r, c, 0)
		return false
	case grant != nil:
		a.Approval = grant.ID
		return true
	}
	a.refuse(ReasonApprovalRequired, english+" can do harm, so a person must approve the call.", chinese+"可能造成损害，因此必须由人批准此调用。")
	a.Decision, a.Next.Approve = NeedsApproval, true
	a.Fallback, _ = f.fallback(r, c)
	if asked != nil && asked.pendingAt(f.Now) {
		a.Approval = asked.ID
	}
	return false
}

// level orders risks. What is not known is taken for the worst.
func level(r catalog.Risk) int {
	switch r {
	case catalog.RiskLow:
		return 0
	case catalog.RiskMedium:
		return 1
	default:
		return 2
	}
}

func higher(a, b catalog.Risk) catalog.Risk {
	if level(b) > level(a) {
		return b
	}
	return a
}
