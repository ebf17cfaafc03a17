package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
)

// configKey is where a native tool's configuration stands in a request's _meta.
const configKey = "toolgrant/config"

// reportTimeout bounds each attempt to report a call, which outlives its client.
const reportTimeout = 5 * time.Second

// call answers tools/call. A refusal is a result that a model can act on.
func (c *conversation) call(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params, arguments := r.Params, &structpb.Struct{}
	if raw := bytes.TrimSpace(params.Arguments); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := arguments.UnmarshalJSON(raw); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "arguments must be a JSON object"}
		}
	}
	request := &toolgrantv1.AuthorizeCallRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(), Turn: c.Turn,
		Function: params.Name, Arguments: arguments, Provider: c.Provider, ModelCapabilities: c.modelCapabilities(),
		Lease: durationpb.New(max(time.Second, min(c.CallTimeout+time.Minute, 24*time.Hour)))}
	answer, err := c.authorize(ctx, request)
	if err == nil && answer.GetDecision() == toolgrantv1.CallDecision_CALL_DECISION_NEEDS_APPROVAL {
		ask, decided := c.elicited(ctx, r, answer)
		if ask != nil {
			return ask, nil
		}
		if decided {
			answer, err = c.authorize(ctx, request)
		}
	}
	if err != nil {
		return nil, asJSONRPC(err)
	}
	if answer.GetDecision() != toolgrantv1.CallDecision_CALL_DECISION_ALLOW {
		return refusal(answer, request.GetCallId())
	}
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	began := time.Now()
	result, outcome := c.run(ctx, r.Session, answer, params)
	c.report(ctx, &toolgrantv1.ReportCallRequest{CallId: request.GetCallId(), Outcome: outcome, Latency: durationpb.New(time.Since(began))})
	return c.bounded(result), nil
}

// run makes a call that was allowed, and tells how it went. Its result is never nil.
func (c *conversation) run(ctx context.Context, session *mcp.ServerSession, answer *toolgrantv1.AuthorizeCallResponse, params *mcp.CallToolParamsRaw) (*mcp.CallToolResult, toolgrantv1.CallOutcome) {
	server, function, config := id.MCPServer(answer.GetBinding().GetMcp().GetMcpServerId()), answer.GetBinding().GetMcp().GetFunction(), (*structpb.Struct)(nil)
	if native := answer.GetBinding().GetNative(); native != nil {
		function, config = native.GetToolClass(), native.GetConfig()
	} else if server == "" {
		config = answer.GetBinding().GetMcp().GetConfig()
	}
	if server == "" {
		if server = c.NativeServer; server == "" {
			return failure(answer, "The tool runs in the chat server, and cannot be called here."), toolgrantv1.CallOutcome_CALL_OUTCOME_CANCELLED
		}
	}
	found, err := c.Server(ctx, server)
	if err != nil {
		return failure(answer, "The tool's MCP server is not known here."), toolgrantv1.CallOutcome_CALL_OUTCOME_UNREACHABLE
	}
	if headers := answer.GetBinding().GetMcp().GetHeadersFromEnv(); len(headers) > 0 { // the tool may have its own
		of := *found
		of.HeadersFromEnv, found = headers, &of
	}
	var meta mcp.Meta
	if config != nil {
		meta = mcp.Meta{configKey: config.AsMap()}
	}
	var progress func(*mcp.ProgressNotificationParams)
	if token := params.GetProgressToken(); token != nil && session != nil {
		progress = func(p *mcp.ProgressNotificationParams) {
			_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message})
		}
	}
	result, err := c.Pool.Call(ctx, found, function, params.Arguments, meta, progress)
	refused, unreachable := (*jsonrpc.Error)(nil), (*UnreachableError)(nil)
	switch {
	case err == nil && len(result.InputRequests) > 0:
		return failure(answer, "The tool asks for something that cannot be asked for here."), toolgrantv1.CallOutcome_CALL_OUTCOME_ERROR
	case err == nil && result.IsError:
		return result, toolgrantv1.CallOutcome_CALL_OUTCOME_ERROR
	case err == nil:
		return result, toolgrantv1.CallOutcome_CALL_OUTCOME_SUCCESS
	case errors.Is(err, context.DeadlineExceeded):
		return failure(answer, fmt.Sprintf("The tool did not answer within %v. It may have done what it was asked to.", c.CallTimeout)), toolgrantv1.CallOutcome_CALL_OUTCOME_TIMEOUT
	case ctx.Err() != nil:
		return failure(answer, "The call was cancelled."), toolgrantv1.CallOutcome_CALL_OUTCOME_CANCELLED
	case errors.As(err, &unreachable):
		c.Logger.WarnContext(ctx, "an MCP server cannot be reached", "mcp_server_id", string(server), "error", err)
		return failure(answer, "The tool's MCP server cannot be reached, or broke off. Try again later."), toolgrantv1.CallOutcome_CALL_OUTCOME_UNREACHABLE
	case errors.As(err, &refused) && refused.Code == jsonrpc.CodeInvalidParams:
		return failure(answer, "The tool refuses the arguments: "+refused.Message), toolgrantv1.CallOutcome_CALL_OUTCOME_BAD_ARGUMENTS
	case errors.As(err, &refused):
		return failure(answer, "The tool failed: "+refused.Message), toolgrantv1.CallOutcome_CALL_OUTCOME_ERROR
	}
	return failure(answer, "The tool failed."), toolgrantv1.CallOutcome_CALL_OUTCOME_ERROR
}

