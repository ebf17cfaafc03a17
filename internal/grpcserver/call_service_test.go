package grpcserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

const workshop = `
mcp_servers: [{mcp_server_id: maps, endpoint: "https://maps.example.com/mcp", transport: MCP_TRANSPORT_STREAMABLE_HTTP}]
tool_types:
  - {tool_type_id: plain, source: TOOL_SOURCE_NATIVE, tool_class: Plain}
  - {tool_type_id: maps, source: TOOL_SOURCE_EXTERNAL_MCP, mcp_server_id: maps, functions: [{name: route, annotations: {read_only_hint: true}}]}
tools:
  - {tool_id: free, tool_type_id: plain, name: free, config: {depth: 3}}
  - {tool_id: counted, tool_type_id: plain, name: counted, title: Counted, quotas: [{quota_id: two, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: "3600s"}}]}
  - {tool_id: costly, tool_type_id: plain, name: costly, title: Costly, quotas: [{quota_id: tokens, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 100, window: {fixed: "3600s"}}]}
  - {tool_id: local, tool_type_id: plain, name: local, quotas: [{quota_id: local, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CONCURRENT_CALLS, limit: 1}]}
  - {tool_id: danger, tool_type_id: plain, name: danger, title: Danger, risk: TOOL_RISK_HIGH}
  - {tool_id: glass, tool_type_id: plain, name: glass, health: {fail_threshold: 1, cooldown_ms: 3600000}}
  - {tool_id: rubber, tool_type_id: plain, name: rubber, health: {fail_threshold: 1, cooldown_ms: 100}}
  - {tool_id: maps, tool_type_id: maps, name: maps}
device_types: [{device_type_id: phone, tool_ids: [free, counted, costly, local, danger, glass, rubber, maps]}]
avatars: [{avatar_id: all, tool_ids: [free, counted, costly, local, danger, glass, rubber, maps]}]
default_avatars: [{avatar_id: all}]
users:
  - {user_id: ann, devices: [{device_id: p, device_type_id: phone}]}
`

// callers are two nodes of one database and one Redis.
type callers struct {
	t    *testing.T
	ctx  context.Context
	a, b client
	one  *node.Node
}

func openWorkshop(t *testing.T) *callers {
	t.Helper()
	url, redis := testkit.Database(t), testkit.Redis(t)
	one, two := node.Start(t, url, node.Options{Redis: redis}), node.Start(t, url, node.Options{Redis: redis})
	w := &callers{t: t, ctx: testkit.Context(t), a: clientOf(one.Conn, url), b: clientOf(two.Conn, url), one: one}
	done := w.a.apply(w.ctx, t, workshop)
	for _, c := range []client{w.a, w.b} { // both know the world
		if _, err := c.ResolveTools(w.ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: web,
			Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: done.GetRevision()}}}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func ask(call, function string) *v1.AuthorizeCallRequest {
	return &v1.AuthorizeCallRequest{CallId: call, ChatId: "c", UserId: "ann", Surface: web, Function: function}
}

func (w *callers) authorize(c client, r *v1.AuthorizeCallRequest) *v1.AuthorizeCallResponse {
	w.t.Helper()
	p, err := v1.NewCallServiceClient(c.conn).AuthorizeCall(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *callers) allow(c client, r *v1.AuthorizeCallRequest) *v1.AuthorizeCallResponse {
	w.t.Helper()
	p := w.authorize(c, r)
	if p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
		w.t.Fatalf("not allowed: %v", p)
	}
	return p
}

func (w *callers) deny(c client, r *v1.AuthorizeCallRequest, want v1.CallReason) *v1.AuthorizeCallResponse {
	w.t.Helper()
	p := w.authorize(c, r)
	if p.GetReason() != want || p.GetBinding() != nil {
		w.t.Fatalf("%v, want %v: %v", p.GetReason(), want, p)
	}
	return p
}

func (w *callers) report(c client, call string, outcome v1.CallOutcome) *v1.ReportCallResponse {
	w.t.Helper()
	p, err := v1.NewCallServiceClient(c.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: call, Outcome: outcome})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// used tells what ann used and holds of the only rule of a tool.
