package effective

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
)

// Rule is a rule of the decision.
type Rule string

// The rules, in the order in which they are tried.
const (
	RuleOffered      Rule = "OFFERED"
	RuleGroups       Rule = "GROUPS"
	RulePrivate      Rule = "PRIVATE"
	RuleStatus       Rule = "STATUS"
	RuleType         Rule = "TYPE"
	RuleOwner        Rule = "OWNER"
	RuleCapabilities Rule = "CAPABILITIES"
	RuleFunctions    Rule = "FUNCTIONS" // only of tools with functions in quarantine
	RuleAvatars      Rule = "AVATARS"
	RuleChatLog      Rule = "CHAT_LOG"
	RuleCore         Rule = "CORE"
	RuleName         Rule = "NAME"
)

// Outcome is what a rule said of a tool.
type Outcome string

// The outcomes.
const (
	OutcomeFor     Outcome = "FOR"
	OutcomeAgainst Outcome = "AGAINST"
	OutcomeSilent  Outcome = "SILENT"
)

// Row is a row that a rule rested on.
type Row struct{ Kind, ID, Detail string }

// Step is a rule that was tried.
type Step struct {
	Rule    Rule
	Outcome Outcome
	Message string
	Rows    []Row
}

// WithheldTool says what a user would be told of a tool; false if it is effective, or merely not enabled.
func (a *Answer) WithheldTool(tool uint) (Withheld, bool) {
	if a.Reason(tool) == ReasonNone {
		return Withheld{}, false
	}
	return a.withhold(tool), true
}

// Explain walks through every rule for a tool, in order.
func (a *Answer) Explain(tool uint) []Step {
	c, q := a.world.Catalog, a.question
	t := c.Tool(tool)
	steps := []Step{
		a.explainOffered(tool),
		a.explainGroups(tool),
		decide(RulePrivate, c.OwnedBy(q.User.ID).Test(tool), OutcomeFor, OutcomeSilent,
			"The user owns it privately.", "The user does not own it privately."),
		decide(RuleStatus, c.Retired().Test(tool), OutcomeAgainst, OutcomeFor, "It is retired.", "It is in service."),
		decide(RuleType, c.TypeDisabled().Test(tool), OutcomeAgainst, OutcomeFor,
			"Its type is switched off.", "Its type is switched on.", Row{"tool_type", string(t.Type), ""}),
		decide(RuleOwner, a.Availability.Foreign.Test(tool), OutcomeAgainst, OutcomeFor,
			"It is another user's.", "It is shared, or the user's own."),
		a.explainCapabilities(tool),
	}
	if usable, quarantined := t.Usable(c.Type(tool)); len(quarantined) > 0 {
		rows := make([]Row, len(quarantined))
		for i := range quarantined {
			rows[i] = Row{"function", quarantined[i].Name, strings.ToLower(string(c.Type(tool).Difference(&quarantined[i])))}
		}
		steps = append(steps, decide(RuleFunctions, len(usable) == 0, OutcomeAgainst, OutcomeFor,
			"All of its functions are in quarantine.", "Some of its functions are in quarantine.", rows...))
	}
	return append(steps, a.explainEnabled(tool)...)
}

func decide(rule Rule, is bool, ifSo, otherwise Outcome, so, not string, rows ...Row) Step {
	if is {
		return Step{rule, ifSo, so, rows}
	}
	return Step{rule, otherwise, not, rows}
}

func (a *Answer) explainOffered(tool uint) Step {
	var rows []Row
	for _, device := range a.question.User.Devices {
		if a.question.Surface.IsWeb() || a.question.Surface.Device == device.ID {
			detail := "of type " + string(device.Type) + ", which does not list it"
			if a.world.Availability.Offers(device.Type, tool) {
				detail = "of type " + string(device.Type) + ", which lists it"
			}
			rows = append(rows, Row{"device", string(device.ID), detail})
		}
	}
	return decide(RuleOffered, a.Availability.Offered.Test(tool), OutcomeFor, OutcomeSilent,
		"The surface offers it.", "The surface does not offer it.", rows...)
}

func (a *Answer) explainGroups(tool uint) Step {
	var rows []Row
	for _, m := range a.question.User.Memberships {
		g, ok := a.world.Availability.Group(m.Group)
		if !ok {
			continue
		}
		detail := fmt.Sprintf("priority %d", g.Priority)
		if a.world.Catalog.SetOf(g.Grants).Test(tool) {
			detail += ", grants it"
		}
		if a.world.Catalog.SetOf(g.Revokes).Test(tool) {
			detail += ", revokes it"
		}
		rows = append(rows, Row{"group", string(m.Group), detail}, a.explainMembership(m))
	}
	switch {
	case a.Availability.Granted.Test(tool):
		return Step{RuleGroups, OutcomeFor, "The user's groups grant it.", rows}
	case a.Availability.Revoked.Test(tool):
		return Step{RuleGroups, OutcomeAgainst, "The user's groups revoke it.", rows}
	}
	return Step{RuleGroups, OutcomeSilent, "None of the user's active groups grants or revokes it.", rows}
}

