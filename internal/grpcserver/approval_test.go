package grpcserver_test

import (
	"context"
	"fmt"
	gostrings "strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// approvers are people at a node.
type approvers struct {
	v1.ApprovalServiceClient
	*node.Node
}

func approversAt(t *testing.T, url string, o node.Options) approvers {
	t.Helper()
	n := node.Start(t, url, o)
	return approvers{v1.NewApprovalServiceClient(n.Conn), n}
}

// ask asks for a user's call of a function in chat 1.
func (p approvers) ask(ctx context.Context, t *testing.T, call id.Call, user id.User, wait time.Duration) string {
	t.Helper()
	a, err := p.Store.AskApproval(ctx, approval.Call{ID: call, Chat: "1", User: user, Tool: "shell", Function: "run",
		Arguments: []byte(`{"command":"ls"}`)}, time.Now(), wait)
	if err != nil {
		t.Fatal(err)
	}
	return string(a.ID)
}

func as(ctx context.Context, who string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "toolgrant-actor", who)
}

func once(name string) *v1.DecideApprovalRequest {
	return &v1.DecideApprovalRequest{ApprovalId: name, Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_ONCE, Reason: "fine"}
}

func TestAnApprovalFromQuestionToRevocation(t *testing.T) {
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	name := p.ask(ctx, t, "c1", "ann", time.Hour)
	if again := p.ask(ctx, t, "c1", "ann", time.Hour); again != name {
		t.Errorf("the call asked twice: %s and %s", name, again)
	}
	_, err := p.Store.AskApproval(ctx, approval.Call{ID: "c1", Chat: "1", User: "ann", Tool: "shell", Function: "other"}, time.Now(), time.Hour)
	if err == nil || !gostrings.Contains(err.Error(), "used before, for another call") {
		t.Errorf("got %v", err)
	}
	got, err := p.GetApproval(ctx, &v1.GetApprovalRequest{ApprovalId: name})
	if a := got.GetApproval(); err != nil || a.GetState() != v1.ApprovalState_APPROVAL_STATE_PENDING || a.GetArguments() != `{"command":"ls"}` || a.GetUserId() != "ann" {
		t.Fatalf("got %v, %v", got, err)
	}
	granted, err := p.DecideApproval(as(ctx, "bob"), once(name))
	if a := granted.GetApproval(); err != nil || a.GetState() != v1.ApprovalState_APPROVAL_STATE_APPROVED || a.GetDecidedBy() != "claimed:bob" || a.GetReason() != "fine" ||
		a.GetExpireTime().AsTime().Sub(a.GetDecideTime().AsTime()) != 10*time.Minute || granted.GetRevision() == "" {
		t.Fatalf("got %v, %v", granted, err)
	}
	again, err := p.DecideApproval(as(ctx, "chen"), once(name))
	if err != nil || !proto.Equal(again.GetApproval(), granted.GetApproval()) {
		t.Errorf("got %v, %v; want %v", again, err, granted)
	}
	_, err = p.DecideApproval(ctx, &v1.DecideApprovalRequest{ApprovalId: name})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_APPROVAL_DECIDED")
	revoked, err := p.RevokeApproval(as(ctx, "dora"), &v1.RevokeApprovalRequest{ApprovalId: name, Reason: "a mistake"})
	if a := revoked.GetApproval(); err != nil || a.GetState() != v1.ApprovalState_APPROVAL_STATE_REVOKED || a.GetDecidedBy() != "claimed:dora" || a.GetReason() != "a mistake" {
		t.Errorf("got %v, %v", revoked, err)
	}
	if _, err := p.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: name}); err != nil {
		t.Errorf("a repeated request: %v", err)
	}
	if _, err := p.Store.UseApproval(ctx, id.Approval(name), "server", time.Now()); err == nil {
		t.Error("what was taken back let a call through")
	}
	for _, missing := range []error{
		errorOf(p.GetApproval(ctx, &v1.GetApprovalRequest{ApprovalId: "x"})),
		errorOf(p.DecideApproval(ctx, once("x"))),
		errorOf(p.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: "x"})),
	} {
		expect(t, missing, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	}
}

func errorOf[R any](_ R, err error) error { return err }

