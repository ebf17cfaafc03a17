package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/status"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// listTTLMs is for how long a client may keep a list, in milliseconds, unless it is told that it changed.
const listTTLMs = 5000

// listed is a function of the effective set, and where it stands there.
type listed struct {
	place    place
	tool     *toolgrantv1.EffectiveTool
	function *toolgrantv1.ToolFunction
}

// place orders functions: those of core tools first, then by tool id, then as the tool has them. A cursor is the place of the
// last function of the page before, so that a page can follow whatever was added or removed meanwhile.
type place struct {
	Core  bool   `json:"c,omitempty"`
	Tool  string `json:"t"`
	Index int    `json:"i"`
}

func (p place) compare(other place) int {
	if p.Core != other.Core {
		if p.Core {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Tool, other.Tool), cmp.Compare(p.Index, other.Index))
}

// functions are what a model can call of the effective set, in its order, besides functions of Toolgrant's own.
func (g *Gateway) functions(tools []*toolgrantv1.EffectiveTool) []listed {
	var all []listed
	for _, t := range tools {
		if !g.callable(t.GetSource()) {
			continue // nobody here could run it
		}
		for i, f := range t.GetFunctions() {
			if !g.isOwn(f.GetName()) { // who calls it gets ours
				all = append(all, listed{place{t.GetCore(), t.GetToolId(), i}, t, f})
			}
		}
	}
	return all
}

// lasting leaves out what is on for some turns only. The protocol without sessions wants a list that no other request
// changes; what tool_enable turns on is told in its answer, and can be called without being listed.
func lasting(tools []*toolgrantv1.EffectiveTool) []*toolgrantv1.EffectiveTool {
	return slices.DeleteFunc(tools, func(t *toolgrantv1.EffectiveTool) bool { return t.ExpiresAfterTurns != nil })
}

// resolve asks for the effective set, as it is in a revision or later; empty: as fresh as it is answered.
func (c *conversation) resolve(ctx context.Context, revision string) (*toolgrantv1.ResolveToolsResponse, error) {
	request := &toolgrantv1.ResolveToolsRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(), Turn: c.Turn, View: toolgrantv1.ToolView_TOOL_VIEW_FULL}
	if revision != "" {
		request.Consistency = &toolgrantv1.Consistency{Requirement: &toolgrantv1.Consistency_AtLeastAsFresh{AtLeastAsFresh: revision}}
	}
	return c.Entitlements.ResolveTools(ctx, request)
}

// list answers tools/list.
func (c *conversation) list(ctx context.Context, cursor string) (*mcp.ListToolsResult, error) {
	var after *place
	if cursor != "" {
		after = &place{}
		data, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || json.Unmarshal(data, after) != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "not a cursor that this list returned"}
		}
	}
	revision := ""
	if newest := c.revision.Load(); newest != nil { // not older than what the client was told to have changed
		revision = *newest
	}
	answer, err := c.resolve(ctx, revision)
	if err != nil {
		return nil, asJSONRPC(err)
	}
	set := answer.GetTools()
	if c.stateless {
		set = lasting(set)
	}
	result := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: mcp.Cacheable{TTLMs: listTTLMs, CacheScope: "private"}}
	if after == nil && c.finds() {
		result.Tools = append(result.Tools, own...)
	}
	functions := c.functions(set)
	if !c.stateless && after == nil && revision == "" {
		known := fingerprint(functions)
		c.listed.Store(&known)
	}
	var last place
	for _, f := range functions {
		if after != nil && f.place.compare(*after) <= 0 {
			continue
		}
		if len(result.Tools) >= c.PageSize && last != (place{}) {
			data, err := json.Marshal(last)
			if err != nil {
				return nil, err
			}
			result.NextCursor = base64.RawURLEncoding.EncodeToString(data)
			break
		}
		last = f.place
		result.Tools = append(result.Tools, f.toMCP())
	}
	return result, nil
}

// toMCP is a function as a client is told of it.
func (f *listed) toMCP() *mcp.Tool {
	schema := f.function.GetInputSchema().AsMap()
	if schema["type"] != "object" { // which the protocol wants at the top
		merged := map[string]any{"type": "object"}
		for key, value := range schema {
			if key != "type" {
				merged[key] = value
			}
		}
		schema = merged
	}
	tool := &mcp.Tool{Name: f.function.GetName(), Title: cmp.Or(f.function.GetTitle(), f.tool.GetTitle()), InputSchema: schema}
	tool.Description = cmp.Or(f.function.GetDescription(), tool.Title, tool.Name) // some clients want one
	if output := f.function.GetOutputSchema(); output != nil {
		if widened := orRefusal(output.AsMap()); widened != nil {
			tool.OutputSchema = widened
		}
	}
	if a := f.function.GetAnnotations(); a != nil {
		tool.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: a.GetReadOnlyHint(), DestructiveHint: a.DestructiveHint,
			IdempotentHint: a.GetIdempotentHint(), OpenWorldHint: a.OpenWorldHint}
	}
	return tool
}

// orRefusal is a schema of what a function returns, or of a refusal: clients check that all structured content is as the
// schema says. A schema whose parts refer to others, or that is not for objects, cannot be a part itself: nil.
func orRefusal(schema map[string]any) map[string]any {
	delete(schema, "$schema") // whatever the dialect, it means the same here
	if schema["type"] != "object" || refers(schema) {
		return nil
	}
	return map[string]any{"type": "object", "anyOf": []any{schema, map[string]any{"type": "object", "required": []string{"message"}}}}
}

// refers tells whether some part of a schema refers to another, or may be referred to.
func refers(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if strings.HasPrefix(key, "$") && key != "$comment" || refers(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

// asJSONRPC is a status of Toolgrant's as an error of the protocol.
func asJSONRPC(err error) error {
	s := status.Convert(err)
	code := int64(jsonrpc.CodeInternalError)
	switch s.Code().String() {
	case "InvalidArgument", "NotFound", "PermissionDenied", "FailedPrecondition":
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: s.Message()}
}
