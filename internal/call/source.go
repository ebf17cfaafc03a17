package call

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

const native = "native"

// Synonyms are the names of sources that mean what native means: anywhere. In lower case.
type Synonyms map[string]bool

// DefaultSynonyms are what models call what is not on a server that they know.
var DefaultSynonyms = Synonyms{native: true, "builtin": true, "local": true, "internal": true}

// standing is how a tool stands in a conversation, the best first.
type standing int

const (
	effectiveNow standing = iota
	enabledButWithheld
	availableNotEnabled
	neither
)

var standingWords = map[standing]string{
	effectiveNow:        "effective",
	enabledButWithheld:  "enabled, but withheld",
	availableNotEnabled: "available, but not enabled",
	neither:             "neither available nor enabled",
}

func (f *Facts) standing(c *candidate) standing {
	switch a := f.Answer; {
	case a.Effective.Test(c.number):
		return effectiveNow
	case a.Enable.Enabled.Test(c.number):
		return enabledButWithheld
	case a.Availability.Available.Test(c.number):
		return availableNotEnabled
	}
	return neither
}

// source finds the tool that a function belongs to, or refuses. Of the tools that the user may know of, those that
// are effective come before those that are merely enabled, and these before those that are merely available.
func source(f *Facts, r *Request, a *Answer) (*candidate, bool) {
	x := f.Index
	shared, own := x.names[nameKey{"", r.Function}], x.names[nameKey{f.User, r.Function}]
	server, known := f.origin(r.Source, a)
	if !known {
		a.refuse(ReasonUnknownSource, "There is no tool source "+quoted(r.Source)+".", "没有名为"+quoted(r.Source)+"的工具来源。")
		a.nameSource(f, bestStanding(f, "", shared, own))
		return nil, false
	}
	candidates := bestStanding(f, server, shared, own)
	if len(candidates) == 0 {
		if f.quarantined(r, server, a) {
			return nil, false
		}
		f.notThere(r, server, bestStanding(f, "", shared, own), a)
		return nil, false
	}
	stand := f.standing(&candidates[0])
	if len(candidates) == 1 {
		a.Trace = append(a.Trace, "The function "+quoted(r.Function)+" is that of tool "+where(x, &candidates[0])+", which is "+standingWords[stand]+".")
		return &candidates[0], true
	}
	a.Trace = append(a.Trace, "Several tools that are "+standingWords[stand]+" have the function "+quoted(r.Function)+": "+list(x, candidates)+".")
	if candidates = prefer(x, candidates, a); len(candidates) == 1 {
		return &candidates[0], true
	}
	a.Trace = append(a.Trace, "Nothing tells which is meant: "+list(x, candidates)+".")
	english, chinese := titles(x, candidates)
	a.refuse(ReasonAmbiguousFunction, "Several tools have the function "+quoted(r.Function)+": "+english+".",
		"多个工具都有函数"+quoted(r.Function)+"："+chinese+"。")
	a.nameSource(f, candidates)
	return nil, false
}

// origin tells where to look: on one server, or, if it is empty, anywhere; false: there is no such source. A server's
// id comes before a synonym.
func (f *Facts) origin(name string, a *Answer) (id.MCPServer, bool) {
	const anywhere = "MCP tools come first, then native ones."
	synonyms := f.Synonyms
	if synonyms == nil {
		synonyms = DefaultSynonyms
	}
	var sentence string
	server, known := id.MCPServer(""), true
	switch lower := strings.ToLower(strings.TrimSpace(name)); {
	case name == "":
		sentence = "No source was named: " + anywhere
	case f.Index.servers[id.MCPServer(name)] != nil:
		server = id.MCPServer(name)
		sentence = "The MCP server " + name + " was named, so only its functions count."
	case lower == native:
		sentence = "The source native was named, which models use for anything: " + anywhere
	case synonyms[lower]:
		sentence = "The source " + quoted(name) + " was named, which means native, which models use for anything: " + anywhere
	default:
		known = false
		sentence = "The source " + quoted(name) + " was named, which is neither an MCP server nor a synonym of native."
	}
	a.Trace = append(make([]string, 0, 4), sentence)
	return server, known
}

// bestStanding are those candidates on a server (empty: anywhere) that stand best, in the order of lists.
func bestStanding(f *Facts, server id.MCPServer, shared, own []candidate) []candidate {
	best, first, count := neither, []candidate(nil), 0
	for _, part := range [...][]candidate{own, shared} {
		for i := range part {
			c := &part[i]
			if server != "" && c.server(f.Index) != server {
				continue
			}
			if s := f.standing(c); s < best || count == 0 {
				best, first, count = s, part[i:i+1:i+1], 1
			} else if s == best {
				count++
			}
		}
	}
	if count < 2 {
		return first // by far the most frequent, and without an allocation
	}
	all := make([]candidate, 0, count)
	for _, part := range [...][]candidate{own, shared} {
		for i := range part {
			if (server == "" || part[i].server(f.Index) == server) && f.standing(&part[i]) == best {
				all = append(all, part[i])
			}
		}
	}
	slices.SortStableFunc(all, f.Index.compare)
	return all
}

