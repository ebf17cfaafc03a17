package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// headed is a server whose functions answer with headers of the request, and with structured content.
func headed(t *testing.T) string {
	t.Helper()
	external := sdk.NewServer(&sdk.Implementation{Name: "headed", Version: "1"}, nil)
	for _, name := range []string{"read", "write", "measure"} {
		external.AddTool(tool(name), func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if name == "measure" {
				return &sdk.CallToolResult{StructuredContent: map[string]any{"meters": 3}, Content: []sdk.Content{&sdk.TextContent{Text: "3"}}}, nil
			}
			return answer(r.Extra.Header.Get("Authorization")+" "+r.Extra.Header.Get("X-Team"))(nil, nil)
		})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return external }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

const headedWorld = `
mcp_servers: [{mcp_server_id: docs, endpoint: "%s", headers_from_env: {Authorization: TOOLGRANT_TEST_ALL, X-Team: TOOLGRANT_TEST_TEAM}}]
tool_types:
  - tool_type_id: docs
    source: TOOL_SOURCE_EXTERNAL_MCP
    mcp_server_id: docs
    functions:
      - {name: read, risk: TOOL_RISK_LOW}
      - {name: write, risk: TOOL_RISK_LOW}
      - {name: measure, risk: TOOL_RISK_LOW, output_schema: {$schema: "http://json-schema.org/draft-07/schema#", type: object, properties: {meters: {type: number}}, required: [meters]}}
tools:
  - {tool_id: docs, tool_type_id: docs, name: docs, quotas: [{quota_id: few, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 3, window: {fixed: "3600s"}}]}
  - {tool_id: docs.reader, tool_type_id: docs, name: reader, mcp: {functions: [read], headers_from_env: {Authorization: TOOLGRANT_TEST_READER}}}
groups: [{group_id: all, grant_tool_ids: [docs, docs.reader]}]
avatars: [{avatar_id: a, tool_ids: [docs, docs.reader]}]
default_avatars: [{avatar_id: a}]
users: [{user_id: ann, memberships: [{group_id: all}]}]
`

// Two tools of one server: one has all of its functions, the other some, under a prefix of its own, with credentials of its own.
func TestAToolIsAConfiguredInstanceOfAServer(t *testing.T) {
	t.Setenv("TOOLGRANT_TEST_ALL", "all")
	t.Setenv("TOOLGRANT_TEST_TEAM", "team")
	t.Setenv("TOOLGRANT_TEST_READER", "reader")
	b := gateway(t, fmt.Sprintf(headedWorld, headed(t)))
	s := b.connect(t, ann, "", nil)
	if got := tools(t, b.ctx, s); !slices.Equal(got, []string{"docs__read", "docs__write", "docs__measure", "reader__read"}) {
		t.Errorf("it lists %v", got)
	}
	for range 2 {
		for name, want := range map[string]string{"docs__write": "all team", "reader__read": "reader team"} {
			if text, _, isError := call(t, b.ctx, s, name, nil); isError || text != want {
				t.Errorf("%s is called with %q, want %q", name, text, want)
			}
		}
	}
	if text, structured, _ := call(t, b.ctx, s, "reader__write", nil); structured["reason"] != "CALL_REASON_UNKNOWN_FUNCTION" {
		t.Errorf("a function that the tool does not have: %q, %v", text, structured)
	}
	// A chat server is told the same: names of variables, never values.
	answered, err := v1.NewCallServiceClient(b.Conn).AuthorizeCall(b.ctx, &v1.AuthorizeCallRequest{CallId: "x", ChatId: "c1", UserId: "ann",
		Surface: &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}, Function: "reader__read"})
	if err != nil {
		t.Fatal(err)
	}
	if got := answered.GetBinding().GetMcp().GetHeadersFromEnv(); len(got) != 2 || got["Authorization"] != "TOOLGRANT_TEST_READER" || got["X-Team"] != "TOOLGRANT_TEST_TEAM" {
		t.Errorf("the binding has the headers %v", got)
	}
	// What a tool has is kept, and checked.
	catalog := v1.NewCatalogServiceClient(b.Conn)
	stored, err := catalog.GetTool(b.ctx, &v1.GetToolRequest{ToolId: "docs.reader"})
	if want := (&v1.ToolMcp{Functions: []string{"read"}, HeadersFromEnv: map[string]string{"Authorization": "TOOLGRANT_TEST_READER"}}); err != nil || !proto.Equal(stored.GetTool().GetMcp(), want) {
		t.Errorf("stored is %v, %v", stored.GetTool().GetMcp(), err)
	}
	for _, mcp := range []*v1.ToolMcp{{Functions: []string{"reed"}}, {HeadersFromEnv: map[string]string{"Authorization": "not a variable"}}} {
		wrong := proto.CloneOf(stored.GetTool())
		wrong.Mcp, wrong.Etag = mcp, ""
		if _, err := catalog.UpdateTool(b.ctx, &v1.UpdateToolRequest{Tool: wrong}); err == nil || !strings.Contains(err.Error(), "reed") && !strings.Contains(err.Error(), "headers_from_env") {
			t.Errorf("%v is answered %v", mcp, err)
		}
	}
}

// What a function returns is as its schema says, and so is what refuses it: clients check.
func TestOutputSchemasAreServed(t *testing.T) {
	t.Setenv("TOOLGRANT_TEST_ALL", "all")
	t.Setenv("TOOLGRANT_TEST_TEAM", "team")
	b := gateway(t, fmt.Sprintf(headedWorld, headed(t)))
	for _, version := range versions {
		s := b.connect(t, as{"toolgrant-user": "ann", "toolgrant-chat": "output-" + version}, version, nil)
		for described, err := range s.Tools(b.ctx, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if (described.OutputSchema != nil) != (described.Name == "docs__measure") {
				text, _ := json.Marshal(described.OutputSchema)
				t.Errorf("%s returns %s", described.Name, text)
			}
		}
	}
	script := testkit.NodeScript(t, "testdata/output.mjs")
	for _, client := range [][2]string{{"sdk", "2025-11-25"}, {"client", "2025-11-25"}, {"client", "2026-07-28"}} {
		out, err := nodeOutput(b.ctx, script, client[0], client[1], b.url)
		if err != nil || !strings.HasSuffix(out, "all as the schema says\n") {
			t.Errorf("%v: %v: %s", client, err, out)
		}
	}
}
