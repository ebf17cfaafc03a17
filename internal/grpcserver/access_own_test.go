package grpcserver_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"buf.build/go/protoyaml"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	proven "github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// asked is what a request names, each of it some user's.
type asked struct{ user, chat, device, approval string }

// fill makes a valid request for an RPC, whatever its message: its fields have the same names everywhere.
func (a asked) fill(t *testing.T, r rpc, request string) proto.Message {
	t.Helper()
	values := map[protoreflect.Name]string{
		"user_id": a.user, "chat_id": a.chat, "device_id": a.device, "approval_id": a.approval, "surface": "{device_id: " + a.device + "}",
		"request_id": request, "operation_id": request, "call_id": request, "group_id": "premium", "tool_id": "slides", "function": "slides",
		"query": "show slides", "names": "[slides]", "reason": "why not",
	}
	if a.device == "" {
		values["surface"] = "{web: {}}"
	}
	switch r.Name() {
	case "SetChatTools":
		values["changes"] = "[{tool_id: slides, action: CHAT_ACTION_ENABLE}]"
	case "SetChatAvatars":
		values["changes"] = "[{avatar_id: helper, action: CHAT_ACTION_ENABLE}]"
	}
	text := "{"
	for i := range r.Input().Fields().Len() {
		name := r.Input().Fields().Get(i).Name()
		if value := values[name]; value != "" {
			text += string(name) + ": " + value + ", "
		}
	}
	message := dynamicpb.NewMessage(r.Input())
	if err := protoyaml.Unmarshal([]byte(text+"}"), message); err != nil {
		t.Fatalf("%s: %v: give fill a value for what is new in its request", r.path, err)
	}
	return message
}

