package call

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Deployment is what the operator lets tools do.
type Deployment struct {
	Network, FilesystemRead, FilesystemWrite bool
}

// check is a kind of precondition.
type check struct {
	// prefix of the precondition, the rest of which is the argument; or the whole of it, without an argument.
	prefix   string
	argument func(string) bool // tells what may stand there; nil: nothing
	holds    func(f *Facts, r *Request, argument string) bool
	// lacks words what is missing, in English and in Chinese.
	lacks func(argument string) (english, chinese string)
}

// checks is the registry: what a tool may require.
var checks = []check{
	{"model.", id.Valid,
		func(_ *Facts, r *Request, name string) bool { return slices.Contains(r.ModelCapabilities, name) },
		func(name string) (string, string) {
			return "a model that can do " + name, "能够" + name + "的模型"
		}},
	{"provider.", id.Valid,
		func(_ *Facts, r *Request, name string) bool { return slices.Contains(r.ProviderCapabilities, name) },
		func(name string) (string, string) {
			return "a model provider that supports " + name, "支持" + name + "的模型提供方"
		}},
	{"mcp.server=", id.Valid,
		func(f *Facts, _ *Request, server string) bool {
			return f.Index.servers[id.MCPServer(server)] != nil && f.condition(Subject{Server: id.MCPServer(server)}).State != Open
		},
		func(server string) (string, string) {
			return "the MCP server " + server + " to be reachable", "MCP 服务器 " + server + " 可以访问"
		}},
	{"permission=", id.Valid,
		func(f *Facts, _ *Request, name string) bool { return f.Answer.Availability.Permits(name) },
		func(name string) (string, string) { return "the permission " + name, "权限 " + name }},
	{"network", nil,
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.Network },
		func(string) (string, string) { return "access to the network", "网络访问" }},
	{"filesystem.read", nil,
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.FilesystemRead },
		func(string) (string, string) { return "leave to read files", "读取文件的许可" }},
	{"filesystem.write", nil,
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.FilesystemWrite },
		func(string) (string, string) { return "leave to write files", "写入文件的许可" }},
}

// parseRequirement finds the check that a precondition names.
func parseRequirement(name string) (*check, string, bool) {
	for i := range checks {
		c := &checks[i]
		switch argument, ok := strings.CutPrefix(name, c.prefix); {
		case ok && c.argument == nil && argument == "":
			return c, "", true
		case ok && c.argument != nil && c.argument(argument):
			return c, argument, true
		}
	}
	return nil, "", false
}

// Check tells what is wrong with the name of a precondition; nil: nothing. Writes refuse what it refuses.
func Check(name string) error {
	if _, _, ok := parseRequirement(name); ok {
		return nil
	}
	var known []string
	for _, c := range checks {
		if c.argument != nil {
			known = append(known, c.prefix+"NAME")
		} else {
			known = append(known, c.prefix)
		}
	}
	return fmt.Errorf("no such precondition %q; there are: %s", name, strings.Join(known, ", "))
}

// RequiredServer is the MCP server that a precondition names, if it names one.
func RequiredServer(name string) (id.MCPServer, bool) {
	server, ok := strings.CutPrefix(name, "mcp.server=")
	return id.MCPServer(server), ok
}

// requirement is a precondition of a tool, compiled.
type requirement struct {
	check    *check // nil: unknown, so it never holds
	argument string
	name     string
}

func compileRequirements(t *catalog.Tool) []requirement {
	var compiled []requirement
	for _, name := range t.Capability.Requires {
		c, argument, _ := parseRequirement(name)
		compiled = append(compiled, requirement{c, argument, name})
	}
	return compiled
}

func (q *requirement) holds(f *Facts, r *Request) bool {
	return q.check != nil && q.check.holds(f, r, q.argument)
}

func (q *requirement) lacks() (english, chinese string) {
	if q.check == nil {
		return q.name, q.name
	}
	return q.check.lacks(q.argument)
}

// admits tells whether a provider is one of those that a tool is for; none: all.
func admits(only []string, provider string) bool {
	return len(only) == 0 || slices.Contains(only, provider)
}

// ready tells whether all that a tool requires is there.
func (f *Facts) ready(r *Request, number uint) bool {
	requires := f.Index.compiled[number].requires
	for i := range requires {
		if !requires[i].holds(f, r) {
			return false
		}
	}
	return admits(f.Index.tools.Tool(number).Capability.ProviderConstraints, r.Provider)
}

// precondition refuses what requires something that is not there. It names all that is missing.
func precondition(f *Facts, r *Request, c *candidate, a *Answer) bool {
	if f.ready(r, c.number) {
		return true
	}
	t := c.tool(f.Index)
	var english, chinese []string
	var retry time.Duration
	for i := range c.compiled(f.Index).requires {
		q := &c.compiled(f.Index).requires[i]
		if q.holds(f, r) {
			continue
		}
		en, zh := q.lacks()
		english, chinese = append(english, en), append(chinese, zh)
		if server, ok := RequiredServer(q.name); ok {
			retry = max(retry, f.condition(Subject{Server: server}).RetryAfter)
		}
	}
	if only := t.Capability.ProviderConstraints; !admits(only, r.Provider) {
		english = append(english, "a model of "+strings.Join(only, " or "))
		chinese = append(chinese, strings.Join(only, "或")+"的模型")
	}
	a.refuse(ReasonPreconditionFailed, title(t, "en")+" needs what is not there: "+strings.Join(english, "; ")+".",
		title(t, "zh")+"缺少所需条件："+strings.Join(chinese, "；")+"。")
	// Waiting helps only if nothing but a server is missing.
	if len(english) > 1 {
		retry = 0
	}
	a.instead(f, r, c, retry)
	return false
}