// explainMembership says whether a membership counts, and when it does.
func (a *Answer) explainMembership(m availability.Membership) Row {
	detail := "active"
	if !m.ActiveAt(a.question.Now) {
		detail = "not active now"
	}
	if !m.Start.IsZero() {
		detail += ", from " + m.Start.Format(time.RFC3339Nano)
	}
	if !m.Expire.IsZero() {
		detail += ", until " + m.Expire.Format(time.RFC3339Nano)
	}
	return Row{"membership", string(m.Group), detail}
}

func (a *Answer) explainCapabilities(tool uint) Step {
	if a.question.Surface.IsWeb() {
		return Step{RuleCapabilities, OutcomeSilent, "The web is not limited by capabilities.", nil}
	}
	device, _ := a.question.User.Device(a.question.Surface.Device)
	row := Row{"device_type", string(device.Type), "lacks nothing that it needs"}
	lacks := a.world.Availability.MissingCapabilities(a.question.User, a.question.Surface, tool)
	if len(lacks) > 0 {
		row.Detail = "lacks: " + strings.Join(lacks, ", ")
	}
	return decide(RuleCapabilities, len(lacks) > 0, OutcomeAgainst, OutcomeFor,
		"The device cannot do what it needs.", "The device can do what it needs.", row)
}

func (a *Answer) explainEnabled(tool uint) []Step {
	var rows []Row
	binding := a.Enable.Binding(tool)
	for _, avatar := range a.Enable.ActiveAvatars {
		row := Row{"avatar", string(avatar), "turned on by the chat's log"}
		if len(a.question.Chat.Avatars) == 0 {
			row.Kind, row.Detail = "default_avatar", "the default, since the chat's log names no Avatar"
		}
		if slices.Contains(binding, avatar) {
			row.Detail += ", binds it"
		}
		rows = append(rows, row)
	}
	avatars := decide(RuleAvatars, len(binding) > 0, OutcomeFor, OutcomeSilent,
		fmt.Sprintf("Active Avatars bind it: %v.", binding), "No active Avatar binds it.", rows...)
	core := decide(RuleCore, a.world.Catalog.Core().Test(tool), OutcomeFor, OutcomeSilent,
		"It is a core tool: always enabled.", "It is not a core tool.")
	name := decide(RuleName, a.Effective.Test(tool), OutcomeFor, OutcomeSilent,
		"It is the one of its name that the model is given.", "It does not come to its name: it is not both available and enabled.")
	if by, shadowed := a.shadowed[tool]; shadowed {
		other := a.world.Catalog.Tool(by)
		name = Step{RuleName, OutcomeAgainst, "Another tool of its name is given instead.", []Row{{"tool", string(other.ID), preference(a.world.Catalog, by)}}}
	}
	return []Step{avatars, a.explainChatLog(tool), core, name}
}

func (a *Answer) explainChatLog(tool uint) Step {
	var rows []Row
	state := a.question.Chat.Tools[a.world.Catalog.Tool(tool).ID]
	if state.Lasting != "" {
		rows = append(rows, Row{"chat_log", fmt.Sprint(state.LastingSince), string(state.Lasting)})
	}
	if state.ThroughTurn != nil {
		detail := fmt.Sprintf("ENABLE through turn %d; this is turn %d", *state.ThroughTurn, a.question.Turn)
		rows = append(rows, Row{"chat_log", fmt.Sprint(state.ThroughSince), detail})
	}
	switch left, ok := a.Enable.TurnsLeft(tool); {
	case ok:
		return Step{RuleChatLog, OutcomeFor, fmt.Sprintf("The chat turned it on, for %d more turns with this one.", left), rows}
	case a.Enable.ByChat.Test(tool):
		return Step{RuleChatLog, OutcomeFor, "The chat turned it on.", rows}
	case a.Enable.OffByChat.Test(tool):
		return Step{RuleChatLog, OutcomeAgainst, "The chat turned it off.", rows}
	}
	return Step{RuleChatLog, OutcomeSilent, "The chat's log says nothing of it in this turn.", rows}
}

func preference(c *catalog.Snapshot, tool uint) string {
	t := c.Tool(tool)
	return fmt.Sprintf("private: %t, precedence %d, source %s", t.Owner != "", t.Precedence, c.Type(tool).Source)
}