func TestDecisionsThatMakeNoSenseAreRefused(t *testing.T) {
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	name := p.ask(ctx, t, "c1", "ann", time.Hour)
	later := timestamppb.New(time.Now().Add(time.Hour))
	for _, c := range []struct {
		request *v1.DecideApprovalRequest
		fields  []string
	}{
		{&v1.DecideApprovalRequest{Approve: true}, []string{"scope"}},
		{&v1.DecideApprovalRequest{Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_UNTIL}, []string{"expire_time"}},
		{&v1.DecideApprovalRequest{Scope: v1.ApprovalScope_APPROVAL_SCOPE_CHAT, ExpireTime: later}, []string{"scope", "expire_time"}},
		{&v1.DecideApprovalRequest{Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_UNTIL, ExpireTime: timestamppb.New(time.Now())}, []string{"expire_time"}},
		{&v1.DecideApprovalRequest{Approve: true, Scope: 9, Reason: gostrings.Repeat("x", 1025)}, []string{"scope", "reason"}},
	} {
		c.request.ApprovalId = name
		_, err := p.DecideApproval(ctx, c.request)
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", c.fields...)
	}
	_, err := p.DecideApproval(as(ctx, "no name"), once(name))
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "metadata.toolgrant-actor")
	_, err = p.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: name})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_APPROVAL_DECIDED")
}

// Many decide at once, at two nodes: one decision counts, who said the same is told so, the others that it was decided.
func TestOneDecisionCounts(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	nodes := []approvers{approversAt(t, url, node.Options{}), approversAt(t, url, node.Options{})}
	for round := range 10 {
		name := nodes[0].ask(ctx, t, id.Call(fmt.Sprint("call", round)), "ann", time.Hour)
		states, errs := make([]v1.ApprovalState, 12), make([]error, 12)
		var group sync.WaitGroup
		for i := range states {
			group.Go(func() {
				request := once(name)
				if i%3 == 0 {
					request = &v1.DecideApprovalRequest{ApprovalId: name}
				}
				var r *v1.DecideApprovalResponse
				r, errs[i] = nodes[i%2].DecideApproval(as(ctx, fmt.Sprint("person", i)), request)
				states[i] = r.GetApproval().GetState()
			})
		}
		group.Wait()
		got, err := nodes[1].GetApproval(ctx, &v1.GetApprovalRequest{ApprovalId: name})
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range errs {
			said := v1.ApprovalState_APPROVAL_STATE_APPROVED
			if i%3 == 0 {
				said = v1.ApprovalState_APPROVAL_STATE_DENIED
			}
			if said == got.GetApproval().GetState() {
				if err != nil || states[i] != said {
					t.Errorf("person%d: %v, %v", i, states[i], err)
				}
				continue
			}
			expect(t, err, codes.FailedPrecondition, "ERROR_REASON_APPROVAL_DECIDED")
		}
		db := connect(ctx, t, url)
		var rows int
		if err := db.QueryRow(ctx, "SELECT count(*) FROM approval_decisions WHERE approval_id = $1", name).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%d decisions were written, %v", rows, err)
		}
		db.Close(ctx)
	}
}

