package catalog

import "slices"

// ToolMCP is what a tool has of the external MCP server that its type stands for.
type ToolMCP struct {
	// Functions are the names, on the server, of those that the tool has; none: all.
	Functions []string `json:"functions,omitempty"`
	// HeadersFromEnv are added to the server's when the tool's functions are called; of one name these count.
	HeadersFromEnv map[string]string `json:"headers_from_env,omitempty"`
}

// Has tells whether the tool has a function of its server.
func (m *ToolMCP) Has(function string) bool {
	return len(m.Functions) == 0 || slices.Contains(m.Functions, function)
}

// Usable returns the functions of the tool's type that the tool has and that may be used, and those that it would have, but
// for their being in quarantine.
func (t *Tool) Usable(toolType *ToolType) (usable []Function, quarantined []Observation) {
	usable, quarantined = toolType.Usable()
	if len(t.MCP.Functions) == 0 {
		return usable, quarantined
	}
	usable = slices.DeleteFunc(slices.Clone(usable), func(f Function) bool { return !t.MCP.Has(f.Name) })
	quarantined = slices.DeleteFunc(slices.Clone(quarantined), func(o Observation) bool { return !t.MCP.Has(o.Name) })
	return usable, quarantined
}

// HeadersFor are the headers, by the variables that have their values, with which a tool calls the server.
func (s *MCPServer) HeadersFor(m *ToolMCP) map[string]string {
	if len(m.HeadersFromEnv) == 0 {
		return s.HeadersFromEnv
	}
	all := make(map[string]string, len(s.HeadersFromEnv)+len(m.HeadersFromEnv))
	for _, headers := range []map[string]string{s.HeadersFromEnv, m.HeadersFromEnv} {
		for name, variable := range headers {
			all[name] = variable
		}
	}
	return all
}
