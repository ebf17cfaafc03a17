package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// Calls have no name in MCP, but an approval given once is good for one named call. So the name of a call begins with a
// digest of who makes it, where, and with which arguments; and who makes the same call again, at whichever server, finds
// by that what it asked before, among the approvals, and goes on with the same call.

// refusalStands is for how long a person's refusal holds for the same call. Then it may be asked about anew.
const refusalStands = 15 * time.Minute

// functionKey is a function as one user may call it.
type functionKey struct{ user, device, function string }

// nameOf is how names of this very call begin.
func (c *conversation) nameOf(r *toolgrantv1.AuthorizeCallRequest) (string, error) {
	text, err := json.Marshal([]any{c.User, c.Chat, c.Device, r.GetFunction(), r.GetArguments().AsMap()}) // keys of objects are sorted
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "mcp:" + hex.EncodeToString(sum[:16]) + ":", nil
}

// authorize asks whether a call may be made. A call that asked for an approval before goes on with that.
func (c *conversation) authorize(ctx context.Context, r *toolgrantv1.AuthorizeCallRequest) (*toolgrantv1.AuthorizeCallResponse, error) {
	name, err := c.nameOf(r)
	if err != nil {
		return nil, err
	}
	fresh := func() { r.CallId = name + rand.Text() }
	fresh()
	asked := ""
	if risky, err := c.mayNeedApproval(ctx, r); err != nil {
		return nil, err
	} else if risky {
		if asked, err = c.askedBefore(ctx, name); err != nil {
			return nil, err
		}
	}
	if asked != "" {
		r.CallId = asked
	}
	answer, err := c.Calls.AuthorizeCall(ctx, r)
	if code := status.Code(err); asked != "" && (code == codes.AlreadyExists || code == codes.FailedPrecondition || answer.GetApprovalUsed()) {
		fresh() // the function means another tool now, or the same call is being made, or was just made: this one is another
		answer, err = c.Calls.AuthorizeCall(ctx, r)
	}
	if err == nil {
		c.remember(r, answer)
	}
	return answer, err
}

// mayNeedApproval tells whether a call of the function may rest on an approval, which is to be looked for then. For a
// function that is new here that is asked; afterwards it is known. If that changes, a person may be asked twice.
func (c *conversation) mayNeedApproval(ctx context.Context, r *toolgrantv1.AuthorizeCallRequest) (bool, error) {
	if c.Approvals == nil {
		return false, nil
	}
	if risky, known := c.risky.Get(functionKey{c.User, c.Device, r.GetFunction()}); known {
		return risky, nil
	}
	look := proto.CloneOf(r)
	look.DryRun = true
	answer, err := c.Calls.AuthorizeCall(ctx, look)
	if err != nil {
		return false, err
	}
	return c.remember(r, answer), nil
}

// remember notes whether a function's calls need approvals, as an answer tells.
func (c *conversation) remember(r *toolgrantv1.AuthorizeCallRequest, answer *toolgrantv1.AuthorizeCallResponse) (risky bool) {
	switch answer.GetReason() {
	case toolgrantv1.CallReason_CALL_REASON_APPROVAL_REQUIRED, toolgrantv1.CallReason_CALL_REASON_APPROVAL_DENIED, toolgrantv1.CallReason_CALL_REASON_APPROVAL_EXPIRED:
		risky = true
	default:
		risky = answer.GetApprovalId() != ""
	}
	if risky || answer.GetDecision() == toolgrantv1.CallDecision_CALL_DECISION_ALLOW { // else it was not looked at
		c.risky.Add(functionKey{c.User, c.Device, r.GetFunction()}, risky)
	}
	return risky
}

// askedBefore finds the call of that name that waits for an approval, or may be made on one, or was refused lately; empty: none.
func (c *conversation) askedBefore(ctx context.Context, name string) (string, error) {
	list, err := c.Approvals.ListApprovals(ctx, &toolgrantv1.ListApprovalsRequest{UserId: c.User, ChatId: c.Chat, PageSize: 1000})
	if err != nil {
		return "", err
	}
	refused, newest := "", true
	for _, a := range list.GetApprovals() { // newest first
		if !strings.HasPrefix(a.GetCallId(), name) {
			continue
		}
		switch a.GetState() {
		case toolgrantv1.ApprovalState_APPROVAL_STATE_PENDING:
			return a.GetCallId(), nil
		case toolgrantv1.ApprovalState_APPROVAL_STATE_APPROVED:
			if a.GetScope() == toolgrantv1.ApprovalScope_APPROVAL_SCOPE_ONCE {
				return a.GetCallId(), nil
			}
		case toolgrantv1.ApprovalState_APPROVAL_STATE_DENIED:
			if newest && time.Since(a.GetDecideTime().AsTime()) < refusalStands {
				refused = a.GetCallId()
			}
		}
		newest = false
	}
	return refused, nil
}

