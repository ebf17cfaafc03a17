package call

import (
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

// check decides one kind of precondition.
type check struct {
	holds func(f *Facts, r *Request, name string) bool
	// lacks words what is missing, in English and in Chinese.
	lacks func(name string) (english, chinese string)
}

// checks is the registry: how each kind of precondition is decided. catalog.ParseRequirement knows the same kinds, and
// writes refuse what it does not know.
var checks = map[catalog.RequirementKind]check{
	catalog.RequireModel: {
		func(_ *Facts, r *Request, name string) bool { return slices.Contains(r.ModelCapabilities, name) },
		func(name string) (string, string) {
			return "a model that can do " + name, "具备 " + name + " 能力的模型"
		}},
	catalog.RequireProvider: {
		func(_ *Facts, r *Request, name string) bool { return slices.Contains(r.ProviderCapabilities, name) },
		func(name string) (string, string) {
			return "a model provider that supports " + name, "支持 " + name + " 的模型提供方"
		}},
	catalog.RequireServer: {
		func(f *Facts, _ *Request, name string) bool {
			server := id.MCPServer(name)
			return f.Index.servers[server] != nil && f.condition(Subject{Server: server}).State != Open
		},
		func(name string) (string, string) {
			return "the MCP server " + name + " to be reachable", "MCP 服务器 " + name + " 可以访问"
		}},
	catalog.RequirePermission: {
		func(f *Facts, _ *Request, name string) bool { return f.Answer.Availability.Permits(name) },
		func(name string) (string, string) { return "the permission " + name, "权限 " + name }},
	catalog.RequireNetwork: {
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.Network },
		func(string) (string, string) { return "access to the network", "网络访问" }},
	catalog.RequireFilesystemRead: {
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.FilesystemRead },
		func(string) (string, string) { return "leave to read files", "读取文件的许可" }},
	catalog.RequireFilesystemWrite: {
		func(f *Facts, _ *Request, _ string) bool { return f.Deployment.FilesystemWrite },
		func(string) (string, string) { return "leave to write files", "写入文件的许可" }},
}

// requirement is a precondition of a tool, with the check that decides it.
type requirement struct {
	catalog.Requirement
	check
}

// compileRequirements finds the checks of a tool's preconditions. One that nobody knows never holds.
func compileRequirements(t *catalog.Tool) []requirement {
	var compiled []requirement
	for _, text := range t.Capability.Requires {
		parsed, err := catalog.ParseRequirement(text)
		known, ok := checks[parsed.Kind]
		if err != nil || !ok {
			known = check{
				func(*Facts, *Request, string) bool { return false },
				func(string) (string, string) { return text, text },
			}
		}
		compiled = append(compiled, requirement{parsed, known})
	}
	return compiled
}

// admits tells whether a provider is one of those that a tool is for; none: all.
func admits(only []string, provider string) bool {
	return len(only) == 0 || slices.Contains(only, provider)
}

// ready tells whether all that a tool requires is there.
func (f *Facts) ready(r *Request, number uint) bool {
	requires := f.Index.compiled[number].requires
	for i := range requires {
		if q := &requires[i]; !q.holds(f, r, q.Name) {
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
		if q.holds(f, r, q.Name) {
			continue
		}
		en, zh := q.lacks(q.Name)
		english, chinese = append(english, en), append(chinese, zh)
		if q.Kind == catalog.RequireServer {
			retry = max(retry, f.condition(Subject{Server: id.MCPServer(q.Name)}).RetryAfter)
		}
	}
	if only := t.Capability.ProviderConstraints; !admits(only, r.Provider) {
		english = append(english, "a model of "+strings.Join(only, " or "))
		chinese = append(chinese, strings.Join(only, " 或 ")+" 的模型")
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

// Unready is the set of tools that require something that is not there, whoever asks for them.
func (f *Facts) Unready(r *Request) *catalog.Set {
	unready := f.Index.tools.NewSet()
	for _, n := range f.Index.conditional {
		if !f.ready(r, n) {
			unready.Set(n)
		}
	}
	return unready
}

// PutAside tells whether a call of a tool would be refused now because it, or its server, fails.
func (f *Facts) PutAside(number uint) bool {
	subjects, n := f.subjects(number)
	for _, s := range subjects[:n] {
		if f.condition(s).State == Open {
			return true
		}
	}
	return false
}

// Harmless tells whether all functions of a tool are of LOW risk.
func (x *Index) Harmless(number uint) bool {
	return !slices.ContainsFunc(x.compiled[number].functions, func(f function) bool { return f.risk != catalog.RiskLow })
}
