package grpcserver

import (
	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/id"
)

var callDecisions = map[call.Decision]toolgrantv1.CallDecision{
	call.Allow:         toolgrantv1.CallDecision_CALL_DECISION_ALLOW,
	call.Deny:          toolgrantv1.CallDecision_CALL_DECISION_DENY,
	call.NeedsApproval: toolgrantv1.CallDecision_CALL_DECISION_NEEDS_APPROVAL,
}

// callReasons are the proto's, by the pipeline's.
var callReasons = func() map[call.Reason]toolgrantv1.CallReason {
	reasons := map[call.Reason]toolgrantv1.CallReason{}
	for name, number := range toolgrantv1.CallReason_value {
		reasons[call.Reason(name[len("CALL_REASON_"):])] = toolgrantv1.CallReason(number)
	}
	reasons[call.ReasonNone] = toolgrantv1.CallReason_CALL_REASON_UNSPECIFIED
	return reasons
}()

// callToProto words an answer. What was taken for it, the caller adds.
func callToProto(x *callIndex, a *call.Answer) (*toolgrantv1.AuthorizeCallResponse, error) {
	p := &toolgrantv1.AuthorizeCallResponse{
		Decision:        callDecisions[a.Decision],
		Reason:          callReasons[a.Reason],
		Message:         a.Message,
		MessageZh:       a.MessageZH,
		NextStep:        nextStepToProto(a),
		ToolId:          string(a.Tool),
		SourceTrace:     a.Trace,
		FallbackToolIds: strings(a.Fallback),
		ApprovalId:      string(a.Approval),
	}
	if a.Withheld != nil {
		p.Withheld = withheldToProto(*a.Withheld)
	}
	if a.Decision == call.Allow {
		return p, x.bind(p, a.Tool, &a.Binding)
	}
	return p, nil
}

func nextStepToProto(a *call.Answer) *toolgrantv1.NextStep {
	switch next := &a.Next; {
	case next.Enable != nil:
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_Enable{Enable: enableToProto(next.Enable)}}
	case next.Approve:
		if a.Approval == "" { // a dry run asks nobody
			return nil
		}
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_ApprovalId{ApprovalId: string(a.Approval)}}
	case next.RetryAfter > 0:
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_RetryAfter{RetryAfter: durationpb.New(next.RetryAfter)}}
	case len(next.Fallback) > 0:
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_UseFallback{UseFallback: &toolgrantv1.UseFallback{Functions: next.Fallback}}}
	case len(next.Faults) > 0:
		fix := &toolgrantv1.FixArguments{}
		for _, f := range next.Faults {
			fix.Faults = append(fix.Faults, &toolgrantv1.ArgumentFault{Path: f.Path, Description: f.Description})
		}
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_FixArguments{FixArguments: fix}}
	case len(next.Sources) > 0:
		name := &toolgrantv1.NameSource{}
		for _, s := range next.Sources {
			name.Sources = append(name.Sources, &toolgrantv1.FunctionSource{Source: s.Source, ToolId: string(s.Tool), UniqueName: s.UniqueName})
		}
		return &toolgrantv1.NextStep{Kind: &toolgrantv1.NextStep_NameSource{NameSource: name}}
	}
	return nil
}

func enableToProto(e *call.EnableRequest) *toolgrantv1.SetChatToolsRequest {
	return &toolgrantv1.SetChatToolsRequest{ChatId: string(e.Chat), RequestId: e.RequestID, Turn: e.Turn, Changes: []*toolgrantv1.ToolChange{
		{ToolId: string(e.Tool), Action: toolgrantv1.ChatAction_CHAT_ACTION_ENABLE}}}
}

// operationOf is the operation that holds a call's quotas. No operation of QuotaService is named so.
func operationOf(name id.Call) string { return "call|" + string(name) }