// The question to the user, and its answers.
const (
	approvalInput  = "approval"
	decisionField  = "decision"
	decisionRefuse = "refuse"
	decisionOnce   = "approve_once"
	decisionChat   = "approve_in_chat"
)

// elicitTimeout is how long a user is asked, in the protocol with sessions. The approval waits on.
const elicitTimeout = 10 * time.Minute

// maxShown bounds, in bytes, what a user is shown of a call's arguments.
const maxShown = 4 << 10

// question asks the user about a call. No answer is chosen beforehand, and none but a chosen one counts.
func question(function string, arguments json.RawMessage, answer *toolgrantv1.AuthorizeCallResponse) *mcp.ElicitParams {
	message := fmt.Sprintf("%s\n\nFunction: %s\nArguments: %s", answer.GetMessage(), visible(function), visible(cut(string(arguments), maxShown)))
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{"type": "object", "required": []string{decisionField},
		"properties": map[string]any{decisionField: map[string]any{"type": "string", "title": "May it be called?",
			"enum":      []string{decisionRefuse, decisionOnce, decisionChat},
			"enumNames": []string{"No", "Yes, this once", "Yes, this function in this chat"}}}}}
}

// visible shows what cannot be seen in a text, or changes its direction, by number.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// canElicit tells whether the user can be asked through the client.
func (c *conversation) canElicit(capabilities *mcp.ClientCapabilities) bool {
	if c.Approvals == nil || !c.ElicitApprovals || c.mayNotDecide.Contains(c.User) || capabilities == nil || capabilities.Elicitation == nil {
		return false
	}
	return capabilities.Elicitation.Form != nil || capabilities.Elicitation.URL == nil
}

// elicited asks the user about a call that needs an approval, and writes down what he says. In the protocol without
// sessions the client is told to ask, and to make the call again with the answer. It tells whether anything was decided.
func (c *conversation) elicited(ctx context.Context, r *mcp.CallToolRequest, answer *toolgrantv1.AuthorizeCallResponse) (ask *mcp.CallToolResult, decided bool) {
	if !c.canElicit(r.ClientCapabilities()) {
		return nil, false
	}
	params := question(r.Params.Name, r.Params.Arguments, answer)
	var said *mcp.ElicitResult
	if c.stateless {
		// That the state names the approval says that this very question was asked; the approval is found by the call.
		if r.Params.RequestState != answer.GetApprovalId() {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{approvalInput: params}, RequestState: answer.GetApprovalId()}, false
		}
		said, _ = r.Params.InputResponses[approvalInput].(*mcp.ElicitResult)
	} else {
		limited, cancel := context.WithTimeout(ctx, elicitTimeout)
		defer cancel()
		var err error
		if said, err = r.Session.Elicit(limited, params); err != nil {
			c.Logger.WarnContext(ctx, "a user could not be asked for an approval", "approval_id", answer.GetApprovalId(), "error", err)
			return nil, false
		}
	}
	decision := decisionOf(said)
	if decision == nil {
		return nil, false
	}
	decision.ApprovalId, decision.Reason = answer.GetApprovalId(), "said by the user in the MCP client"
	if info := r.ClientInfo(); info != nil {
		decision.Reason += " " + cut(visible(info.Name+" "+info.Version), 200)
	}
	_, err := c.Approvals.DecideApproval(metadata.AppendToOutgoingContext(ctx, "toolgrant-actor", c.User), decision)
	if status.Code(err) == codes.PermissionDenied { // by the credentials with which the client came; he is asked in vain once
		c.mayNotDecide.Add(c.User, struct{}{})
	}
	if err != nil && status.Code(err) != codes.FailedPrecondition { // which says that somebody else has decided
		c.Logger.WarnContext(ctx, "what a user decided could not be written down", "approval_id", answer.GetApprovalId(), "error", err)
		return nil, false
	}
	return nil, true
}

// decisionOf is what a user decided; nil: nothing.
func decisionOf(said *mcp.ElicitResult) *toolgrantv1.DecideApprovalRequest {
	if said == nil {
		return nil
	}
	switch said.Action {
	case "decline":
		return &toolgrantv1.DecideApprovalRequest{}
	case "accept":
		switch said.Content[decisionField] {
		case decisionRefuse:
			return &toolgrantv1.DecideApprovalRequest{}
		case decisionOnce:
			return &toolgrantv1.DecideApprovalRequest{Approve: true, Scope: toolgrantv1.ApprovalScope_APPROVAL_SCOPE_ONCE}
		case decisionChat:
			return &toolgrantv1.DecideApprovalRequest{Approve: true, Scope: toolgrantv1.ApprovalScope_APPROVAL_SCOPE_CHAT}
		}
	}
	return nil
}
