package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Types of results in the protocol without sessions.
const (
	resultComplete      = "complete"
	resultInputRequired = "input_required"
)

// typed is a result that says of which type it is, in the protocol that wants it. The SDK keeps the type to itself, but
// reads it from JSON.
func (c *conversation) typed(r *mcp.CallToolResult) *mcp.CallToolResult {
	t := &mcp.CallToolResult{}
	if c.stateless {
		kind := resultComplete
		if len(r.InputRequests) > 0 {
			kind = resultInputRequired
		}
		if err := json.Unmarshal([]byte(`{"content":[],"resultType":"`+kind+`"}`), t); err != nil {
			panic(err) // it is JSON
		}
	}
	t.Meta, t.Content, t.StructuredContent, t.IsError = r.Meta, r.Content, r.StructuredContent, r.IsError
	t.InputRequests, t.RequestState = r.InputRequests, r.RequestState
	if t.Content == nil && len(t.InputRequests) == 0 {
		t.Content = []mcp.Content{} // and not null
	}
	return t
}
