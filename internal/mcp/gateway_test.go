package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// maps is an external server with functions of every kind.
func maps(t *testing.T) (url string, calls *atomic.Int64, heard chan struct{}) {
	t.Helper()
	calls, heard = &atomic.Int64{}, make(chan struct{}, 1)
	server := sdk.NewServer(&sdk.Implementation{Name: "maps", Version: "1"}, nil)
	add := func(name string, handle sdk.ToolHandler) {
		server.AddTool(tool(name), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			calls.Add(1)
			return handle(ctx, r)
		})
	}
	add("route", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "half"})
			select { // it goes on when the client has heard of it
			case <-heard:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "by " + string(r.Params.Arguments)}}}, nil
	})
	add("broken", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such place"}}}, nil
	})
	add("wipe", answer("wiped"))
	add("huge", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "begin " + strings.Repeat("a", 1<<16)}}}, nil
	})
	add("hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL, calls, heard
}

// bundle is a gateway before a node, and a catalogue.
type bundle struct {
	*node.Node
	ctx     context.Context
	url     string
	handler http.Handler
}

func gateway(t *testing.T, manifest string, change ...func(*mcp.GatewayOptions)) bundle {
	t.Helper()
	b := gatewayOf(t, testkit.Database(t), change...)
	b.apply(t, manifest)
	return b
}

// gatewayOf is a gateway before a node of a database.
func gatewayOf(t *testing.T, database string, change ...func(*mcp.GatewayOptions)) bundle {
	t.Helper()
	return gatewayBefore(t, node.Start(t, database, node.Options{}), change...)
}

// gatewayBefore is a gateway before a node.
func gatewayBefore(t *testing.T, n *node.Node, change ...func(*mcp.GatewayOptions)) bundle {
	t.Helper()
	ctx := testkit.Context(t)
	b := bundle{Node: n, ctx: ctx}
	pool := mcp.NewPool(mcp.PoolOptions{Dialer: mcp.Dialer{Stdio: true, Limits: mcp.Limits{Connect: 5 * time.Second}}, Backoff: 50 * time.Millisecond})
	running, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		pool.Run(running)
		close(stopped)
	}()
	o := mcp.GatewayOptions{Entitlements: v1.NewEntitlementServiceClient(n.Conn), Calls: v1.NewCallServiceClient(n.Conn), Discovery: v1.NewDiscoveryServiceClient(n.Conn),
		Chats: v1.NewChatServiceClient(n.Conn), Approvals: v1.NewApprovalServiceClient(n.Conn), ElicitApprovals: true, Pool: pool, PageSize: 3,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), ResultBytes: 1 << 14, CallTimeout: 30 * time.Second,
		Server: func(_ context.Context, name id.MCPServer) (*catalog.MCPServer, error) {
			for _, s := range n.Replica.World().MCPServers {
				if s.ID == name {
					return &s, nil
				}
			}
			return nil, fmt.Errorf("no server %s", name)
		}}
	for _, c := range change {
		c(&o)
	}
	g := mcp.NewGateway(o)
	b.handler = g.Handler()
	web := httptest.NewServer(b.handler)
	b.url = web.URL
	t.Cleanup(func() {
		g.Close()
		web.CloseClientConnections()
		web.Close()
		stop()
		<-stopped
	})
	return b
}

func (b bundle) apply(t *testing.T, manifest string) {
	t.Helper()
	var object any
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	m := &v1.Manifest{}
	if err := protojson.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	if _, err := v1.NewAdminServiceClient(b.Conn).ApplyManifest(b.ctx, &v1.ApplyManifestRequest{Manifest: m}); err != nil {
		t.Fatal(err)
	}
}

