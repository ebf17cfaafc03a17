package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// riskyWorld has one function that needs an approval.
const riskyWorld = `
mcp_servers: [{mcp_server_id: maps, endpoint: "%s"}]
tool_types: [{tool_type_id: maps, source: TOOL_SOURCE_EXTERNAL_MCP, mcp_server_id: maps, functions: [{name: route}]}]
tools: [{tool_id: maps, tool_type_id: maps, name: maps}]
groups: [{group_id: all, grant_tool_ids: [maps]}]
avatars: [{avatar_id: a, tool_ids: [maps]}]
default_avatars: [{avatar_id: a}]
users: [{user_id: ann, memberships: [{group_id: all}]}]
`

func (b bundle) decide(t *testing.T, approval any, approve bool) {
	t.Helper()
	r := &v1.DecideApprovalRequest{ApprovalId: approval.(string), Approve: approve}
	if approve {
		r.Scope = v1.ApprovalScope_APPROVAL_SCOPE_ONCE
	}
	if _, err := v1.NewApprovalServiceClient(b.Conn).DecideApproval(b.ctx, r); err != nil {
		t.Fatal(err)
	}
}

// approvals are those of the user, newest first.
func (b bundle) approvals(t *testing.T) []*v1.Approval {
	t.Helper()
	r, err := v1.NewApprovalServiceClient(b.Conn).ListApprovals(b.ctx, &v1.ListApprovalsRequest{UserId: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetApprovals()
}

// A user whose client can ask decides there. Nothing but a decision that was chosen counts as one.
func TestUsersAreAskedThroughTheirClients(t *testing.T) {
	url, calls, _ := maps(t)
	b := gateway(t, fmt.Sprintf(riskyWorld, url))
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			var say *sdk.ElicitResult
			var asked []*sdk.ElicitParams
			s := b.connect(t, as{"toolgrant-user": "ann", "toolgrant-chat": "elicit-" + version}, version, &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = append(asked, r.Params)
					return say, nil
				}})
			decision := func(d string) *sdk.ElicitResult {
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": d}}
			}
			for i, test := range []struct {
				name   string
				say    *sdk.ElicitResult
				to     string // the arguments
				asked  int
				reason string // empty: it is called
				state  v1.ApprovalState
			}{
				{"closing the question decides nothing", &sdk.ElicitResult{Action: "cancel"}, "Rome", 1, "CALL_REASON_APPROVAL_REQUIRED", v1.ApprovalState_APPROVAL_STATE_PENDING},
				{"nor does accepting without a decision", &sdk.ElicitResult{Action: "accept"}, "Rome", 1, "CALL_REASON_APPROVAL_REQUIRED", v1.ApprovalState_APPROVAL_STATE_PENDING},
				{"declining refuses", &sdk.ElicitResult{Action: "decline"}, "Rome", 1, "CALL_REASON_APPROVAL_DENIED", v1.ApprovalState_APPROVAL_STATE_DENIED},
				{"a refusal stands", decision("approve_once"), "Rome", 0, "CALL_REASON_APPROVAL_DENIED", v1.ApprovalState_APPROVAL_STATE_DENIED},
				{"so does one that was chosen", decision("refuse"), "Oslo", 1, "CALL_REASON_APPROVAL_DENIED", v1.ApprovalState_APPROVAL_STATE_DENIED},
				{"once", decision("approve_once"), "Bern", 1, "", v1.ApprovalState_APPROVAL_STATE_USED},
				{"once is not twice", &sdk.ElicitResult{Action: "cancel"}, "Bern", 1, "CALL_REASON_APPROVAL_REQUIRED", v1.ApprovalState_APPROVAL_STATE_PENDING},
				{"in the chat", decision("approve_in_chat"), "Bern", 1, "", v1.ApprovalState_APPROVAL_STATE_APPROVED},
				{"then nobody is asked", decision("refuse"), "Kyiv", 0, "", v1.ApprovalState_APPROVAL_STATE_APPROVED},
			} {
				say, asked = test.say, nil
				made := calls.Load()
				text, structured, isError := call(t, b.ctx, s, "maps__route", map[string]any{"to": test.to + "\u202e"})
				reason, _ := structured["reason"].(string)
				if reason != test.reason || isError != (test.reason != "") || len(asked) != test.asked || calls.Load()-made != int64(btoi(test.reason == "")) {
					t.Fatalf("%d, %s: %q, %v; asked %d times, called %d times", i, test.name, text, structured, len(asked), calls.Load()-made)
				}
				newest := b.approvals(t)[0]
				if newest.GetState() != test.state {
					t.Errorf("%s: the approval is %v", test.name, newest)
				}
				if test.state != v1.ApprovalState_APPROVAL_STATE_PENDING && (newest.GetDecidedBy() != "claimed:ann" || !strings.Contains(newest.GetReason(), "MCP client client 1")) {
					t.Errorf("%s: who decided, and why, is %q, %q", test.name, newest.GetDecidedBy(), newest.GetReason())
				}
				for _, p := range asked {
					if !strings.Contains(p.Message, "maps__route") || !strings.Contains(p.Message, test.to+`\u202e`) || strings.Contains(p.Message, "\u202e") {
						t.Errorf("%s: the user is asked %q", test.name, p.Message)
					}
				}
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A client that cannot ask, or may not, is told what to wait for.
func TestUsersAreNotAskedWhereTheOperatorDoesNotWantThat(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(riskyWorld, url), func(o *mcp.GatewayOptions) { o.ElicitApprovals = false })
	for _, version := range versions {
		s := b.connect(t, ann, version, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			t.Error("the user was asked")
			return &sdk.ElicitResult{Action: "cancel"}, nil
		}})
		text, structured, _ := call(t, b.ctx, s, "maps__route", nil)
		next, _ := structured["next_step"].(map[string]any)
		if next["approval_id"] == nil || next["approval_id"] != structured["approval_id"] || !strings.Contains(text, structured["approval_id"].(string)) {
			t.Errorf("it is told %q, %v", text, structured)
		}
	}
}

