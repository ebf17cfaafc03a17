package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// Functions of Toolgrant's own, with which a model finds tools and turns them on.
const (
	searchFunction = "tool_search"
	enableFunction = "tool_enable"
)

// findInstructions tell a model how to come by what is not listed.
const findInstructions = "Not all tools are listed. If none of those that you have fits, say what is to be done in " + searchFunction +
	", turn on what it finds by name with " + enableFunction + ", and then call the functions that its answer describes, whether they are listed or not."

// own are the functions of Toolgrant's own, in the order in which they are listed, before all others.
var own = []*mcp.Tool{
	{Name: searchFunction, Title: "Search for tools",
		Description: "Finds tools for what is to be done, in words of any language. One step at a time finds more than a whole task. Turn on what is found with " +
			enableFunction + ", unless it is enabled already.",
		InputSchema: map[string]any{"type": "object", "required": []string{"query"}, "properties": map[string]any{
			"query": map[string]any{"type": "string", "minLength": 1, "description": "What is to be done."},
			"top_k": map[string]any{"type": "integer", "minimum": 1, "maximum": maxMatches, "description": "The most tools to return. Default 5."},
		}},
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(bool), OpenWorldHint: new(bool)}},
	{Name: enableFunction, Title: "Turn on tools",
		Description: "Turns on tools by name, in this conversation, for some turns. The answer describes their functions, which can be called at once.",
		InputSchema: map[string]any{"type": "object", "required": []string{"names"}, "properties": map[string]any{
			"names": map[string]any{"type": "array", "minItems": 1, "maxItems": maxNames, "items": map[string]any{"type": "string"},
				"description": "Names of tools, as " + searchFunction + " tells them."},
			"ttl_turns": map[string]any{"type": "integer", "minimum": 1, "description": "For how many turns they stay on, this one included. Default 3."},
		}},
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool), OpenWorldHint: new(bool)}},
}

// Bounds of questions and answers.
const (
	maxMatches          = 50
	maxNames            = 50
	maxMatchDescription = 500 // bytes; all of it is told of a tool that is turned on
)

// finds tells whether tools can be searched for and turned on here.
func (g *Gateway) finds() bool { return g.Discovery != nil }

// isOwn tells whether a function is Toolgrant's own.
func (g *Gateway) isOwn(name string) bool {
	return g.finds() && (name == searchFunction || name == enableFunction)
}

// callOwn answers a call of a function of Toolgrant's own. Nobody is asked whether it may be made.
func (c *conversation) callOwn(ctx context.Context, params *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	var content any
	var problem error
	if params.Name == searchFunction {
		content, problem = c.search(ctx, params.Arguments)
	} else {
		content, problem = c.enable(ctx, params.Arguments)
	}
	if problem != nil {
		message := problem.Error()
		if s, ok := status.FromError(problem); ok {
			if s.Code() != codes.InvalidArgument {
				return nil, asJSONRPC(problem)
			}
			message = s.Message()
		}
		return &mcp.CallToolResult{IsError: true, StructuredContent: map[string]any{"message": message},
			Content: []mcp.Content{&mcp.TextContent{Text: message}}}, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	result := &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
	if e, ok := content.(*enabled); ok {
		result.IsError = len(e.Enabled) == 0
	}
	return result, nil
}

// arguments reads arguments that a model made.
func arguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		wrong := (*json.UnmarshalTypeError)(nil)
		if errors.As(err, &wrong) && wrong.Field != "" {
			return fmt.Errorf("the argument %s cannot be a %s: see the schema", wrong.Field, wrong.Value)
		}
		return errors.New("the arguments must be a JSON object that satisfies the schema")
	}
	return nil
}

// found is the answer of tool_search.
type found struct {
	Matches      []match       `json:"matches"`
	Related      []relatedTool `json:"related,omitempty"`
	Suggestion   string        `json:"suggestion,omitempty"`
	SuggestionZH string        `json:"suggestion_zh,omitempty"`
	CallAtOnce   string        `json:"call_at_once,omitempty"` // the name of a tool that surely does the task, and is on
	NextStep     string        `json:"next_step,omitempty"`
}

