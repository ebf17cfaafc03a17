package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// mcpServerCommand is the process of the MCP server that mcp measures with, which ends with its input.
func mcpServerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "mcp-server",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return serveMCP(command.InOrStdin(), command.OutOrStdout())
		},
	}
}

// serveMCP serves functions that answer at once, until the input ends.
func serveMCP(in io.Reader, out io.Writer) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	for _, f := range mcpFunctions(0) {
		schema, err := json.Marshal(f.GetInputSchema())
		if err != nil {
			return err
		}
		server.AddTool(&mcp.Tool{Name: f.GetName(), Description: f.GetDescription(), InputSchema: json.RawMessage(schema)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var arguments struct {
					Text string `json:"text"`
				}
				err := json.Unmarshal(r.Params.Arguments, &arguments)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: arguments.Text}}}, err
			})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil), ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(out, listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = web.Close()
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startMCPServer starts this program again as the MCP server.
func startMCPServer(ctx context.Context, log io.Writer) (url string, stop func() error, err error) {
	return startSelf(ctx, "mcp-server", "the MCP server", log, func(_ io.Writer, out io.Reader) (string, error) {
		address, err := bufio.NewReader(out).ReadString('\n')
		return "http://" + strings.TrimSpace(address), err
	})
}
