package main

import (
	"io"
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// A client on standard input and output calls a function of a published server, which is started for it.
func TestServeIsAnMCPServerOnStandardInputAndOutput(t *testing.T) {
	o := serve(t)
	o.run(t, "", "mcp", "import", "--stdio", testkit.MCPServer(t, "everything"), "--server", "every")
	o.run(t, "groups: [{group_id: all, grant_tool_ids: [every]}]\navatars: [{avatar_id: a, tool_ids: [every]}]\ndefault_avatars: [{avatar_id: a}]\n"+
		"users: [{user_id: ann, memberships: [{group_id: all}]}]", "apply", "-f", "-")
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(o.ctx, []string{"--addr", o.address, "mcp", "serve", "--user", "ann", "--chat", "c", "--allow-stdio"}, in, out, io.Discard)
	}()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(o.ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tool, err := range client.Tools(o.ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "every__echo") || names[0] != "tool_search" {
		t.Errorf("it lists %v", names)
	}
	// The server says of echo what it is; nobody judged it, so an approval may be needed. An operator declares it harmless.
	stored := o.toolType(t, "every")
	for _, f := range stored.GetFunctions() {
		if f.GetName() == "echo" {
			f.Risk = 1
		}
	}
	o.applyToolType(t, stored)
	result, err := client.CallTool(o.ctx, &sdk.CallToolParams{Name: "every__echo", Arguments: map[string]any{"message": "hello"}})
	if err != nil || result.IsError || result.Content[0].(*sdk.TextContent).Text != "Echo: hello" {
		t.Errorf("%+v, %v", result, err)
		for _, c := range result.Content {
			t.Logf("%+v", c)
		}
	}
	_ = client.Close()
	_ = toServer.Close()
	if err := <-done; err != nil {
		t.Errorf("it ended with: %v", err)
	}
}