func (w *callers) used(tool string) (used, held int64) {
	w.t.Helper()
	p, err := v1.NewQuotaServiceClient(w.a.conn).GetQuotaUsage(w.ctx, &v1.GetQuotaUsageRequest{UserId: "ann", ToolIds: []string{tool}})
	if err != nil {
		w.t.Fatal(err)
	}
	rule := p.GetTools()[0].GetRules()[0]
	return rule.GetUsed(), rule.GetHeld()
}

func (w *callers) want(tool string, used, held int64) {
	w.t.Helper()
	if u, h := w.used(tool); u != used || h != held {
		w.t.Fatalf("%s: %d used and %d held, want %d and %d", tool, u, h, used, held)
	}
}

const (
	success   = v1.CallOutcome_CALL_OUTCOME_SUCCESS
	cancelled = v1.CallOutcome_CALL_OUTCOME_CANCELLED
	timeout   = v1.CallOutcome_CALL_OUTCOME_TIMEOUT
)

func TestACallIsAskedForAndReported(t *testing.T) {
	w := openWorkshop(t)
	p := w.allow(w.a, ask("1", "free"))
	if n := p.GetBinding().GetNative(); n.GetToolClass() != "Plain" || n.GetConfig().AsMap()["depth"] != 3.0 || p.GetRevision() == "" || p.ExpireTime != nil {
		t.Errorf("%v", p)
	}
	w.allow(w.a, ask("1", "free")) // asked again
	if p := w.report(w.a, "1", success); p.GetRepeatedReport() {
		t.Error("a first report is repeated")
	}
	if p := w.report(w.a, "1", success); !p.GetRepeatedReport() {
		t.Error("a second report is not repeated")
	}
	calls := v1.NewCallServiceClient(w.a.conn)
	_, err := calls.ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "1", Outcome: timeout})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")
	_, err = calls.ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "1", Outcome: success, Tokens: proto.Int64(7)})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")
	_, err = calls.AuthorizeCall(w.ctx, ask("1", "free"))
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")
	_, err = calls.AuthorizeCall(w.ctx, ask("1", "counted"))
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_REQUEST_ID_REUSED")
	_, err = calls.ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "never", Outcome: success})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	_, err = calls.ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "1"})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "outcome")

	m := w.allow(w.a, ask("2", "maps__route"))
	if b := m.GetBinding().GetMcp(); b.GetMcpServerId() != "maps" || b.GetFunction() != "route" || b.GetEndpoint() != "https://maps.example.com/mcp" {
		t.Errorf("%v", m)
	}
	w.report(w.a, "2", timeout)
	list, err := calls.ListHealth(w.ctx, &v1.ListHealthRequest{})
	if err != nil || len(list.GetHealth()) != 3 || list.GetHealth()[0].GetMcpServerId() != "maps" || list.GetHealth()[0].GetFailuresInARow() != 1 ||
		list.GetHealth()[2].GetToolId() != "maps" || list.GetHealth()[1].GetFailuresInARow() != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestACallIsReportedToAnotherNode(t *testing.T) {
	w := openWorkshop(t)
	for i, function := range []string{"free", "counted", "local"} {
		call := fmt.Sprint("call-", i)
		w.allow(w.a, ask(call, function))
		if p := w.report(w.b, call, success); p.GetRepeatedReport() {
			t.Errorf("%s: repeated", function)
		}
		if p := w.report(w.a, call, success); !p.GetRepeatedReport() {
			t.Errorf("%s: not repeated", function)
		}
		_, err := v1.NewCallServiceClient(w.a.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: call, Outcome: timeout})
		expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")
	}
	w.want("counted", 1, 0)
}

