package main

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// headers are sent with every request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestTheExampleOfMCP follows docs/mcp.md, with a real server, toolctl and a published MCP server.
func TestTheExampleOfMCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.json"))
	toolctl := filepath.Join(t.TempDir(), "toolctl")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", toolctl, "../toolctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	grpcAddr, web, log, done := freeAddress(t), freeAddress(t), &output{}, make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() {
		done <- run(running, []string{"--database-url", testkit.Database(t), "--grpc-addr", grpcAddr, "--http-addr", web, "--mcp-allow-stdio"}, log)
	}()
	defer func() {
		began := time.Now()
		stop()
		if err := <-done; err != nil {
			t.Errorf("it ended with: %v\n%s", err, log)
		}
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("it took %v to shut down, with a client connected", took)
		}
	}()
	await(t, "ready", func() bool { return ready(web) == http.StatusOK })
	do := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(ctx, toolctl, append([]string{"--addr", grpcAddr}, args...)...)
		var errors bytes.Buffer
		command.Stderr = &errors
		out, err := command.Output()
		if err != nil {
			t.Fatalf("toolctl %v: %v\n%s", args, err, &errors)
		}
		return string(out)
	}
	do("mcp", "import", "--stdio", testkit.MCPServer(t, "memory"), "--server", "memory", "--from-env", "MEMORY_FILE_PATH=MEMORY_FILE_PATH")
	do("apply", "-f", "../../examples/mcp/company.yaml")

	session, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}}).Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: "http://" + web + "/mcp", HTTPClient: &http.Client{Transport: headers{"toolgrant-user": "ann", "toolgrant-chat": "desk"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "memory__read_graph") || !slices.Contains(names, "memory__delete_entities") {
		t.Errorf("Ann is given %v", names)
	}
	call := func(name string, arguments any) (string, bool) {
		t.Helper()
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := result.Content[0].(*sdk.TextContent)
		return text.Text, result.IsError
	}
	deletion := map[string]any{"entityNames": []string{"Rome"}}
	text, refused := call("memory__delete_entities", deletion)
	_, approval, found := strings.Cut(text, "decided on approval ")
	approval, _, _ = strings.Cut(approval, ",")
	if !refused || !found {
		t.Fatalf("a deletion is answered %q", text)
	}
	do("approvals", "approve", approval, "--scope", "once")
	if text, refused := call("memory__delete_entities", deletion); refused {
		t.Errorf("an approved deletion is answered %q", text)
	}
	if text, refused := call("memory__read_graph", map[string]any{}); refused || !strings.Contains(text, "entities") {
		t.Errorf("a reading is answered %q", text)
	}
	if text, refused := call("tool_search", map[string]any{"query": "remember something about a city"}); refused || !strings.Contains(text, `"name":"memory"`) {
		t.Errorf("a search is answered %q", text)
	}
	if text, refused := call("tool_enable", map[string]any{"names": []string{"memory"}}); refused || !strings.Contains(text, `"name":"memory__read_graph"`) {
		t.Errorf("turning on is answered %q", text)
	}
}
