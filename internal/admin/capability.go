package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// checkCapability checks what a tool declares, but for fallbacks that lead back to it.
func (w *world) checkCapability(path string, t catalog.Tool) {
	for i, text := range t.Capability.Requires {
		field := fmt.Sprintf("%s.capability.requires[%d]", path, i)
		requirement, err := catalog.ParseRequirement(text)
		if err != nil {
			w.fault(field, "%s", err)
			continue
		}
		if _, exists := w.servers[id.MCPServer(requirement.Name)]; requirement.Kind == catalog.RequireServer && !exists {
			w.fault(field, "no such MCP server %q", requirement.Name)
		}
	}
	for i, fallback := range t.Capability.Fallback {
		other, exists := w.tools[fallback]
		switch field := fallbackPath(path, i); {
		case fallback == t.ID:
			w.fault(field, "a tool does not replace itself")
		case !exists:
			w.fault(field, "no such tool %q", fallback)
		case other.Owner != "" && other.Owner != t.Owner:
			w.fault(field, "%q is another user's private tool", fallback)
		}
	}
}

func fallbackPath(tool string, i int) string {
	return fmt.Sprintf("%s.capability.degrade_policy.fallback_tool_ids[%d]", tool, i)
}

// requireServer tells whether requirements name one of the servers for which touched is true.
func requireServer(requirements []string, touched func(server string) bool) bool {
	return slices.ContainsFunc(requirements, func(text string) bool {
		server, found := strings.CutPrefix(text, string(catalog.RequireServer))
		return found && touched(server)
	})
}

// checkFallbacks refuses fallbacks that lead back over other tools. What was stored before leads nowhere back, so
// every chain that does goes through a tool of the edit, and is found from there.
func (w *world) checkFallbacks(tools []catalog.Tool) {
	places := make(map[id.Tool]int, len(tools))
	for i, t := range slices.Backward(tools) {
		places[t.ID] = i
	}
	onChain := make(map[id.Tool]bool) // false: it leads nowhere back
	var chain []id.Tool
	var follow func(id.Tool)
	follow = func(tool id.Tool) {
		onChain[tool], chain = true, append(chain, tool)
		for _, next := range w.tools[tool].Capability.Fallback {
			if looping, seen := onChain[next]; !seen {
				follow(next)
			} else if looping && next != tool { // itself is told already
				w.loop(chain[slices.Index(chain, next):], places)
			}
		}
		onChain[tool], chain = false, chain[:len(chain)-1]
	}
	for _, t := range tools {
		if _, seen := onChain[t.ID]; !seen && len(t.Capability.Fallback) > 0 {
			follow(t.ID)
		}
	}
}

// loop reports tools each of which falls back to the next one, and the last to the first. It is told from the first
// of the edit's tools among them.
func (w *world) loop(chain []id.Tool, places map[id.Tool]int) {
	from := -1
	for i, tool := range chain {
		if place, given := places[tool]; given && (from < 0 || place < places[chain[from]]) {
			from = i
		}
	}
	if from < 0 {
		return // it was stored: it cannot be
	}
	turned := slices.Concat(chain[from:], chain[:from+1])
	field := fallbackPath(fmt.Sprintf("%s[%d]", SectionTools, places[turned[0]]),
		slices.Index(w.tools[turned[0]].Capability.Fallback, turned[1]))
	w.fault(field, "it leads back to the tool: %s", arrows(turned))
}

// arrows words a chain of tools; of a long one, its beginning and its end.
func arrows(chain []id.Tool) string {
	const shown = 12
	var words []string
	for i, tool := range chain {
		switch left := len(chain) - i; {
		case len(chain) <= shown, i < shown/2, left <= shown/2:
			words = append(words, string(tool))
		case i == shown/2:
			words = append(words, fmt.Sprintf("%d more", len(chain)-shown))
		}
	}
	return strings.Join(words, " → ")
}

// checkFunctions checks the functions of an external MCP server.
func (w *world) checkFunctions(path string, t catalog.ToolType) {
	if len(t.Functions) > 0 && t.Source != catalog.SourceExternalMCP {
		w.fault(path+".functions", "only an external MCP server has functions of its own")
		return
	}
	first := make(map[string]int, len(t.Functions))
	for i, f := range t.Functions {
		field := fmt.Sprintf("%s.functions[%d]", path, i)
		if j, twice := first[f.Name]; twice {
			w.fault(field+".name", "%q occurs twice: first in functions[%d]", f.Name, j)
		} else {
			first[f.Name] = i
		}
		w.checkSchema(field+".input_schema", f.InputSchema)
		w.checkSchema(field+".output_schema", f.OutputSchema)
	}
}

// checkToolMCP checks what a tool has of its MCP server.
func (w *world) checkToolMCP(path string, t catalog.Tool, toolType catalog.ToolType) {
	if toolType.Source != catalog.SourceExternalMCP {
		if len(t.MCP.Functions)+len(t.MCP.HeadersFromEnv) > 0 {
			w.fault(path+".mcp", "only a tool of an external MCP server has it")
		}
		return
	}
	for i, name := range t.MCP.Functions {
		observed := slices.ContainsFunc(toolType.Observations, func(o catalog.Observation) bool { return o.Name == name && o.Function != nil })
		if toolType.Pinned(name) == nil && !observed {
			w.fault(fmt.Sprintf("%s.mcp.functions[%d]", path, i), "tool type %q has no function %q", t.Type, name)
		}
	}
}