// as is an HTTP client whose requests are a conversation's.
type as map[string]string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range a {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

var ann = as{"toolgrant-user": "ann", "toolgrant-chat": "c1"}

// connect is a client of the gateway that speaks one generation of the protocol.
func (b bundle) connect(t *testing.T, who as, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, o).Connect(b.ctx,
		&sdk.StreamableClientTransport{Endpoint: b.url, HTTPClient: &http.Client{Transport: who}, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// own are Toolgrant's own functions.
var own = []string{"tool_search", "tool_enable"}

// tools are the names of all pages of a fresh list, after those of Toolgrant's own functions.
func tools(t *testing.T, ctx context.Context, s *sdk.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if len(names) < len(own) || !slices.Equal(names[:len(own)], own) {
		t.Fatalf("the list begins with %v", names)
	}
	return names[len(own):]
}

func call(t *testing.T, ctx context.Context, s *sdk.ClientSession, name string, arguments map[string]any) (text string, structured map[string]any, isError bool) {
	t.Helper()
	result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	for _, c := range result.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			text += c.Text
		}
	}
	structured, _ = result.StructuredContent.(map[string]any)
	return text, structured, result.IsError
}

const world = `
mcp_servers: [{mcp_server_id: maps, endpoint: "%s"}]
tool_types:
  - {tool_type_id: clock, source: TOOL_SOURCE_NATIVE}
  - tool_type_id: maps
    source: TOOL_SOURCE_EXTERNAL_MCP
    mcp_server_id: maps
    functions:
      - {name: route, description: Finds a route., input_schema: {type: object, properties: {to: {type: string}}}, risk: TOOL_RISK_LOW, annotations: {read_only_hint: true}}
      - {name: broken, risk: TOOL_RISK_LOW}
      - {name: huge, risk: TOOL_RISK_LOW}
      - {name: hang, risk: TOOL_RISK_LOW}
      - {name: delete}
tools:
  - {tool_id: clock, tool_type_id: clock, name: clock, core: true}
  - {tool_id: maps, tool_type_id: maps, name: maps, quotas: [{quota_id: few, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 3, window: {fixed: "3600s"}}]}
  - {tool_id: maps.b, tool_type_id: maps, name: b}
groups: [{group_id: all, grant_tool_ids: [clock, maps, maps.b]}]
avatars: [{avatar_id: a, tool_ids: [maps]}]
default_avatars: [{avatar_id: a}]
users: [{user_id: ann, memberships: [{group_id: all}]}, {user_id: bob}]
`

// Both generations of the protocol.
var versions = []string{"2025-11-25", "2026-07-28"}

func TestAClientSeesItsEffectiveSet(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := b.connect(t, ann, version, nil)
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("it speaks %s", got)
			}
			want := []string{"maps__route", "maps__broken", "maps__huge", "maps__hang", "maps__delete"} // the server's order, over two pages
			if got := tools(t, b.ctx, s); !slices.Equal(got, want) {
				t.Errorf("it lists %v, want %v", got, want)
			}
			page, err := s.ListTools(b.ctx, nil)
			if err != nil || len(page.Tools) != 3 || page.NextCursor == "" || page.CacheScope != "private" {
				t.Fatalf("a page is %+v, %v", page, err)
			}
			if first := page.Tools[len(own)]; first.Description != "Finds a route." || !first.Annotations.ReadOnlyHint || first.InputSchema.(map[string]any)["properties"] == nil {
				t.Errorf("a function is %+v", first)
			}
			if _, err := s.ListTools(b.ctx, &sdk.ListToolsParams{Cursor: "nonsense"}); err == nil {
				t.Error("a cursor that is none was taken")
			}
			if got := tools(t, b.ctx, b.connect(t, as{"toolgrant-user": "bob", "toolgrant-chat": "c2"}, version, nil)); len(got) > 0 {
				t.Errorf("Bob is given %v", got)
			}
		})
	}
}

