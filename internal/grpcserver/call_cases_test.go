package grpcserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/call/calltest"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// TestCallCases asks the server what internal/call's test of cases asks the pure functions.
func TestCallCases(t *testing.T) {
	calltest.Run(t, "../call/testdata", func(t *testing.T, file *calltest.File) func(*testing.T, *calltest.Question) calltest.Answer {
		manifest, err := yaml.Marshal(&file.World)
		if err != nil {
			t.Fatal(err)
		}
		a := &callAsker{url: testkit.Database(t), nodes: map[string]client{}, open: t}
		ctx := testkit.Context(t)
		first := a.node(&file.Questions[0])
		world := parse(t, string(manifest))
		storable(world, file.Unstorable)
		if _, err := first.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world}); err != nil {
			t.Fatal(err)
		}
		if a.conn, err = pgx.Connect(ctx, a.url); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.conn.Close(context.Background()) })
		return func(t *testing.T, q *calltest.Question) calltest.Answer {
			if q.Unstorable {
				t.Skip("no server can have such a world")
			}
			a.count++
			return a.ask(ctx, t, q)
		}
	})
}

// storable completes what cases need not say, and leaves out what is not stored.
func storable(m *v1.Manifest, without []string) {
	drop := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(without, name) })
	}
	m.Tools = slices.DeleteFunc(m.Tools, func(t *v1.Tool) bool { return slices.Contains(without, t.GetToolId()) })
	for _, t := range m.GetTools() {
		if policy := t.GetCapability().GetDegradePolicy(); policy != nil {
			policy.FallbackToolIds = drop(policy.FallbackToolIds)
		}
	}
	m.ToolTypes = slices.DeleteFunc(m.ToolTypes, func(t *v1.ToolType) bool { return slices.Contains(without, t.GetToolTypeId()) })
	for _, d := range m.GetDeviceTypes() {
		d.ToolIds = drop(d.ToolIds)
	}
	for _, a := range m.GetAvatars() {
		a.ToolIds = drop(a.ToolIds)
	}
	for _, s := range m.GetMcpServers() {
		if s.GetTransport() == v1.McpTransport_MCP_TRANSPORT_UNSPECIFIED {
			s.Transport = v1.McpTransport_MCP_TRANSPORT_STREAMABLE_HTTP
		}
	}
}

// callAsker asks nodes of one database about calls: one node for each deployment and set of synonyms.
type callAsker struct {
	url   string
	open  *testing.T
	nodes map[string]client
	conn  *pgx.Conn
	count int

	question atomic.Pointer[calltest.Question]
	claimed  []string
}

func (a *callAsker) node(q *calltest.Question) client {
	a.question.Store(q)
	key := strings.Join(q.Deployment, ",") + "/" + strings.Join(q.Synonyms, ",")
	if c, ok := a.nodes[key]; ok {
		return c
	}
	options := grpcserver.CallOptions{Health: a, Deployment: call.Deployment{
		Network:         slices.Contains(q.Deployment, "network"),
		FilesystemRead:  slices.Contains(q.Deployment, "filesystem.read"),
		FilesystemWrite: slices.Contains(q.Deployment, "filesystem.write")}}
	for _, name := range q.Synonyms {
		if options.Synonyms == nil {
			options.Synonyms = call.Synonyms{}
		}
		options.Synonyms[name] = true
	}
	n := node.Start(a.open, a.url, node.Options{Calls: options, Now: func() time.Time { return a.question.Load().Now }})
	a.nodes[key] = clientOf(n.Conn, a.url)
	return a.nodes[key]
}

// Health, Claim and Report are those that the question says.
func (a *callAsker) Health(id.Call) func(health.Subject) health.Condition {
	return func(s health.Subject) health.Condition {
		q := a.question.Load()
		for _, down := range q.Down {
			if id.Tool(down.Tool) == s.Tool && id.MCPServer(down.Server) == s.Server {
				return health.Condition{State: health.Open, RetryAfter: down.For}
			}
		}
		for _, probing := range q.Probing {
			if id.Tool(probing.Tool) == s.Tool && id.MCPServer(probing.Server) == s.Server {
				return health.Condition{State: health.HalfOpen}
			}
		}
		return health.Condition{}
	}
}