func TestACallHoldsItsQuotasUntilItIsReported(t *testing.T) {
	w := openWorkshop(t)
	p := w.allow(w.a, ask("1", "counted"))
	if r := p.GetRules()[0]; r.GetHeld() != 1 || r.GetRemaining() != 1 || p.GetExpireTime() == nil {
		t.Errorf("%v", p)
	}
	w.allow(w.b, ask("1", "counted")) // the same call, on another node
	w.want("counted", 0, 1)
	w.allow(w.a, ask("2", "counted"))
	denied := w.deny(w.a, ask("3", "counted"), v1.CallReason_CALL_REASON_QUOTA_EXHAUSTED)
	if denied.GetNextStep().GetRetryAfter().AsDuration() <= 0 || !strings.Contains(denied.GetMessage(), "Counted") || denied.GetMessageZh() == "" ||
		len(denied.GetRules()) != 1 || denied.GetExpireTime() != nil {
		t.Errorf("%v", denied)
	}
	r := w.report(w.b, "2", cancelled)
	if r.GetRules()[0].GetHeld() != 1 || r.GetRules()[0].GetUsed() != 0 {
		t.Errorf("%v", r)
	}
	_, err := v1.NewCallServiceClient(w.a.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "2", Outcome: success})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")
	w.report(w.a, "1", success)
	w.want("counted", 1, 0)
	_, err = v1.NewCallServiceClient(w.b.conn).AuthorizeCall(w.ctx, ask("1", "counted"))
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_CALL_REPORTED")

	_, err = v1.NewCallServiceClient(w.a.conn).AuthorizeCall(w.ctx, ask("4", "costly"))
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "estimated_tokens")
	estimated := ask("4", "costly")
	estimated.EstimatedTokens = proto.Int64(60)
	w.allow(w.a, estimated)
	other := ask("4", "costly")
	other.EstimatedTokens = proto.Int64(61)
	for _, c := range []client{w.a, w.b} { // one remembers it, the other finds it in the ledger
		_, err = v1.NewCallServiceClient(c.conn).AuthorizeCall(w.ctx, other)
		expect(t, err, codes.AlreadyExists, "ERROR_REASON_REQUEST_ID_REUSED")
	}
	large := ask("5", "costly")
	large.EstimatedTokens = proto.Int64(101)
	if p := w.deny(w.a, large, v1.CallReason_CALL_REASON_QUOTA_EXHAUSTED); p.GetNextStep() != nil {
		t.Errorf("waiting does not help: %v", p)
	}
	if _, err := v1.NewCallServiceClient(w.b.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "4", Outcome: success, Tokens: proto.Int64(75)}); err != nil {
		t.Fatal(err)
	}
	w.want("costly", 75, 0)
}

func TestADryRunTakesNothing(t *testing.T) {
	w := openWorkshop(t)
	dry := func(call, function string) *v1.AuthorizeCallRequest {
		r := ask(call, function)
		r.DryRun = true
		return r
	}
	for range 3 {
		w.allow(w.a, dry("1", "counted"))
	}
	w.want("counted", 0, 0)
	w.allow(w.a, ask("1", "counted")) // it is not known
	w.allow(w.a, ask("2", "counted"))
	if p := w.deny(w.a, dry("3", "counted"), v1.CallReason_CALL_REASON_QUOTA_EXHAUSTED); p.GetNextStep().GetRetryAfter() == nil {
		t.Errorf("%v", p)
	}
	if p := w.deny(w.a, dry("4", "danger"), v1.CallReason_CALL_REASON_APPROVAL_REQUIRED); p.GetApprovalId() != "" || p.GetNextStep() != nil {
		t.Errorf("%v", p)
	}
	list, err := v1.NewApprovalServiceClient(w.a.conn).ListApprovals(w.ctx, &v1.ListApprovalsRequest{})
	if err != nil || len(list.GetApprovals()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	_, err = v1.NewCallServiceClient(w.a.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "4", Outcome: success})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
}