// A call that waits is known at every server: who asks at one, is decided about at another, and calls at a third.
func TestACallThatWaitsIsKnownToAllServers(t *testing.T) {
	url, calls, _ := maps(t)
	database := testkit.Database(t)
	servers := []bundle{gatewayOf(t, database), gatewayOf(t, database), gatewayOf(t, database)}
	servers[0].apply(t, fmt.Sprintf(riskyWorld, url))
	to := map[string]any{"to": "Rome", "by": "train", "stops": []any{1.5, nil}}
	sessions := make([]*sdk.ClientSession, len(servers))
	for i, b := range servers {
		await(t, b.ctx, "the catalogue", func() bool { return len(b.Replica.World().MCPServers) > 0 })
		sessions[i] = b.connect(t, ann, "", nil)
	}
	_, first, _ := call(t, servers[0].ctx, sessions[0], "maps__route", to)
	_, second, _ := call(t, servers[1].ctx, sessions[1], "maps__route", to)
	if first["approval_id"] == nil || first["approval_id"] != second["approval_id"] || len(servers[0].approvals(t)) != 1 {
		t.Fatalf("the same call asks for %v and %v", first, second)
	}
	if _, other, _ := call(t, servers[1].ctx, sessions[1], "maps__route", map[string]any{"to": "Oslo"}); other["approval_id"] == first["approval_id"] {
		t.Error("another call asks for the same")
	}
	servers[1].decide(t, first["approval_id"], true)
	// Called many times at all servers at once, it is made once.
	var group sync.WaitGroup
	var made atomic.Int64
	for range 3 {
		for i, b := range servers {
			group.Go(func() {
				result, err := sessions[i].CallTool(b.ctx, &sdk.CallToolParams{Name: "maps__route", Arguments: to})
				if err != nil {
					t.Error(err)
				} else if !result.IsError {
					made.Add(1)
				}
			})
		}
	}
	group.Wait()
	if made.Load() != 1 || calls.Load() != 1 {
		t.Errorf("approved once, it was made %d times, and %d times on the server", made.Load(), calls.Load())
	}
}

// What a person refused stays refused for the same call, at every server.
func TestARefusalIsKnownToAllServers(t *testing.T) {
	url, _, _ := maps(t)
	database := testkit.Database(t)
	a, b := gatewayOf(t, database), gatewayOf(t, database)
	a.apply(t, fmt.Sprintf(riskyWorld, url))
	await(t, b.ctx, "the catalogue", func() bool { return len(b.Replica.World().MCPServers) > 0 })
	here, there := a.connect(t, ann, "", nil), b.connect(t, ann, "", nil)
	_, first, _ := call(t, a.ctx, here, "maps__route", nil)
	a.decide(t, first["approval_id"], false)
	for range 2 {
		if text, structured, _ := call(t, b.ctx, there, "maps__route", nil); structured["reason"] != "CALL_REASON_APPROVAL_DENIED" {
			t.Errorf("it is answered %q, %v", text, structured)
		}
	}
}

// A user whose credentials decide nothing is asked in vain once, and nothing is granted.
func TestUsersWhoMayNotDecideDecideNothing(t *testing.T) {
	url, calls, _ := maps(t)
	var who atomic.Pointer[caller.Identity] // of all who call
	who.Store(&caller.Identity{Actor: "key:operator", Role: caller.Admin})
	b := gatewayBefore(t, node.Start(t, testkit.Database(t), node.Options{Authenticate: func(context.Context) (*caller.Identity, error) { return who.Load(), nil }}))
	b.apply(t, fmt.Sprintf(riskyWorld, url))
	who.Store(&caller.Identity{Actor: "key:ann", Role: caller.Frontend, User: "ann", MCP: true})
	asked := 0
	s := b.connect(t, ann, "2025-11-25", &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked++
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve_once"}}, nil
	}})
	for range 2 {
		if text, structured, _ := call(t, b.ctx, s, "maps__route", nil); structured["reason"] != "CALL_REASON_APPROVAL_REQUIRED" {
			t.Errorf("it is answered %q", text)
		}
	}
	if list := b.approvals(t); asked != 1 || calls.Load() != 0 || len(list) != 1 || list[0].GetState() != v1.ApprovalState_APPROVAL_STATE_PENDING {
		t.Errorf("asked %d times, called %d times: %v", asked, calls.Load(), list)
	}
}