func (a *callAsker) Claim(_ context.Context, s health.Subject, _ id.Call) health.Condition {
	a.claimed = append(a.claimed, string(s.Tool)+string(s.Server))
	return health.Condition{State: health.HalfOpen}
}

func (a *callAsker) Report(health.Subject, health.Report) {}

// ask asks one question, under names of its own: other questions have calls, chats and approvals of the same names.
func (a *callAsker) ask(ctx context.Context, t *testing.T, q *calltest.Question) calltest.Answer {
	c := a.node(q)
	suffix := fmt.Sprintf(".%d", a.count)
	chat, callID := "chat"+suffix, q.Call.ID
	if len(callID)+len(suffix) <= id.MaxBytes {
		callID += suffix
	}
	if q.Created() {
		writer := asker{client: c, question: &effectivetest.Question{Conversation: q.Conversation}, chat: chat}
		if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: chat, UserId: q.CreatedBy, Surface: surfaceNamed(q.CreatedOn), RequestId: "create"}); err != nil {
			t.Fatal(err)
		}
		for i, e := range q.Log {
			if err := writer.write(ctx, fmt.Sprint("entry-", i), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	known := q.Known(t)
	for i := range known {
		p := &known[i]
		p.ID, p.Chat, p.Call.ID = p.ID+id.Approval(suffix), p.Chat+id.Chat(suffix), p.Call.ID+id.Call(suffix)
		if string(p.Call.ID) == q.Call.ID+suffix {
			p.Call.ID = id.Call(callID)
		}
		a.store(ctx, t, p)
	}
	r := &v1.AuthorizeCallRequest{CallId: callID, ChatId: chat, UserId: q.User, Surface: surfaceNamed(q.Device), Turn: q.Turn, Function: q.Call.Function,
		Source: q.Call.Source, ModelCapabilities: q.Call.ModelCapabilities, ProviderCapabilities: q.Call.ProviderCapabilities, Provider: q.Call.Provider}
	if arguments := q.Decoded(t); arguments != nil {
		var err error
		if r.Arguments, err = structpb.NewStruct(arguments); err != nil {
			t.Fatal(err)
		}
	}
	a.claimed = nil
	answer, err := v1.NewCallServiceClient(c.conn).AuthorizeCall(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range known { // so that it is not good for the next question
		if known[i].State(q.Now) == approval.Approved {
			a.step(ctx, t, &known[i], "REVOKE", q.Now)
		}
	}
	p := plainCall(answer, suffix)
	p.Probes, p.Function, p.Risk = a.claimed, q.Want.Function, q.Want.Risk // the server does not tell the last two
	if !slices.ContainsFunc(known, func(k approval.Approval) bool { return string(k.ID) == answer.GetApprovalId() }) && answer.GetApprovalId() != "" {
		if answer.GetDecision() != v1.CallDecision_CALL_DECISION_NEEDS_APPROVAL {
			t.Errorf("an approval of its own: %v", answer)
		}
		p.Approval = ""
	}
	return p
}

// store writes an approval into the database.
func (a *callAsker) store(ctx context.Context, t *testing.T, p *approval.Approval) {
	t.Helper()
	digest := p.Digest
	if digest == nil {
		digest = []byte{}
	}
	if _, err := a.conn.Exec(ctx, `INSERT INTO approval_requests (approval_id, call_id, chat_id, user_id, tool_id, function, arguments, arguments_digest, create_time, expire_time)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, p.ID, p.Call.ID, p.Chat, p.User, p.Tool, p.Function, string(p.Arguments), digest,
		p.Create, p.Request.Expire); err != nil {
		t.Fatal(err)
	}
	if d := p.Decision; d != nil && d.Approve {
		var ends *time.Time
		if !d.Expire.IsZero() {
			ends = &d.Expire
		}
		if _, err := a.conn.Exec(ctx, `INSERT INTO approval_decisions (approval_id, step, scope, expire_time, actor, reason, create_time)
			VALUES ($1, 'GRANT', $2, $3, $4, '', $5)`, p.ID, d.Scope, ends, d.By, d.Time); err != nil {
			t.Fatal(err)
		}
	} else if d != nil {
		a.step(ctx, t, p, "DENY", d.Time)
	}
	if !p.Use.IsZero() {
		a.step(ctx, t, p, "USE", p.Use)
	}
	if p.Revocation != nil {
		a.step(ctx, t, p, "REVOKE", p.Revocation.Time)
	}
}

func (a *callAsker) step(ctx context.Context, t *testing.T, p *approval.Approval, step string, at time.Time) {
	t.Helper()
	if _, err := a.conn.Exec(ctx, "INSERT INTO approval_decisions (approval_id, step, actor, reason, create_time) VALUES ($1, $2, 'somebody', '', $3)", p.ID, step, at); err != nil {
		t.Fatal(err)
	}
}

// plainCall words an answer as cases do.
func plainCall(r *v1.AuthorizeCallResponse, suffix string) calltest.Answer {
	own := func(name string) string { return strings.TrimSuffix(name, suffix) }
	p := calltest.Answer{Decision: strings.TrimPrefix(r.GetDecision().String(), "CALL_DECISION_"), Tool: r.GetToolId(), Fallback: r.GetFallbackToolIds(),
		Approval: own(r.GetApprovalId()), Trace: r.GetSourceTrace(), Message: r.GetMessage(), MessageZH: r.GetMessageZh()}
	if r.GetReason() != v1.CallReason_CALL_REASON_UNSPECIFIED {
		p.Reason = strings.TrimPrefix(r.GetReason().String(), "CALL_REASON_")
	}
	if r.GetWithheld() != nil {
		p.Withheld = strings.TrimPrefix(r.GetWithheld().GetReason().String(), "WITHHELD_REASON_")
	}
	config := func(s *structpb.Struct) string {
		if len(s.GetFields()) == 0 {
			return ""
		}
		data, _ := json.Marshal(s.AsMap())
		return string(data)
	}
	if b := r.GetBinding().GetNative(); b != nil {
		p.Binding = &calltest.Binding{ToolClass: b.GetToolClass(), Config: config(b.GetConfig())}
	}
	if b := r.GetBinding().GetMcp(); b != nil {
		p.Binding = &calltest.Binding{Server: b.GetMcpServerId(), Function: b.GetFunction(), Endpoint: b.GetEndpoint(), Config: config(b.GetConfig())}
	}
	switch next := r.GetNextStep().GetKind().(type) {
	case *v1.NextStep_Enable:
		e := next.Enable
		p.Next.Enable = &calltest.Enable{Chat: own(e.GetChatId()), RequestID: own(e.GetRequestId()), Turn: e.Turn, Tool: e.GetChanges()[0].GetToolId()}
	case *v1.NextStep_ApprovalId:
		p.Next.Approve = next.ApprovalId == r.GetApprovalId()
	case *v1.NextStep_RetryAfter:
		p.Next.RetryAfter = next.RetryAfter.AsDuration().String()
	case *v1.NextStep_UseFallback:
		p.Next.Fallback = next.UseFallback.GetFunctions()
	case *v1.NextStep_FixArguments:
		for _, f := range next.FixArguments.GetFaults() {
			p.Next.Faults = append(p.Next.Faults, f.GetPath()+": "+f.GetDescription())
		}
	case *v1.NextStep_NameSource:
		for _, s := range next.NameSource.GetSources() {
			p.Next.Sources = append(p.Next.Sources, s.GetSource()+"/"+s.GetToolId()+"/"+s.GetUniqueName())
		}
	}
	return p
}
