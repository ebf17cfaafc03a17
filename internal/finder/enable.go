package finder

import (
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

// DefaultTTLTurns is for how many turns a tool is turned on that was found.
const DefaultTTLTurns = 3

const maxNearest = 3

// Rejection is why a name is not turned on.
type Rejection string

// The rejections.
const (
	RejectedUnknown       Rejection = "UNKNOWN_NAME"
	RejectedWithheld      Rejection = "WITHHELD"
	RejectedNeedsApproval Rejection = "NEEDS_APPROVAL"
)

// Named is what became of a name.
type Named struct {
	Name   string
	Number uint // unless it is unknown
	// Rejection is why it is not turned on; empty: it is.
	Rejection          Rejection
	Message, MessageZH string
	Next, NextZH       string
	Nearest            []string // unknown: names that are near
	Withheld           *effective.Withheld
}

// Enable decides which of some names an actor may turn on. Of one name the user's available tool is meant, his own
// before a shared one; else the tool of that id.
func (v *View) Enable(f *Facts, names []string, actor enable.Actor) []Named {
	candidates := v.candidates(f)
	byName := make(map[string]uint, candidates.Count())
	for n := range candidates.EachSet() {
		byName[v.world.Catalog.Tool(n).Name] = n
	}
	all := make([]Named, len(names))
	for i, name := range names {
		n, ok := byName[name]
		if !ok {
			n, ok = v.lookUp(f, name)
		}
		all[i] = Named{Name: name, Number: n}
		if !ok {
			v.unknown(f, candidates, &all[i])
		} else {
			v.decide(f, &all[i], actor)
		}
	}
	return all
}

// lookUp finds the tool that an id names, or else, for its reason, one of this name that is not available.
func (v *View) lookUp(f *Facts, name string) (uint, bool) {
	tools := v.world.Catalog
	if n, ok := tools.Number(id.Tool(name)); ok && tools.ExistsFor(f.User, id.Tool(name)) {
		return n, true
	}
	found, ok := uint(0), false
	for n := range uint(tools.Len()) {
		if t := tools.Tool(n); t.Name == name && tools.ExistsFor(f.User, t.ID) && (!ok || effective.Beats(tools, n, found)) {
			found, ok = n, true
		}
	}
	return found, ok
}

// decide refuses a tool that would not do.
func (v *View) decide(f *Facts, d *Named, actor enable.Actor) {
	t := v.world.Catalog.Tool(d.Number)
	english, chinese := "“"+t.TitleIn("en")+"”", "“"+t.TitleIn("zh")+"”"
	switch {
	case !f.Answer.Availability.Available.Test(d.Number):
		if why, ok := f.Answer.WithheldTool(d.Number); ok {
			d.Withheld = &why
			d.Message, d.MessageZH = why.Message, why.MessageZH
		}
		d.Rejection = RejectedWithheld
		d.Next, d.NextZH = "Search for another tool, or tell the user why this one cannot be used.", "请搜索其他工具，或向用户说明此工具无法使用的原因。"
	case actor == enable.ActorModel && t.Risk == catalog.RiskHigh:
		d.Rejection = RejectedNeedsApproval
		d.Message, d.MessageZH = english+" is of high risk: a model does not turn it on.", chinese+"风险较高：不能由模型启用。"
		d.Next, d.NextZH = "Ask the user to turn it on; each call then needs a person's approval.", "请让用户启用它；之后每次调用都需要人工批准。"
	}
}

// unknown tells which names are near to one that nothing has.
func (v *View) unknown(f *Facts, candidates *catalog.Set, d *Named) {
	d.Rejection = RejectedUnknown
	d.Message, d.MessageZH = "There is no tool named "+quoted(d.Name)+".", "没有名为"+quoted(d.Name)+"的工具。"
	d.Next, d.NextZH = "Search for what is to be done, and use a name that is found.", "请按要做的事情搜索，并使用搜索到的名称。"
	for _, m := range v.rank(f, candidates, discovery.Read(d.Name), maxNearest) {
		d.Nearest = append(d.Nearest, v.world.Catalog.Tool(m.Number).Name)
	}
	if len(d.Nearest) > 0 {
		d.Next, d.NextZH = "Use one of the nearest names, if it is meant, or search for what is to be done.", "若所指即相近名称之一，请使用它；否则请按要做的事情搜索。"
	}
}

// maxQuoted bounds what is quoted, in characters.
const maxQuoted = 60

func quoted(text string) string {
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted-1]) + "…"
	}
	return "“" + text + "”"
}