func TestWhoAsksMustBeSaid(t *testing.T) {
	b := gateway(t, "users: [{user_id: ann}]")
	for _, who := range []as{{}, {"toolgrant-user": "ann"}, {"toolgrant-user": "no blanks", "toolgrant-chat": "c"}, {"toolgrant-user": "ann", "toolgrant-chat": "c", "toolgrant-turn": "x"}} {
		_, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(b.ctx,
			&sdk.StreamableClientTransport{Endpoint: b.url, HTTPClient: &http.Client{Transport: who}, MaxRetries: -1}, nil)
		if err == nil {
			t.Errorf("%v was let in", who)
		}
	}
	nobody := b.connect(t, as{"toolgrant-user": "nobody", "toolgrant-chat": "c"}, "", nil)
	if _, err := nobody.ListTools(b.ctx, nil); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown user's list: %v", err)
	}
}

func TestASessionIsOneConversations(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	who := as{"toolgrant-user": "ann", "toolgrant-chat": "c1"}
	s := b.connect(t, who, "2025-11-25", nil)
	tools(t, b.ctx, s)
	who["toolgrant-user"] = "bob"
	if _, err := s.ListTools(b.ctx, nil); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("Bob in Ann's session: %v", err)
	}
}

func TestCallsAreAuthorizedAndReported(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			url, calls, heard := maps(t)
			b := gateway(t, fmt.Sprintf(world, url))
			var progress atomic.Value
			s := b.connect(t, ann, version, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				progress.Store(r.Params.Message)
				heard <- struct{}{}
			}})
			// A call that goes well, with its progress.
			params := &sdk.CallToolParams{Name: "maps__route", Arguments: map[string]any{"to": "Rome"}}
			params.SetProgressToken("p")
			result, err := s.CallTool(b.ctx, params)
			if err != nil || result.IsError || len(result.Content) != 1 || result.Content[0].(*sdk.TextContent).Text != `by {"to":"Rome"}` {
				t.Fatalf("%+v, %v", result, err)
			}
			if progress.Load() != "half" {
				t.Errorf("the progress is %v", progress.Load())
			}
			// Errors of the tool are the tool's.
			if text, _, isError := call(t, b.ctx, s, "maps__broken", nil); !isError || text != "no such place" {
				t.Errorf("a tool's error is %q", text)
			}
			// Refusals tell a model what to do, and reach no server.
			made := calls.Load()
			for _, test := range []struct {
				function, reason, says string
				arguments              map[string]any
			}{
				{"maps__route", "CALL_REASON_BAD_ARGUMENTS", "fix these arguments", map[string]any{"to": 7}},
				{"maps__nothing", "CALL_REASON_UNKNOWN_FUNCTION", "Do not call it again", nil},
				{"b__route", "CALL_REASON_NOT_ENABLED", "have it enabled", nil},
				{"maps__delete", "CALL_REASON_APPROVAL_REQUIRED", "wait until a person", nil},
			} {
				text, structured, isError := call(t, b.ctx, s, test.function, test.arguments)
				if !isError || structured["reason"] != test.reason || !strings.Contains(text, test.says) || structured["message_zh"] == "" {
					t.Errorf("%s: %q, %v", test.function, text, structured)
				}
			}
			if calls.Load() != made {
				t.Error("what was refused was called")
			}
			// An approved call is made when it is made again.
			_, first, _ := call(t, b.ctx, s, "maps__delete", map[string]any{"x": 1})
			_, second, _ := call(t, b.ctx, s, "maps__delete", map[string]any{"x": 1})
			if first["approval_id"] == nil || first["approval_id"] != second["approval_id"] {
				t.Errorf("the same call asks for %v, and then for %v", first["approval_id"], second["approval_id"])
			}
			if _, err := v1.NewApprovalServiceClient(b.Conn).DecideApproval(b.ctx, &v1.DecideApprovalRequest{ApprovalId: first["approval_id"].(string), Approve: true,
				Scope: v1.ApprovalScope_APPROVAL_SCOPE_ONCE}); err != nil {
				t.Fatal(err)
			}
			if text, structured, _ := call(t, b.ctx, s, "maps__delete", map[string]any{"x": 1}); structured["reason"] != nil || !strings.Contains(text, "delete") {
				t.Errorf("approved, it is %q, %v", text, structured) // the server has no such function: it was asked
			}
			// What is too large is cut, and said so.
			if text, _, isError := call(t, b.ctx, s, "maps__huge", nil); !isError || !strings.Contains(text, "ask for less") || !strings.Contains(text, "begin aaa") || len(text) > 1<<12 {
				t.Errorf("a huge result is %q", text[:min(len(text), 200)])
			}
			// The quota of three calls is used up: calls are counted, however they went; refusals are not.
			text, structured, isError := call(t, b.ctx, s, "maps__route", nil)
			if !isError || structured["reason"] != "CALL_REASON_QUOTA_EXHAUSTED" || !strings.Contains(text, "again after") {
				t.Errorf("over the quota: %q, %v", text, structured)
			}
		})
	}
}

