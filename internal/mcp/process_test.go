package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// serverVariable makes this test binary an MCP server over standard input and output: the value says of which kind.
const serverVariable = "TOOLGRANT_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		beServer(kind)
		return
	}
	testkit.Main(m)
}

// beServer is the process of a server that a test starts.
func beServer(kind string) {
	switch kind {
	case "stubborn": // it reads nothing, and does not end when its input does
		select {}
	case "babbling":
		fmt.Println("Starting up, please wait!")
		select {}
	case "garbling":
		garble()
		return
	}
	events := os.Getenv("EVENTS")
	if _, err := os.Stat(events + ".away"); events != "" && err == nil {
		tell(events, "start")
		os.Exit(4)
	}
	server := sdk.NewServer(&sdk.Implementation{Name: kind, Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	if kind == "native" { // it runs whatever it is asked to
		for _, class := range []string{"config", "test_simple_text"} {
			server.AddTool(tool(class), func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				config, err := json.Marshal(r.Params.Meta["toolgrant/config"])
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: class + " " + string(config) + " " + string(r.Params.Arguments)}}}, err
			})
		}
	} else {
		addFunctions(server, events)
	}
	if err := server.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func addFunctions(server *sdk.Server, events string) {
	for _, name := range []string{"d", "a", "c", "b", "e"} {
		server.AddTool(tool(name), answer(os.Getenv("SECRET")+os.Getenv("TOOLGRANT_TEST_SECRET")))
	}
	server.AddTool(tool("crash"), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	server.AddTool(tool("flood"), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return answer(strings.Repeat("a", 64<<20))(nil, nil)
	})
	if events == "" {
		return
	}
	server.AddTool(tool("pid"), answer(fmt.Sprint(os.Getpid())))
	// It tells that it is called, and holds until it is released, or nobody wants its answer any more.
	server.AddTool(tool("hold"), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		tell(events, "hold")
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "half"})
		}
		for {
			select {
			case <-ctx.Done():
				tell(events, "cancelled")
				return nil, ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
			if _, err := os.Stat(events + ".release"); err == nil {
				return answer(fmt.Sprint(os.Getpid()))(ctx, r)
			}
		}
	})
}

// garble is a server that answers calls with what is no MCP.
func garble() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		switch request.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"garbling","version":"1"}}}`+"\n", request.ID)
		case "tools/call":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":{"a":1}}}`+"\n", request.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", request.ID)
		}
	}
}

// tell writes a line into the file of what happened.
func tell(events, what string) {
	f, err := os.OpenFile(events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, what)
		_ = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// told counts what happened of a kind.
func told(events, what string) int {
	data, _ := os.ReadFile(events)
	return strings.Count(string(data), what+"\n")
}