func TestConcurrentEqualCallsTakeOnce(t *testing.T) {
	w := openWorkshop(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			c := w.a
			if i%2 == 1 {
				c = w.b
			}
			if p, err := v1.NewCallServiceClient(c.conn).AuthorizeCall(w.ctx, ask("1", "counted")); err != nil || p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
	all.Wait()
	w.want("counted", 0, 1)
	var first sync.Map
	for i := range 40 {
		all.Go(func() {
			c := w.a
			if i%2 == 1 {
				c = w.b
			}
			p, err := v1.NewCallServiceClient(c.conn).ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "1", Outcome: success, Latency: durationpb.New(time.Second)})
			if err != nil {
				t.Error(err)
			} else if !p.GetRepeatedReport() {
				first.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	first.Range(func(any, any) bool { n++; return true })
	if n > 1 {
		t.Errorf("%d reports were the first", n)
	}
	w.want("counted", 1, 0)
}

func TestARiskyCallWaitsForAPerson(t *testing.T) {
	w := openWorkshop(t)
	approvals := v1.NewApprovalServiceClient(w.b.conn)
	with := func(call string, arguments map[string]any) *v1.AuthorizeCallRequest {
		r := ask(call, "danger")
		var err error
		if r.Arguments, err = structpb.NewStruct(arguments); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := with("1", map[string]any{"path": "/a", "deep": []any{1.0, true}})
	waiting := w.deny(w.a, r, v1.CallReason_CALL_REASON_APPROVAL_REQUIRED)
	if waiting.GetDecision() != v1.CallDecision_CALL_DECISION_NEEDS_APPROVAL || waiting.GetNextStep().GetApprovalId() != waiting.GetApprovalId() {
		t.Fatalf("%v", waiting)
	}
	if again := w.authorize(w.b, r); again.GetApprovalId() != waiting.GetApprovalId() {
		t.Errorf("another approval: %v", again)
	}
	_, err := v1.NewCallServiceClient(w.a.conn).AuthorizeCall(w.ctx, with("1", map[string]any{"path": "/b"}))
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_REQUEST_ID_REUSED")
	// Two people decide at once: one decision counts.
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		both.Go(func() {
			d := &v1.DecideApprovalRequest{ApprovalId: waiting.GetApprovalId(), Approve: i == 0}
			if d.GetApprove() {
				d.Scope = v1.ApprovalScope_APPROVAL_SCOPE_ONCE
			}
			_, errs[i] = approvals.DecideApproval(w.ctx, d)
		})
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("%v", errs)
	}
	if decided := w.authorize(w.a, r); (decided.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW) != (errs[0] == nil) {
		t.Errorf("%v after %v", decided, errs)
	}

	second := w.deny(w.a, ask("2", "danger"), v1.CallReason_CALL_REASON_APPROVAL_REQUIRED)
	if _, err := approvals.DecideApproval(w.ctx, &v1.DecideApprovalRequest{ApprovalId: second.GetApprovalId(), Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_CHAT}); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"2", "3", "3"} {
		if p := w.allow(w.a, ask(call, "danger")); p.GetApprovalId() != second.GetApprovalId() {
			t.Errorf("%v", p)
		}
	}
	if _, err := approvals.RevokeApproval(w.ctx, &v1.RevokeApprovalRequest{ApprovalId: second.GetApprovalId(), Reason: "a mistake"}); err != nil {
		t.Fatal(err)
	}
	w.deny(w.a, ask("2", "danger"), v1.CallReason_CALL_REASON_APPROVAL_EXPIRED)
	third := w.deny(w.a, ask("4", "danger"), v1.CallReason_CALL_REASON_APPROVAL_REQUIRED)
	if _, err := approvals.DecideApproval(w.ctx, &v1.DecideApprovalRequest{ApprovalId: third.GetApprovalId(), Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.deny(w.a, ask("4", "danger"), v1.CallReason_CALL_REASON_APPROVAL_DENIED)
	}
	entries, err := w.a.ListAuditEntries(w.ctx, &v1.ListAuditEntriesRequest{UserId: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range entries.GetEntries() {
		count[e.GetKind()+" "+strings.TrimPrefix(e.GetAction().String(), "AUDIT_ACTION_")]++
		if e.GetActor() == "" || strings.Contains(e.String(), "/a") {
			t.Errorf("%v", e)
		}
	}
	granted := 0
	if errs[0] == nil {
		granted = 1
	}
	for what, want := range map[string]int{"approval ASK": 3, "approval GRANT": 1 + granted, "approval DENY": 2 - granted, "approval USE": granted,
		"approval REVOKE": 1, "call REFUSE": 3 - granted} {
		if count[what] != want {
			t.Errorf("%d entries %s, want %d: %v", count[what], what, want, count)
		}
	}
}

func TestAToolThatFailsIsPutAside(t *testing.T) {
	w := openWorkshop(t)
	w.allow(w.a, ask("1", "glass"))
	w.report(w.a, "1", timeout)
	down := w.deny(w.a, ask("2", "glass"), v1.CallReason_CALL_REASON_UNHEALTHY)
	if down.GetNextStep().GetRetryAfter() == nil {
		t.Errorf("%v", down)
	}
	until(t, func() bool { // the other node knows, too
		r := ask("2", "glass")
		r.DryRun = true
		return w.authorize(w.b, r).GetReason() == v1.CallReason_CALL_REASON_UNHEALTHY
	})
}

func TestOneProbeGoesThrough(t *testing.T) {
	w := openWorkshop(t)
	w.allow(w.a, ask("1", "rubber"))
	w.report(w.a, "1", timeout)
	until(t, func() bool { // the other node knows; by now it may be half open
		p, err := v1.NewCallServiceClient(w.b.conn).ListHealth(w.ctx, &v1.ListHealthRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.GetHealth()) == 1 && p.GetHealth()[0].GetBreaker() != v1.BreakerState_BREAKER_STATE_CLOSED
	})
	nodes := []client{w.a, w.b}
	var mu sync.Mutex
	allowed := map[string]int{} // by which node
	until(t, func() bool {      // the cool-down is over
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				call := fmt.Sprint("probe-", i)
				p, err := v1.NewCallServiceClient(nodes[i%2].conn).AuthorizeCall(w.ctx, ask(call, "rubber"))
				if err != nil {
					t.Error(err)
				} else if p.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW {
					mu.Lock()
					defer mu.Unlock()
					allowed[call] = i % 2
				}
			})
		}
		all.Wait()
		return len(allowed) > 0
	})
	if len(allowed) != 1 {
		t.Fatalf("%v go through", allowed)
	}
	for probe, by := range allowed {
		its, other := nodes[by], nodes[1-by]
		w.allow(its, ask(probe, "rubber")) // asked again, it is the probe still
		w.deny(its, ask("3", "rubber"), v1.CallReason_CALL_REASON_UNHEALTHY)
		w.deny(other, ask("3", "rubber"), v1.CallReason_CALL_REASON_UNHEALTHY)
		// The other node may not have heard of the probe yet, and by its clock the cool-down may last a bit longer.
		allows := func(r *v1.AuthorizeCallRequest) func() bool {
			return func() bool { return w.authorize(other, r).GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW }
		}
		until(t, allows(ask(probe, "rubber")))
		w.report(its, probe, success)
		w.allow(its, ask("4", "rubber"))
		until(t, allows(ask("5", "rubber")))
	}
}

func TestArgumentsAreLimited(t *testing.T) {
	w := openWorkshop(t)
	calls := v1.NewCallServiceClient(w.a.conn)
	with := func(v any) *v1.AuthorizeCallRequest {
		r := ask("1", "free")
		var err error
		if r.Arguments, err = structpb.NewStruct(map[string]any{"v": v}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	nested := func(depth int) any {
		v := any("end")
		for range depth {
			v = []any{v}
		}
		return v
	}
	r := with(strings.Repeat("x", 1<<20-100))
	r.CallId = "large"
	w.allow(w.a, r)
	w.deny(w.a, with(strings.Repeat("x", 1<<20)), v1.CallReason_CALL_REASON_BAD_ARGUMENTS)
	w.deny(w.a, with(make([]any, 30_000)), v1.CallReason_CALL_REASON_BAD_ARGUMENTS)
	_, err := calls.AuthorizeCall(w.ctx, with(strings.Repeat("x", 3<<20)))
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "arguments")
	r = with(nested(99))
	r.CallId = "deep"
	w.allow(w.a, r)
	for _, depth := range []int{100, 150, 1000, 5000} {
		_, err = calls.AuthorizeCall(w.ctx, with(nested(depth)))
		if err == nil || !strings.Contains(err.Error(), "nest") {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
	w.deny(w.a, ask("2", "nothing"), v1.CallReason_CALL_REASON_UNKNOWN_FUNCTION)
}

func TestOutcomesAreKept(t *testing.T) {
	w := openWorkshop(t)
	w.allow(w.a, ask("1", "free"))
	w.allow(w.a, ask("2", "maps__route"))
	calls := v1.NewCallServiceClient(w.b.conn)
	for range 2 {
		if _, err := calls.ReportCall(w.ctx, &v1.ReportCallRequest{CallId: "1", Outcome: success, Latency: durationpb.New(1500 * time.Millisecond), Tokens: proto.Int64(9)}); err != nil {
			t.Fatal(err)
		}
	}
	w.report(w.a, "2", cancelled)
	conn, err := pgx.Connect(w.ctx, w.a.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for {
		rows, err := conn.Query(w.ctx, `SELECT concat_ws(' ', call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens) FROM call_outcomes ORDER BY call_id`)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < 2 {
			continue
		}
		if got, want := strings.Join(found, "\n"), "1 c ann free free SUCCESS 1500 9\n2 c ann maps route CANCELLED 0 0"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		break
	}
	if _, err := conn.Exec(w.ctx, "UPDATE call_outcomes SET outcome = 'ERROR'"); err == nil || !strings.Contains(err.Error(), "TG001") {
		t.Errorf("%v", err)
	}
	if err := w.one.Store.PruneOutcomes(w.ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := conn.QueryRow(w.ctx, "SELECT count(*) FROM call_outcomes").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d left, %v", left, err)
	}
}

// A node's clock decides when memberships and approvals end, and nothing about calls that were allowed.
func TestCallsOutliveJumpsOfTheClock(t *testing.T) {
	var shift atomic.Int64
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Redis: testkit.Redis(t), Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }})
	w := &callers{t: t, ctx: testkit.Context(t), a: clientOf(n.Conn, url), b: clientOf(n.Conn, url), one: n}
	w.a.apply(w.ctx, t, workshop)
	jump := func(by time.Duration) { shift.Store(int64(by)) }
	for i, by := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		jump(0)
		free, counted, risky := fmt.Sprint("free-", i), fmt.Sprint("counted-", i), fmt.Sprint("danger-", i)
		w.allow(w.a, ask(free, "free"))
		w.allow(w.a, ask(counted, "counted"))
		waiting := w.deny(w.a, ask(risky, "danger"), v1.CallReason_CALL_REASON_APPROVAL_REQUIRED)
		jump(by)
		w.allow(w.a, ask(counted, "counted")) // asked again
		w.want("counted", int64(i), 1)
		for _, call := range []string{free, counted} {
			if p := w.report(w.a, call, success); p.GetRepeatedReport() {
				t.Error("repeated")
			}
			if p := w.report(w.a, call, success); !p.GetRepeatedReport() {
				t.Error("not repeated")
			}
		}
		w.want("counted", int64(i)+1, 0)
		want := v1.CallReason_CALL_REASON_APPROVAL_EXPIRED
		if by < 0 {
			want = v1.CallReason_CALL_REASON_APPROVAL_REQUIRED
		}
		if p := w.deny(w.a, ask(risky, "danger"), want); p.GetApprovalId() != waiting.GetApprovalId() {
			t.Errorf("%v", p)
		}
		jump(0)
		w.deny(w.a, ask(risky, "danger"), v1.CallReason_CALL_REASON_APPROVAL_REQUIRED)
	}
	w.deny(w.a, ask("more", "counted"), v1.CallReason_CALL_REASON_QUOTA_EXHAUSTED)
}