func connect(ctx context.Context, t *testing.T, url string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestApprovalsAreAppendOnly(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	p := approversAt(t, url, node.Options{})
	name := p.ask(ctx, t, "c1", "ann", time.Hour)
	if _, err := p.DecideApproval(ctx, once(name)); err != nil {
		t.Fatal(err)
	}
	db := connect(ctx, t, url)
	defer db.Close(ctx)
	for _, statement := range []string{
		"UPDATE approval_requests SET expire_time = now()", "DELETE FROM approval_requests", "TRUNCATE approval_requests CASCADE",
		"UPDATE approval_decisions SET step = 'DENY'", "DELETE FROM approval_decisions", "TRUNCATE approval_decisions",
		"INSERT INTO approval_decisions (approval_id, step, actor, reason, create_time) VALUES ('" + name + "', 'DENY', 'x', '', now())",
	} {
		if _, err := db.Exec(ctx, statement); err == nil {
			t.Errorf("%s was done", statement)
		}
	}
}

func TestListsOfApprovals(t *testing.T) {
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	names := map[string]string{}
	for i := range 25 {
		user := id.User([]string{"ann", "bob"}[i%2])
		name := p.ask(ctx, t, id.Call(fmt.Sprint("c", i)), user, time.Hour)
		names[name] = fmt.Sprint("c", i)
		var err error
		switch i % 5 {
		case 0:
			_, err = p.DecideApproval(ctx, &v1.DecideApprovalRequest{ApprovalId: name})
		case 1:
			_, err = p.DecideApproval(ctx, once(name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(r *v1.ListApprovalsRequest) string {
		t.Helper()
		var calls []string
		for {
			page, err := p.ListApprovals(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.GetApprovals() {
				calls = append(calls, a.GetCallId())
			}
			if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
				return gostrings.Join(calls, " ")
			}
		}
	}
	for _, size := range []int32{0, 1, 2, 5, 7} {
		for want, r := range map[string]*v1.ListApprovalsRequest{
			"c20 c15 c10 c5 c0":            {State: v1.ApprovalState_APPROVAL_STATE_DENIED},
			"c21 c11 c1":                   {State: v1.ApprovalState_APPROVAL_STATE_APPROVED, UserId: "bob"},
			"c24 c22 c18 c14 c12 c8 c4 c2": {State: v1.ApprovalState_APPROVAL_STATE_PENDING, UserId: "ann"},
			"c24 c23 c22 c21 c20 c19 c18 c17 c16 c15 c14 c13 c12 c11 c10 c9 c8 c7 c6 c5 c4 c3 c2 c1 c0": {ChatId: "1"},
			"c23 c21 c19 c17 c15 c13 c11 c9 c7 c5 c3 c1":                                                {UserId: "bob", ChatId: "1"},
			"": {State: v1.ApprovalState_APPROVAL_STATE_REVOKED, ChatId: "1"},
		} {
			r.PageSize = size
			if got := list(r); got != want {
				t.Errorf("%v: got %s, want %s", r, got, want)
			}
		}
	}
	page, err := p.ListApprovals(ctx, &v1.ListApprovalsRequest{PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"x", page.GetNextPageToken()} {
		_, err = p.ListApprovals(ctx, &v1.ListApprovalsRequest{UserId: "ann", PageToken: token})
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_token")
	}
}

// toldApprovals reads a stream.
type toldApprovals struct {
	grpc.ServerStreamingClient[v1.WatchApprovalsResponse]
}

func (p approvers) watch(ctx context.Context, t *testing.T, user string) toldApprovals {
	t.Helper()
	stream, err := p.WatchApprovals(ctx, &v1.WatchApprovalsRequest{UserId: user})
	if err != nil {
		t.Fatal(err)
	}
	return toldApprovals{stream}
}

// next waits for a message: a call with its state; a checkpoint is "-".
func (w toldApprovals) next(t *testing.T) string {
	t.Helper()
	message, err := w.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if a := message.GetApproval(); a != nil {
		return a.GetCallId() + " " + gostrings.TrimPrefix(a.GetState().String(), "APPROVAL_STATE_")
	}
	return "-"
}

func (w toldApprovals) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, want := range want {
		if got := w.next(t); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// expectLast waits for a message, whatever comes before.
func (w toldApprovals) expectLast(t *testing.T, want string) {
	t.Helper()
	for w.next(t) != want {
	}
}

// Watchers at another node, which learns of changes by its own polls, are told what waits and what becomes of it.
func TestEveryNodesWatchersAreTold(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	here, there := approversAt(t, url, node.Options{}), approversAt(t, url, node.Options{})
	one, two := here.ask(ctx, t, "one", "ann", time.Hour), here.ask(ctx, t, "two", "bob", time.Hour)
	all, anns := there.watch(ctx, t, ""), there.watch(ctx, t, "ann")
	all.expect(t, "one PENDING", "two PENDING", "-")
	anns.expect(t, "one PENDING", "-")
	if _, err := here.DecideApproval(ctx, &v1.DecideApprovalRequest{ApprovalId: two}); err != nil {
		t.Fatal(err)
	}
	all.expect(t, "two DENIED")
	if _, err := here.DecideApproval(ctx, once(one)); err != nil {
		t.Fatal(err)
	}
	all.expect(t, "one APPROVED")
	anns.expect(t, "one APPROVED")
	if _, err := here.Store.UseApproval(ctx, id.Approval(one), "server:internal", time.Now()); err != nil {
		t.Fatal(err)
	}
	all.expect(t, "one USED")
	three := here.ask(ctx, t, "three", "ann", time.Hour)
	all.expect(t, "three PENDING")
	if _, err := here.DecideApproval(ctx, &v1.DecideApprovalRequest{ApprovalId: three, Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_CHAT}); err != nil {
		t.Fatal(err)
	}
	all.expect(t, "three APPROVED")
	if _, err := here.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: three}); err != nil {
		t.Fatal(err)
	}
	all.expect(t, "three REVOKED")
	here.ask(ctx, t, "four", "ann", 10*time.Millisecond)
	anns.expectLast(t, "four EXPIRED")
}

// That nobody decided, or that a grant ran out, is told when it is so, without anything being written.
func TestExpiryIsTold(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	w := p.watch(ctx, t, "")
	w.expect(t, "-")
	p.ask(ctx, t, "one", "ann", time.Second)
	w.expectLast(t, "one EXPIRED")
	name := p.ask(ctx, t, "two", "ann", time.Hour)
	w.expect(t, "two PENDING")
	if _, err := p.DecideApproval(ctx, &v1.DecideApprovalRequest{ApprovalId: name, Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_UNTIL,
		ExpireTime: timestamppb.New(time.Now().Add(5 * time.Second))}); err != nil {
		t.Fatal(err)
	}
	w.expectLast(t, "two EXPIRED")
}

func TestAnApprovalIsUsedOnce(t *testing.T) {
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	name := id.Approval(p.ask(ctx, t, "c1", "ann", time.Hour))
	if _, err := p.Store.UseApproval(ctx, name, "server:internal", time.Now()); err == nil {
		t.Error("nobody granted it")
	}
	if _, err := p.DecideApproval(ctx, once(string(name))); err != nil {
		t.Fatal(err)
	}
	for _, used := range []bool{false, true} { // the same call may ask again, and is told
		before, err := p.Store.UseApproval(ctx, name, "server:internal", time.Now())
		if err != nil || before != used {
			t.Errorf("used before: %v, %v", before, err)
		}
		if a, err := p.Store.Approval(ctx, name); err != nil || a.State(time.Now()) != approval.Used {
			t.Errorf("got %v, %v", a, err)
		}
	}
	_, err := p.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: string(name)})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_APPROVAL_DECIDED")
}

func TestApprovalsThatACallMayRestOn(t *testing.T) {
	ctx := testkit.Context(t)
	p := approversAt(t, testkit.Database(t), node.Options{})
	decide := func(call id.Call, scope v1.ApprovalScope) string {
		name := p.ask(ctx, t, call, "ann", time.Hour)
		r := &v1.DecideApprovalRequest{ApprovalId: name, Approve: true, Scope: scope}
		if scope == v1.ApprovalScope_APPROVAL_SCOPE_UNTIL {
			r.ExpireTime = timestamppb.New(time.Now().Add(time.Hour))
		}
		if _, err := p.DecideApproval(ctx, r); err != nil {
			t.Fatal(err)
		}
		return name
	}
	found := func(call approval.Call) string {
		t.Helper()
		list, err := p.Store.ApprovalsFor(ctx, &call, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if a := approval.Find(list, &call, time.Now()); a != nil {
			return string(a.Call.ID)
		}
		return ""
	}
	call := approval.Call{ID: "new", Chat: "1", User: "ann", Tool: "shell", Function: "run", Arguments: []byte(`{"command":"ls"}`)}
	decide("once", v1.ApprovalScope_APPROVAL_SCOPE_ONCE)
	if got := found(call); got != "" {
		t.Errorf("got %s", got)
	}
	call.ID = "once"
	if got := found(call); got != "once" {
		t.Errorf("got %s", got)
	}
	call.ID = "new"
	chat := decide("chat", v1.ApprovalScope_APPROVAL_SCOPE_CHAT)
	if got := found(call); got != "chat" {
		t.Errorf("got %s", got)
	}
	other := call
	other.Chat = "2"
	if got := found(other); got != "" {
		t.Errorf("got %s", got)
	}
	decide("until", v1.ApprovalScope_APPROVAL_SCOPE_UNTIL)
	if got := found(other); got != "until" {
		t.Errorf("got %s", got)
	}
	if _, err := p.RevokeApproval(ctx, &v1.RevokeApprovalRequest{ApprovalId: chat}); err != nil {
		t.Fatal(err)
	}
	if got := found(call); got != "until" {
		t.Errorf("got %s", got)
	}
	other.Function = "other"
	if got := found(other); got != "" {
		t.Errorf("got %s", got)
	}
}