// quarantined refuses a function that is in quarantine; false: it is not.
func (f *Facts) quarantined(r *Request, server id.MCPServer, a *Answer) bool {
	for _, owner := range [...]id.User{f.User, ""} {
		q, found := f.Index.quarantined[nameKey{owner, r.Function}]
		if found && (server == "" || f.Index.tools.Type(q.number).MCPServer == server) {
			a.Trace = append(a.Trace, fmt.Sprintf("The function %s of tool %s is in quarantine: %s.", quoted(r.Function), f.Index.tools.Tool(q.number).ID,
				strings.ToLower(string(q.difference))))
			english, chinese := QuarantineInWords(r.Function, q.difference)
			a.refuse(ReasonQuarantined, english, chinese)
			return true
		}
	}
	return false
}

// QuarantineInWords says why a function may not be used, fit to show the user.
func QuarantineInWords(name string, d catalog.Difference) (english, chinese string) {
	if d == catalog.DifferenceNew {
		return "The function " + quoted(name) + " is new on its MCP server. It can be used once an operator has approved it.",
			"函数" + quoted(name) + "是其 MCP 服务器新增的，须经管理员批准后才能使用。"
	}
	return "The function " + quoted(name) + " was changed by its MCP server. It can be used again once an operator has approved that.",
		"函数" + quoted(name) + "已被其 MCP 服务器更改，须经管理员批准后才能继续使用。"
}

// notThere refuses a function that no candidate has, and tells where else it is.
func (f *Facts) notThere(r *Request, server id.MCPServer, elsewhere []candidate, a *Answer) {
	if len(elsewhere) == 0 {
		a.Trace = append(a.Trace, "No tool that the user may know of has the function "+quoted(r.Function)+".")
		a.refuse(ReasonUnknownFunction, "There is no function "+quoted(r.Function)+".", "没有名为"+quoted(r.Function)+"的函数。")
		return
	}
	a.Trace = append(a.Trace, fmt.Sprintf("The MCP server %s has no function %s. Found elsewhere, %s: %s.",
		server, quoted(r.Function), standingWords[f.standing(&elsewhere[0])], list(f.Index, elsewhere)))
	english, chinese := titles(f.Index, elsewhere)
	a.refuse(ReasonFunctionElsewhere, "The MCP server "+string(server)+" has no function "+quoted(r.Function)+". It is a function of: "+english+".",
		"MCP 服务器 "+string(server)+" 没有函数"+quoted(r.Function)+"。该函数属于："+chinese+"。")
	a.nameSource(f, elsewhere)
}

// preference is a reason to prefer a candidate to another one.
type preference struct {
	beats   func(x *Index, a, b *candidate) bool
	because string
}

var preferences = []preference{
	{func(_ *Index, a, b *candidate) bool { return a.unique && !b.unique }, "that is a name of its own"},
	{func(x *Index, a, b *candidate) bool {
		return a.tool(x).Name == b.tool(x).Name && effective.Beats(x.tools, a.number, b.number)
	}, "of tools of one name a model is given the first"},
	{func(x *Index, a, b *candidate) bool { return a.mcp(x) && !b.mcp(x) }, "MCP tools come before native ones"},
	{func(x *Index, a, b *candidate) bool { return a.tool(x).Owner != "" && b.tool(x).Owner == "" }, "the user's own tools come before shared ones"},
	{func(x *Index, a, b *candidate) bool { return x.priority(*a) > x.priority(*b) }, "of servers the higher priority comes first"},
	{func(x *Index, a, b *candidate) bool {
		return a.server(x) != "" && a.server(x) == b.server(x) && a.tool(x).Precedence > b.tool(x).Precedence
	}, "of tools of one server the higher precedence comes first"},
}

// prefer leaves the candidate that is preferred to all others, or those of which none is.
func prefer(x *Index, candidates []candidate, a *Answer) []candidate {
	for _, p := range preferences {
		beaten := func(c candidate) bool {
			return slices.ContainsFunc(candidates, func(other candidate) bool { return p.beats(x, &other, &c) })
		}
		left := slices.DeleteFunc(slices.Clone(candidates), beaten)
		if len(left) == len(candidates) {
			continue
		}
		candidates = left
		verb := "There remain "
		if len(left) == 1 {
			verb = "It is "
		}
		a.Trace = append(a.Trace, verb+list(x, left)+", because "+p.because+".")
		if len(left) == 1 {
			break
		}
	}
	return candidates
}

// nameSource tells where a function is, as the next step.
func (a *Answer) nameSource(f *Facts, candidates []candidate) {
	for i := range candidates {
		a.Next.Sources = append(a.Next.Sources, candidates[i].at(f.Index))
	}
}

// where words a tool and where it is.
func where(x *Index, c *candidate) string {
	name := string(c.tool(x).ID)
	switch server := c.server(x); {
	case !c.mcp(x):
		return name + " (native)"
	case server == "":
		return name + " (built-in MCP server)"
	default:
		return name + " (MCP server " + string(server) + ", priority " + strconv.Itoa(int(x.priority(*c))) + ")"
	}
}

// titles words candidates for the user.
func titles(x *Index, candidates []candidate) (english, chinese string) {
	en, zh := make([]string, len(candidates)), make([]string, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		en[i], zh[i] = title(c.tool(x), "en"), title(c.tool(x), "zh")
		if server := c.server(x); server != "" {
			en[i], zh[i] = en[i]+" ("+string(server)+")", zh[i]+"（"+string(server)+"）"
		}
	}
	return strings.Join(en, ", "), strings.Join(zh, "、")
}

// list words candidates and where they are.
func list(x *Index, candidates []candidate) string {
	names := make([]string, len(candidates))
	for i := range candidates {
		names[i] = where(x, &candidates[i])
	}
	return strings.Join(names, ", ")
}
