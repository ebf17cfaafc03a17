package main

import (
	"context"
	"io"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/mcp"
)

func (c *cli) mcpServe() *cobra.Command {
	var who mcp.Conversation
	var allowStdio, elicit bool
	var native string
	command := &cobra.Command{
		Use: "serve --user USER --chat CHAT", Short: "Be an MCP server on standard input and output, for one conversation",
		Long: "Be an MCP server on standard input and output, for one conversation: for MCP clients that start their servers. External servers\n" +
			"are called from this machine, with the secrets of its environment.",
		Example: "  toolctl mcp serve --user ann --chat desk --device ann-laptop --allow-stdio",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			conn, err := c.connect()
			if err != nil {
				return err
			}
			defer conn.Close()
			ctx, cancel := context.WithCancel(command.Context())
			pool := mcp.NewPool(mcp.PoolOptions{Dialer: mcp.Dialer{Stdio: allowStdio}})
			done := make(chan struct{})
			go func() {
				pool.Run(ctx)
				close(done)
			}()
			defer func() {
				cancel()
				<-done
			}()
			servers := toolgrantv1.NewCatalogServiceClient(conn)
			gateway := mcp.NewGateway(mcp.GatewayOptions{Entitlements: toolgrantv1.NewEntitlementServiceClient(conn), Calls: toolgrantv1.NewCallServiceClient(conn),
				Discovery: toolgrantv1.NewDiscoveryServiceClient(conn), Chats: toolgrantv1.NewChatServiceClient(conn),
				Approvals: toolgrantv1.NewApprovalServiceClient(conn), ElicitApprovals: elicit,
				Server: func(ctx context.Context, name id.MCPServer) (*catalog.MCPServer, error) {
					stored, err := servers.GetMcpServer(ctx, &toolgrantv1.GetMcpServerRequest{McpServerId: string(name)})
					if err != nil {
						return nil, err
					}
					return serverFromProto(stored.GetMcpServer()), nil
				},
				NativeServer: id.MCPServer(native), Pool: pool, Logger: slog.New(slog.NewTextHandler(command.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
			defer gateway.Close()
			return gateway.Serve(ctx, who, &sdk.IOTransport{Reader: io.NopCloser(command.InOrStdin()), Writer: unclosed{command.OutOrStdout()}})
		},
	}
	flags := command.Flags()
	flags.StringVar(&who.User, "user", "", "the user")
	flags.StringVar(&who.Chat, "chat", "", "the chat; it need not exist yet")
	flags.StringVar(&who.Device, "device", "", "the user's device (default: the web)")
	flags.StringVar(&who.Provider, "provider", "", "the model's provider")
	flags.StringVar(&who.ModelCapabilities, "model-capabilities", "", "what the model can do, separated by commas")
	flags.StringVar(&native, "native-server", "", "the id of the MCP server that runs native tools (default: they are not served)")
	flags.BoolVar(&allowStdio, "allow-stdio", false, "start MCP servers that are child processes, as the catalogue says")
	flags.BoolVar(&elicit, "elicit-approvals", true, "ask the user for approvals through the client, if it can ask")
	for _, flag := range []string{"user", "chat", "device", "provider", "model-capabilities", "native-server"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	_ = command.MarkFlagRequired("user") // the flag exists
	_ = command.MarkFlagRequired("chat") // the flag exists
	return command
}

// unclosed is a writer that is closed elsewhere.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }

// serverFromProto is an MCP server as it is reached.
func serverFromProto(p *toolgrantv1.McpServer) *catalog.MCPServer {
	s := &catalog.MCPServer{ID: id.MCPServer(p.GetMcpServerId()), Transport: catalog.TransportStreamableHTTP, Endpoint: p.GetEndpoint(), HeadersFromEnv: p.GetHeadersFromEnv()}
	if p.GetTransport() == toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO {
		s.Transport = catalog.TransportStdio
	}
	return s
}
