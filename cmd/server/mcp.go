package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// mcpSide is what a server has to do with MCP: it is one itself, calls external ones, and asks them what they changed.
// Nothing waits for an external server but the calls to it.
type mcpSide struct {
	conn      *grpc.ClientConn
	pool      *mcp.Pool
	gateway   *mcp.Gateway
	refresher *mcp.Refresher // nil: they are not asked
}

// newMCPSide makes it. It asks this server over gRPC, as any chat server does, with the credentials of its client, so that
// it may do no more than one.
func newMCPSide(c *config.Config, t *trust, memory *replica.Replica, store *postgres.Store, log *slog.Logger) (*mcpSide, error) {
	conn, err := t.dial()
	if err != nil {
		return nil, err
	}
	s := &mcpSide{conn: conn}
	dialer := mcp.Dialer{Stdio: c.McpAllowStdio}
	pool := mcp.PoolOptions{Dialer: dialer}
	if c.McpRefreshInterval > 0 {
		s.refresher = mcp.NewRefresher(mcp.RefreshOptions{Dialer: dialer, World: memory.World, Observe: store.Observe, Interval: c.McpRefreshInterval, Logger: log})
		pool.Changed = s.refresher.Changed
	}
	s.pool = mcp.NewPool(pool)
	s.gateway = mcp.NewGateway(mcp.GatewayOptions{
		Entitlements: toolgrantv1.NewEntitlementServiceClient(conn),
		Calls:        toolgrantv1.NewCallServiceClient(conn),
		Discovery:    toolgrantv1.NewDiscoveryServiceClient(conn),
		Chats:        toolgrantv1.NewChatServiceClient(conn),
		Approvals:    toolgrantv1.NewApprovalServiceClient(conn), ElicitApprovals: c.McpElicitApprovals,
		Server: func(_ context.Context, name id.MCPServer) (*catalog.MCPServer, error) {
			servers := memory.World().MCPServers
			for i := range servers {
				if servers[i].ID == name {
					return &servers[i], nil
				}
			}
			return nil, errors.New("no such MCP server")
		},
		Sessions: c.McpMaxSessions, SessionsPerUser: c.McpMaxUserSessions, SessionTimeout: c.McpSessionTimeout,
		NativeServer: id.MCPServer(c.McpNativeServer), Pool: s.pool, Logger: log.With("part", "mcp"),
	})
	return s, nil
}

func (s *mcpSide) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { s.pool.Run(ctx) })
	if s.refresher != nil {
		group.Go(func() { s.refresher.Run(ctx) })
	}
}

func (s *mcpSide) close() {
	s.gateway.Close()
	_ = s.conn.Close()
}