func TestAFrontendReachesItsOwnUsersDataOnly(t *testing.T) {
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Authenticate: proving})
	everybody := testkit.Context(t)
	admin := inRole(everybody, proven.Admin, "", false)
	c := clientOf(n.Conn, url)
	c.apply(admin, t, company)
	c.apply(admin, t, `users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: premium}]}]`)

	own := map[string]asked{}
	for _, user := range []string{"ann", "bob"} {
		a, err := n.Store.AskApproval(everybody, approval.Call{ID: id.Call("call-" + user), Chat: id.Chat(user + "-chat"), User: id.User(user), Tool: "slides",
			Function: "slides", Arguments: []byte(`{}`)}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		own[user] = asked{user: user, chat: user + "-chat", device: user + "-phone", approval: string(a.ID)}
		if _, err := c.CreateChat(admin, &v1.CreateChatRequest{ChatId: user + "-chat", UserId: user, Surface: web, RequestId: "create"}); err != nil {
			t.Fatal(err)
		}
		if _, err := v1.NewApprovalServiceClient(n.Conn).DecideApproval(admin, &v1.DecideApprovalRequest{ApprovalId: string(a.ID), Approve: true,
			Scope: v1.ApprovalScope_APPROVAL_SCOPE_CHAT}); err != nil {
			t.Fatal(err)
		}
	}
	before := stateOf(admin, t, c, n, own["bob"])
	ann, bob := own["ann"], own["bob"]
	tried := 0
	for _, r := range rpcs(t, n.Server) {
		for _, mcp := range []bool{false, true} {
			if !r.allows(proven.Frontend, mcp) || r.declared().GetOwn() == v1.Own_OWN_UNSPECIFIED {
				continue
			}
			ctx := inRole(everybody, proven.Frontend, "ann", mcp)
			has := func(name protoreflect.Name) bool { return r.Input().Fields().ByName(name) != nil }
			attempts := []asked{bob}
			if has("user_id") {
				attempts = append(attempts, asked{"bob", ann.chat, ann.device, ann.approval}, asked{"", ann.chat, ann.device, ann.approval},
					asked{"nobody", ann.chat, ann.device, ann.approval}, asked{"bob", "new", "", ""})
			}
			if has("chat_id") && r.Name() != "CreateChat" && r.Name() != "ListApprovals" { // whose filter finds nothing then
				attempts = append(attempts, asked{ann.user, bob.chat, ann.device, ann.approval})
			}
			if has("surface") {
				attempts = append(attempts, asked{ann.user, "new", bob.device, ann.approval})
				if r.Name() != "CreateChat" { // which says first that there is such a chat
					attempts = append(attempts, asked{ann.user, ann.chat, bob.device, ann.approval})
				}
			}
			if has("approval_id") {
				attempts = append(attempts, asked{ann.user, ann.chat, ann.device, bob.approval})
			}
			for i, attempt := range attempts {
				request := attempt.fill(t, r, "attempt")
				answer, err := r.call(ctx, n.Conn, request)
				if status.Code(err) != codes.PermissionDenied {
					t.Errorf("%s as ann (for MCP: %t), attempt %d, %v: %v %v", r.path, mcp, i, request, answer, err)
				}
				tried++
			}
			if !slices.Contains([]protoreflect.Name{"CreateChat", "GetDevice", "EndChat"}, r.Name()) { // there is one, there is none, done last
				if _, err := r.call(ctx, n.Conn, ann.fill(t, r, "own-"+string(r.Name()))); err != nil {
					t.Errorf("%s as ann (for MCP: %t), for herself: %v", r.path, mcp, err)
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d attempts", tried)
	}
	if after := stateOf(admin, t, c, n, bob); after != before {
		t.Errorf("bob's data changed from\n%s\nto\n%s", before, after)
	}

	// What the table leaves out.
	ctx := inRole(everybody, proven.Frontend, "ann", false)
	_, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "bob-chat", UserId: "ann", Surface: web, RequestId: "mine"})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")
	_, err = c.GetDevice(ctx, &v1.GetDeviceRequest{UserId: "ann", DeviceId: "bob-phone"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	_, err = c.GetChat(ctx, &v1.GetChatRequest{ChatId: "none"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	_, err = c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "ann-other", UserId: "ann", Surface: web, RequestId: "create"})
	if err != nil {
		t.Error(err)
	}
	if _, err = c.EndChat(ctx, &v1.EndChatRequest{ChatId: "ann-other", RequestId: "end"}); err != nil {
		t.Error(err)
	}
	// Credentials of a frontend without a user reach nothing.
	_, err = c.ListDevices(inRole(everybody, proven.Frontend, "", false), &v1.ListDevicesRequest{})
	if reasonOf(err) != fault.ReasonAnotherUser {
		t.Error(err)
	}
}

// stateOf is what there is of a user, as text.
func stateOf(ctx context.Context, t *testing.T, c client, n *node.Node, of asked) string {
	t.Helper()
	user, err := c.GetUser(ctx, &v1.GetUserRequest{UserId: of.user})
	if err != nil {
		t.Fatal(err)
	}
	log, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: of.chat})
	if err != nil {
		t.Fatal(err)
	}
	chat, err := c.GetChat(ctx, &v1.GetChatRequest{ChatId: of.chat})
	if err != nil {
		t.Fatal(err)
	}
	approvals, err := v1.NewApprovalServiceClient(n.Conn).ListApprovals(ctx, &v1.ListApprovalsRequest{UserId: of.user})
	if err != nil {
		t.Fatal(err)
	}
	usage, err := v1.NewQuotaServiceClient(n.Conn).GetQuotaUsage(ctx, &v1.GetQuotaUsageRequest{UserId: of.user})
	if err != nil {
		t.Fatal(err)
	}
	return user.GetUser().String() + entriesText(log) + chat.GetChat().String() + approvals.String() + usage.String()
}

func entriesText(log *v1.ListChatLogResponse) (text string) {
	for _, e := range log.GetEntries() {
		text += e.String() + "\n"
	}
	return text
}

func TestAViewerPassesNoTurn(t *testing.T) {
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Authenticate: proving})
	ctx := testkit.Context(t)
	c := clientOf(n.Conn, url)
	c.apply(inRole(ctx, proven.Operator, "", false), t, company)
	viewer := inRole(ctx, proven.Viewer, "", false)
	question := &v1.ResolveToolsRequest{ChatId: "new", UserId: "ann", Surface: web}
	if _, err := c.ResolveTools(viewer, question); err != nil {
		t.Error(err)
	}
	question.Turn = proto.Int32(7)
	_, err := c.ResolveTools(viewer, question)
	expect(t, err, codes.PermissionDenied, "ERROR_REASON_ROLE_NOT_ALLOWED", "turn")
}

func TestTheAuditLogTellsWhoProvedToBeWhom(t *testing.T) {
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Authenticate: proving})
	ctx := inRole(testkit.Context(t), proven.Operator, "", false)
	c := clientOf(n.Conn, url)
	c.apply(ctx, t, `avatars: [{avatar_id: one}]`)
	c.apply(as(ctx, "mallory"), t, `avatars: [{avatar_id: two}]`)
	entries, err := c.ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{})
	if err != nil || len(entries.GetEntries()) != 2 {
		t.Fatal(entries, err)
	}
	if got := entries.GetEntries()[1].GetActor(); got != "test:OPERATOR" {
		t.Errorf("got %q", got)
	}
	if got := entries.GetEntries()[0].GetActor(); got != "test:OPERATOR claimed:mallory" {
		t.Errorf("got %q", got)
	}
}
