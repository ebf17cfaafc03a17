package call

import (
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/catalog"
)

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
	case asked != nil && asked.State(f.Now) == approval.Denied:
		a.Approval = asked.ID
		a.refuse(ReasonApprovalDenied, "The call of "+english+" was not approved.", "对"+chinese+"的调用未获批准。")
		a.instead(f, r, c, 0)
		return false
	case grant != nil:
		a.Approval = grant.ID
		return true
	case asked != nil && asked.State(f.Now) != approval.Pending:
		// A call asks once: what became of that is its answer.
		a.Approval = asked.ID
		if asked.Decision == nil {
			a.refuse(ReasonApprovalExpired, "Nobody approved the call of "+english+" in time.", "对"+chinese+"的调用未在规定时间内获得批准。")
		} else {
			a.refuse(ReasonApprovalExpired, "The approval of the call of "+english+" does not hold any more.", "对"+chinese+"的调用的批准已失效。")
		}
		a.instead(f, r, c, 0)
		return false
	}
	a.refuse(ReasonApprovalRequired, english+" can do harm, so a person must approve the call.", chinese+"可能造成损害，因此必须由人批准此调用。")
	a.Decision, a.Next.Approve = NeedsApproval, true
	a.Fallback, _ = f.fallback(r, c)
	if asked != nil {
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
