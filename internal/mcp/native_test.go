package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// goServer builds the server of the Go SDK that conformance is tested with, and returns its path.
func goServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything")
	if out, err := exec.CommandContext(testkit.Context(t), "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// nativeWorld has native tools and an internal MCP one, which the MCP server "house" runs, under the names of their classes.
func nativeWorld(command string) string {
	var types, tools strings.Builder
	for _, class := range []string{"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types",
		"test_error_handling", "test_tool_with_progress"} {
		fmt.Fprintf(&types, "  - {tool_type_id: %s, source: TOOL_SOURCE_NATIVE}\n", class)
		fmt.Fprintf(&tools, "  - {tool_id: %s, tool_type_id: %s, name: %s, title: %s, description: Does it., core: true}\n", class, class, class, class)
	}
	return fmt.Sprintf(`
mcp_servers: [{mcp_server_id: house, transport: MCP_TRANSPORT_STDIO, endpoint: %q, headers_from_env: {%s: TOOLGRANT_TEST_HONEST}}]
tool_types:
  - {tool_type_id: built_in, source: TOOL_SOURCE_INTERNAL_MCP, tool_class: config, input_schema: {type: object, properties: {x: {type: string}}}}
%stools:
  - {tool_id: built_in.one, tool_type_id: built_in, name: one, core: true, config: {size: 1}}
  - {tool_id: built_in.two, tool_type_id: built_in, name: two, core: true, config: {size: 2}}
%sgroups: [{group_id: all, grant_tool_ids: [built_in.one, built_in.two, test_simple_text, test_image_content, test_audio_content, test_embedded_resource, test_multiple_content_types, test_error_handling, test_tool_with_progress]}]
users: [{user_id: ann, memberships: [{group_id: all}]}]
`, "'"+command+"'", serverVariable, &types, &tools)
}

// Tools of the chat server are called on the operator's MCP server, by the names of their classes, with their configurations.
func TestNativeToolsAreCalledOnTheNativeServer(t *testing.T) {
	t.Setenv("TOOLGRANT_TEST_HONEST", "native")
	b := gateway(t, nativeWorld(os.Args[0]), func(o *mcp.GatewayOptions) { o.NativeServer = "house" })
	for _, version := range versions {
		s := b.connect(t, ann, version, nil)
		if got := tools(t, b.ctx, s); len(got) != 9 || !slices.Equal(got[:2], []string{"one", "two"}) {
			t.Errorf("it lists %v", got)
		}
		for name, want := range map[string]string{"one": `config {"size":1} {"x":"y"}`, "two": `config {"size":2} {"x":"y"}`, "test_simple_text": `test_simple_text {} {"x":"y"}`} {
			if text, _, isError := call(t, b.ctx, s, name, map[string]any{"x": "y"}); isError || text != want {
				t.Errorf("%s answers %q, want %q", name, text, want)
			}
		}
		if text, structured, _ := call(t, b.ctx, s, "one", map[string]any{"x": 7}); structured["reason"] != "CALL_REASON_BAD_ARGUMENTS" {
			t.Errorf("wrong arguments are answered %q", text)
		}
		found, _ := find(t, b.ctx, s, "tool_search", map[string]any{"query": "one"})
		if len(found.Matches) == 0 {
			t.Error("native tools are not found")
		}
	}
}

// The tool of MCP's makers that tests whether servers keep to the protocol finds nothing to complain of, in all that
// Toolgrant has: results of every kind pass it unharmed.
func TestItKeepsToTheProtocol(t *testing.T) {
	t.Setenv("TOOLGRANT_TEST_HONEST", "")
	b := gateway(t, nativeWorld(goServer(t)), func(o *mcp.GatewayOptions) { o.NativeServer, o.ResultBytes = "house", 1<<20 })
	named := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the tool sends no headers of ours
		for name, value := range ann {
			r.Header.Set(name, value)
		}
		b.handler.ServeHTTP(w, r)
	}))
	defer named.Close()
	defer named.CloseClientConnections()
	command := testkit.NodeCommand(t, "conformance")
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio",
		"tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			run := exec.CommandContext(b.ctx, "node", command, "server", "--url", named.URL, "--scenario", scenario)
			run.Dir = t.TempDir()
			out, err := run.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "Passed:") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
