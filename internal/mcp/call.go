package mcp

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Call calls a function of the server. progress, unless it is nil, is told how far the call is, until Call returns. The
// server is told when ctx ends.
func (c *Conn) Call(ctx context.Context, function string, arguments json.RawMessage, meta mcp.Meta, progress func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: function, Arguments: arguments, Meta: meta}
	if len(arguments) == 0 || string(arguments) == "null" {
		params.Arguments = map[string]any{}
	}
	if progress != nil {
		token := strconv.FormatInt(c.tokens.Add(1), 10)
		c.progress.Store(token, progress)
		defer c.progress.Delete(token)
		params.SetProgressToken(token)
	}
	result, err := c.session.CallTool(outward{ctx}, params)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return result, nil
}

// outward is a context for requests to other servers, without values: the SDK keeps in them what the request that is being
// served says, such as its revision of the protocol, and would say it to others.
type outward struct{ context.Context }

// Value implements context.Context.
func (outward) Value(any) any { return nil }

// progressed passes on how far a call is. A token of a call that has ended, or that was never made, means nothing.
func (c *Conn) progressed(p *mcp.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	if tell, known := c.progress.Load(token); known {
		tell.(func(*mcp.ProgressNotificationParams))(p)
	}
}