// report tells how a call went, even if its client is gone.
func (c *conversation) report(ctx context.Context, request *toolgrantv1.ReportCallRequest) {
	ctx = context.WithoutCancel(ctx)
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(ctx, reportTimeout)
		_, err := c.Calls.ReportCall(limited, request)
		cancel()
		switch again := status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded; {
		case err == nil:
			return
		case !again || try == 3:
			c.Logger.WarnContext(ctx, "a call could not be reported; what it holds of quotas runs out with its lease", "call_id", request.GetCallId(), "error", err)
			return
		}
		time.Sleep(100 * time.Millisecond << try)
	}
}

// refusal words a refusal for a model: what it is, and what to do next.
func refusal(answer *toolgrantv1.AuthorizeCallResponse, callID string) (*mcp.CallToolResult, error) {
	told := &toolgrantv1.AuthorizeCallResponse{Decision: answer.GetDecision(), Reason: answer.GetReason(), Message: answer.GetMessage(), MessageZh: answer.GetMessageZh(),
		NextStep: answer.GetNextStep(), ToolId: answer.GetToolId(), FallbackToolIds: answer.GetFallbackToolIds(), ApprovalId: answer.GetApprovalId()}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(told)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	content["call_id"] = callID
	return &mcp.CallToolResult{IsError: true, StructuredContent: content,
		Content: []mcp.Content{&mcp.TextContent{Text: strings.TrimSpace(answer.GetMessage() + " " + nextInWords(answer))}}}, nil
}

// nextInWords says what to do after a refusal.
func nextInWords(answer *toolgrantv1.AuthorizeCallResponse) string {
	switch next := answer.GetNextStep().GetKind().(type) {
	case *toolgrantv1.NextStep_Enable:
		return "Next: have it enabled in this conversation, then call it again."
	case *toolgrantv1.NextStep_ApprovalId:
		return "Next: wait until a person has decided on approval " + next.ApprovalId + ", then make the same call again, with the same arguments."
	case *toolgrantv1.NextStep_RetryAfter:
		return fmt.Sprintf("Next: call it again after %v.", next.RetryAfter.AsDuration().Round(time.Second))
	case *toolgrantv1.NextStep_UseFallback:
		return "Next: use instead: " + strings.Join(next.UseFallback.GetFunctions(), ", ") + "."
	case *toolgrantv1.NextStep_FixArguments:
		var faults []string
		for _, f := range next.FixArguments.GetFaults() {
			faults = append(faults, f.GetPath()+": "+f.GetDescription())
		}
		return "Next: fix these arguments, and call it again: " + strings.Join(faults, "; ") + "."
	case *toolgrantv1.NextStep_NameSource:
		var names []string
		for _, s := range next.NameSource.GetSources() {
			names = append(names, s.GetUniqueName())
		}
		return "Next: call one of: " + strings.Join(names, ", ") + "."
	}
	return "Do not call it again now: nothing you can do would help."
}

// failure is the result of a call that was allowed and went wrong.
func failure(answer *toolgrantv1.AuthorizeCallResponse, message string) *mcp.CallToolResult {
	content := map[string]any{"message": message, "tool_id": answer.GetToolId()}
	if fallback := answer.GetFallbackToolIds(); len(fallback) > 0 {
		content["fallback_tool_ids"] = fallback
		message += " Tools that can stand in: " + strings.Join(fallback, ", ") + "."
	}
	return &mcp.CallToolResult{IsError: true, StructuredContent: content, Content: []mcp.Content{&mcp.TextContent{Text: message}}}
}

// bounded returns a result, or, where that is too large, the beginning of its text, and that it was cut.
func (c *conversation) bounded(result *mcp.CallToolResult) *mcp.CallToolResult {
	result.Meta = nil // a stranger's words to the client, not to the model
	data, err := json.Marshal(result)
	if err == nil && len(data) <= c.ResultBytes {
		return result
	}
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "The tool's result cannot be read."}}}
	}
	beginning := ""
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			beginning = strings.ToValidUTF8(text.Text[:min(len(text.Text), c.ResultBytes/8)], "")
			break
		}
	}
	note := fmt.Sprintf("The result has %d bytes, more than the %d that are passed on: ask for less. It begins:\n%s", len(data), c.ResultBytes, beginning)
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: note}},
		StructuredContent: map[string]any{"message": "The result is too large.", "result_bytes": len(data), "limit_bytes": c.ResultBytes}}
}