// Which revision a client speaks is nothing to the external server, which may speak another one.
func TestClientsAndServersMaySpeakDifferentRevisions(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"with sessions": {}, "without": {Stateless: true}} {
		external := sdk.NewServer(&sdk.Implementation{Name: "maps", Version: "1"}, nil)
		external.AddTool(tool("wipe"), answer("wiped"))
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return external }, options))
		t.Cleanup(func() {
			web.CloseClientConnections()
			web.Close()
		})
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				b := gateway(t, strings.Replace(fmt.Sprintf(riskyWorld, web.URL), "{name: route}", "{name: wipe, risk: TOOL_RISK_LOW}", 1))
				s := b.connect(t, ann, version, nil)
				for range 2 { // over a new connection, and over one that is there
					if text, _, isError := call(t, b.ctx, s, "maps__wipe", nil); isError || text != "wiped" {
						t.Errorf("it is answered %q", text)
					}
				}
			})
		}
	}
}

func TestACancelledCallIsCancelledOnTheServer(t *testing.T) {
	url, calls, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	for _, version := range versions {
		s := b.connect(t, ann, version, nil)
		before := calls.Load()
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "maps__hang"})
			done <- err
		}()
		await(t, b.ctx, "the call", func() bool { return calls.Load() > before })
		cancel()
		if err := <-done; err == nil {
			t.Error("it was answered")
		}
	}
	// It is reported as cancelled, so it cost nothing: all three calls of the quota are left.
	s := b.connect(t, ann, "", nil)
	await(t, b.ctx, "the reports", func() bool {
		r, err := v1.NewQuotaServiceClient(b.Conn).GetQuotaUsage(b.ctx, &v1.GetQuotaUsageRequest{UserId: "ann", ToolIds: []string{"maps"}})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.GetTools()) == 1 && r.GetTools()[0].GetRules()[0].GetRemaining() == 3
	})
	if text, _, isError := call(t, b.ctx, s, "maps__route", nil); isError {
		t.Errorf("afterwards: %s", text)
	}
}

func TestAClientIsToldWhenItsSetChanges(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			changed := make(chan struct{}, 8)
			chat := "chat-" + version
			s := b.connect(t, as{"toolgrant-user": "ann", "toolgrant-chat": chat}, version, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }})
			if got := tools(t, b.ctx, s); len(got) != 5 {
				t.Fatalf("it lists %v", got)
			}
			chats := v1.NewChatServiceClient(b.Conn)
			web := &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}
			if _, err := chats.CreateChat(b.ctx, &v1.CreateChatRequest{ChatId: chat, UserId: "ann", Surface: web, RequestId: "r"}); err != nil {
				t.Fatal(err)
			}
			if _, err := chats.SetChatTools(b.ctx, &v1.SetChatToolsRequest{ChatId: chat, RequestId: "r2",
				Changes: []*v1.ToolChange{{ToolId: "maps.b", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}}); err != nil {
				t.Fatal(err)
			}
			await(t, b.ctx, "list_changed, and the new list", func() bool {
				select {
				case <-changed:
					return len(tools(t, b.ctx, s)) == 10
				default:
					return false
				}
			})
		})
	}
}

func await(t *testing.T, ctx context.Context, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatal("in vain: " + what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