type match struct {
	Name        string   `json:"name"`
	ToolID      string   `json:"tool_id"`
	Description string   `json:"description,omitempty"`
	Category    string   `json:"category,omitempty"`
	Risk        string   `json:"risk"`
	Enabled     bool     `json:"enabled"`
	Unhealthy   bool     `json:"unhealthy,omitempty"`
	Confidence  float64  `json:"confidence"`
	WhyMatched  []string `json:"why_matched,omitempty"`
}

type relatedTool struct {
	Name        string `json:"name"`
	ToolID      string `json:"tool_id"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	RelatedTo   string `json:"related_to_tool_id"`
}

// search asks DiscoveryService, and leaves out what could not be called here.
func (c *conversation) search(ctx context.Context, raw json.RawMessage) (*found, error) {
	var asked struct {
		Query string `json:"query"`
		TopK  int32  `json:"top_k"`
	}
	if err := arguments(raw, &asked); err != nil {
		return nil, err
	}
	if strings.TrimSpace(asked.Query) == "" {
		return nil, errors.New("the argument query is required: say what is to be done")
	}
	if asked.TopK < 0 || asked.TopK > maxMatches {
		return nil, fmt.Errorf("the argument top_k must be from 1 to %d", maxMatches)
	}
	request := &toolgrantv1.SearchToolsRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(), Turn: c.Turn, Query: asked.Query, TopK: asked.TopK,
		Provider: c.Provider, ModelCapabilities: c.modelCapabilities()}
	if c.NativeServer == "" { // some are left out
		request.TopK = maxMatches
	}
	answer, err := c.Discovery.SearchTools(ctx, request)
	if err != nil {
		return nil, err
	}
	f := &found{Matches: []match{}, Suggestion: answer.GetFallback().GetSuggestion(), SuggestionZH: answer.GetFallback().GetSuggestionZh()}
	if asked.TopK == 0 {
		asked.TopK = 5
	}
	off := false
	for _, m := range answer.GetMatches() {
		if !c.callable(m.GetSource()) || !answer.GetAllCandidates() && len(f.Matches) == int(asked.TopK) {
			continue
		}
		one := match{Name: m.GetName(), ToolID: m.GetToolId(), Description: cut(m.GetDescription(), maxMatchDescription), Category: m.GetCategory(),
			Risk: strings.TrimPrefix(m.GetRisk().String(), "TOOL_RISK_"), Enabled: m.GetEnabled(), Unhealthy: m.GetUnhealthy(), Confidence: m.GetConfidence()}
		for _, why := range m.GetWhyMatched() {
			one.WhyMatched = append(one.WhyMatched, why.GetMessage())
		}
		f.Matches = append(f.Matches, one)
		off = off || !m.GetEnabled()
		if m.GetToolId() == answer.GetFastPath().GetToolId() {
			f.CallAtOnce = m.GetName()
		}
	}
	for _, r := range answer.GetRelated() {
		f.Related = append(f.Related, relatedTool{r.GetName(), r.GetToolId(), cut(r.GetDescription(), maxMatchDescription), r.GetEnabled(), r.GetRelatedToToolId()})
	}
	switch {
	case off:
		f.NextStep = "Turn on what you need of these by name, with " + enableFunction + "."
	case len(f.Matches) == 0 && f.Suggestion == "":
		f.NextStep = "Nothing that can be called here was found: say it in other words, or do without."
	}
	return f, nil
}

// callable tells whether functions of a source can be called here.
func (g *Gateway) callable(source toolgrantv1.ToolSource) bool {
	return g.NativeServer != "" || source == toolgrantv1.ToolSource_TOOL_SOURCE_EXTERNAL_MCP
}

// enabled is the answer of tool_enable.
type enabled struct {
	Enabled  []enabledTool  `json:"enabled"`
	Rejected []rejectedTool `json:"rejected,omitempty"`
}

type enabledTool struct {
	Name      string `json:"name"`
	ToolID    string `json:"tool_id"`
	TTLTurns  int32  `json:"ttl_turns"`
	Prompt    string `json:"prompt,omitempty"` // how to use it
	Functions []any  `json:"functions"`        // as tools/list tells them
	// Note is why functions are missing.
	Note string `json:"note,omitempty"`
}

type rejectedTool struct {
	RequestedName string   `json:"requested_name"`
	Reason        string   `json:"reason"`
	Message       string   `json:"message"`
	MessageZH     string   `json:"message_zh,omitempty"`
	NextStep      string   `json:"next_step,omitempty"`
	NextStepZH    string   `json:"next_step_zh,omitempty"`
	NearestNames  []string `json:"nearest_names,omitempty"`
}

// enable asks DiscoveryService to turn tools on, and tells what can be called then.
func (c *conversation) enable(ctx context.Context, raw json.RawMessage) (*enabled, error) {
	var asked struct {
		Names    []string `json:"names"`
		TTLTurns *int32   `json:"ttl_turns"`
	}
	if err := arguments(raw, &asked); err != nil {
		return nil, err
	}
	if len(asked.Names) == 0 || len(asked.Names) > maxNames {
		return nil, fmt.Errorf("the argument names must have 1 to %d names of tools", maxNames)
	}
	request := &toolgrantv1.EnableToolsRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(), RequestId: "mcp:" + rand.Text(), Names: asked.Names,
		TtlTurns: asked.TTLTurns, Turn: c.Turn, Actor: toolgrantv1.ChatActor_CHAT_ACTOR_MODEL}
	answer, err := c.Discovery.EnableTools(ctx, request)
	if status.Code(err) == codes.NotFound { // the chat was not needed before
		_, problem := c.Chats.CreateChat(ctx, &toolgrantv1.CreateChatRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(), RequestId: "mcp:" + rand.Text()})
		if problem != nil && status.Code(problem) != codes.AlreadyExists {
			return nil, problem
		}
		answer, err = c.Discovery.EnableTools(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	e := &enabled{Enabled: []enabledTool{}}
	for _, r := range answer.GetRejected() {
		e.Rejected = append(e.Rejected, rejectedTool{r.GetRequestedName(), strings.TrimPrefix(r.GetReason().String(), "REJECTION_REASON_"), r.GetMessage(),
			r.GetMessageZh(), r.GetNextStep(), r.GetNextStepZh(), r.GetNearestNames()})
	}
	if len(answer.GetEnabled()) == 0 {
		return e, nil
	}
	set, err := c.resolve(ctx, answer.GetRevision())
	if err != nil {
		return nil, err
	}
	told, left := map[string]bool{}, c.ResultBytes/2
	for _, t := range answer.GetEnabled() {
		if !told[t.GetToolId()] {
			told[t.GetToolId()] = true
			e.Enabled = append(e.Enabled, c.describe(set, t, &left))
		}
	}
	return e, nil
}

// describe tells what can be called of a tool that was turned on, in so many bytes.
func (c *conversation) describe(set *toolgrantv1.ResolveToolsResponse, t *toolgrantv1.EnabledTool, left *int) enabledTool {
	e := enabledTool{Name: t.GetName(), ToolID: t.GetToolId(), TTLTurns: t.GetTtlTurns(), Functions: []any{}}
	for _, w := range set.GetWithheld() {
		if w.GetToolId() == t.GetToolId() {
			e.Note = w.GetMessage()
		}
	}
	for _, tool := range set.GetTools() {
		if tool.GetToolId() != t.GetToolId() {
			continue
		}
		e.Prompt = tool.GetPrompt()
		*left -= len(e.Prompt)
		if !c.callable(tool.GetSource()) {
			e.Note = "It cannot be called here: it runs in the chat server."
		}
		for _, f := range c.functions([]*toolgrantv1.EffectiveTool{tool}) {
			described := f.toMCP()
			data, err := json.Marshal(described)
			if *left -= len(data); err != nil || *left < 0 {
				e.Functions = append(e.Functions, map[string]string{"name": f.function.GetName()})
				e.Note = "There is no room for the schemas of all functions: list the tools."
				continue
			}
			e.Functions = append(e.Functions, described)
		}
	}
	return e
}

// cut shortens a text to so many bytes at most, without cutting a character.
func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes] + "…"
}

// instructions are what a model is told at first; empty: nothing.
func (g *Gateway) instructions() string {
	if !g.finds() {
		return ""
	}
	return findInstructions
}
