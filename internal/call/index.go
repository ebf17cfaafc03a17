package call

import (
	"cmp"
	"slices"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Index finds functions in one catalogue. It is compiled once for each catalogue and never changes, but for the
// schemas of arguments, which are compiled when they are first needed.
type Index struct {
	tools   *catalog.Snapshot
	servers map[id.MCPServer]*catalog.MCPServer
	// names finds functions by what a model may call them. Private tools are found under their owner, so that those
	// of many users that have one name are not looked through.
	names    map[nameKey][]candidate
	compiled []compiledTool // by number
	// conditional are the tools that have preconditions or are for the models of certain providers only.
	conditional []uint
	// quarantined finds functions that may not be used, since their servers changed or added them. They take the place
	// of no other function.
	quarantined map[nameKey]quarantined
}

// quarantined is a function that may not be used until an operator has approved it.
type quarantined struct {
	number     uint // the tool's
	difference catalog.Difference
}

type nameKey struct {
	owner id.User // empty: shared
	name  string
}

// candidate is a function that a name may mean.
type candidate struct {
	number   uint // the tool's
	function *function
	unique   bool // the name is the function's unique one
}

// compiledTool is what calls need to know of a tool besides what it is.
type compiledTool struct {
	functions []function
	requires  []requirement
	fallback  []uint // nearest first
}

// function is what a model can call.
type function struct {
	name   string
	unique string // a name under which it is the only one
	risk   catalog.Risk
	schema *schema // nil: any arguments
}

// Compile compiles a catalogue and the MCP servers that its tool types name.
func Compile(tools *catalog.Snapshot, servers []catalog.MCPServer) *Index {
	x := &Index{
		tools:    tools,
		servers:  make(map[id.MCPServer]*catalog.MCPServer, len(servers)),
		names:    make(map[nameKey][]candidate, tools.Len()),
		compiled: make([]compiledTool, tools.Len()),

		quarantined: map[nameKey]quarantined{},
	}
	for i := range servers {
		x.servers[servers[i].ID] = &servers[i]
	}
	schemas := schemas{}
	for n := range x.compiled {
		t, c := tools.Tool(uint(n)), &x.compiled[n]
		c.functions = functionsOf(t, tools.Type(uint(n)), schemas)
		_, held := t.Usable(tools.Type(uint(n)))
		for i := range held {
			q := quarantined{uint(n), tools.Type(uint(n)).Difference(&held[i])}
			x.quarantined[nameKey{t.Owner, held[i].Name}], x.quarantined[nameKey{t.Owner, UniqueName(t.Name, held[i].Name)}] = q, q
		}
		c.requires = compileRequirements(t)
		c.fallback = x.chain(uint(n))
		if len(c.requires) > 0 || len(t.Capability.ProviderConstraints) > 0 {
			x.conditional = append(x.conditional, uint(n))
		}
		for i := range c.functions {
			f := &c.functions[i]
			x.add(nameKey{t.Owner, f.name}, candidate{uint(n), f, false})
			if f.unique != f.name {
				x.add(nameKey{t.Owner, f.unique}, candidate{uint(n), f, true})
			}
		}
	}
	for _, list := range x.names {
		slices.SortFunc(list, x.compare)
	}
	return x
}

func (x *Index) add(key nameKey, c candidate) { x.names[key] = append(x.names[key], c) }

// compare is the order in which candidates are listed.
func (x *Index) compare(a, b candidate) int {
	return cmp.Or(cmp.Compare(x.priority(b), x.priority(a)), cmp.Compare(a.tool(x).ID, b.tool(x).ID))
}

// functionsOf are the functions of a tool: those of its server if that is an external one, else the tool itself.
func functionsOf(t *catalog.Tool, toolType *catalog.ToolType, schemas schemas) []function {
	if toolType.Source != catalog.SourceExternalMCP {
		return []function{{name: t.Name, unique: t.Name, risk: t.Risk, schema: schemas.of(&toolType.InputSchema)}}
	}
	usable, _ := t.Usable(toolType)
	functions := make([]function, len(usable))
	for i := range usable {
		f := &usable[i]
		functions[i] = function{name: f.Name, unique: UniqueName(t.Name, f.Name), risk: higher(t.Risk, f.Risk()), schema: schemas.of(&f.InputSchema)}
	}
	return functions
}

func (c *candidate) tool(x *Index) *catalog.Tool         { return x.tools.Tool(c.number) }
func (c *candidate) toolType(x *Index) *catalog.ToolType { return x.tools.Type(c.number) }
func (c *candidate) compiled(x *Index) *compiledTool     { return &x.compiled[c.number] }

func (c *candidate) mcp(x *Index) bool { return c.toolType(x).Source.MCP() }

// server is the MCP server that has the function; empty: none, or the built-in one.
func (c *candidate) server(x *Index) id.MCPServer { return c.toolType(x).MCPServer }

// priority is that of the function's server.
func (x *Index) priority(c candidate) int32 {
	if server := x.servers[c.server(x)]; server != nil {
		return server.Priority
	}
	return 0
}

// at words where a function is, as its source is named.
func (c *candidate) at(x *Index) FunctionSource {
	source := string(c.server(x))
	if source == "" {
		source = native
	}
	return FunctionSource{Source: source, Tool: c.tool(x).ID, UniqueName: c.function.unique}
}

// binding is how the function is called.
func (c *candidate) binding(x *Index) Binding {
	t, toolType := c.tool(x), c.toolType(x)
	class := cmp.Or(toolType.ToolClass, string(toolType.ID))
	b := Binding{Config: t.Config}
	switch toolType.Source {
	case catalog.SourceExternalMCP:
		b.Function = c.function.name
	case catalog.SourceInternalMCP:
		b.Function = class // the tool of the server, of which this one is a configuration
	default:
		b.Native, b.ToolClass = true, class
		return b
	}
	b.Server = toolType.MCPServer
	if server := x.servers[b.Server]; server != nil {
		b.Endpoint, b.HeadersFromEnv = server.Endpoint, server.HeadersFor(&t.MCP)
	}
	return b
}
