package health

import (
	"cmp"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Subject is what has a health: a tool, or an MCP server. One of them is set.
type Subject struct {
	Tool   id.Tool
	Server id.MCPServer
}

// Compare orders servers before tools, and each by id.
func (s Subject) Compare(other Subject) int {
	if s.Server == "" != (other.Server == "") {
		if s.Server != "" {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(s.Server, other.Server), cmp.Compare(s.Tool, other.Tool))
}

// Kind is what the subject is: "tool" or "mcp_server".
func (s Subject) Kind() string {
	if s.Server != "" {
		return "mcp_server"
	}
	return "tool"
}

// String names the subject in messages.
func (s Subject) String() string { return s.Kind() + " " + string(s.Server) + string(s.Tool) }
