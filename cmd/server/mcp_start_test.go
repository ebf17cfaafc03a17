package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// A server starts, answers and ends without waiting for MCP servers that do not answer, though it keeps asking them.
func TestStartingNeverWaitsForMCPServers(t *testing.T) {
	ctx := testkit.Context(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			if _, err := silent.Accept(); err != nil {
				return
			}
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	database := testkit.Database(t)
	for _, start := range []string{"first", "with what is stored"} {
		address, web, log, done := freeAddress(t), freeAddress(t), &output{}, make(chan error, 1)
		running, stop := context.WithCancel(ctx)
		go func() {
			done <- run(running, []string{"--database-url", database, "--grpc-addr", address, "--http-addr", web, "--mcp-allow-stdio", "--mcp-refresh-interval", "1s"}, log)
		}()
		began := time.Now()
		await(t, "ready", func() bool { return ready(web) == http.StatusOK })
		if took := time.Since(began); took > 20*time.Second { // connecting to a server may take 30 s
			t.Errorf("the %s start took %v", start, took)
		}
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		m := &toolgrantv1.Manifest{Users: []*toolgrantv1.User{{UserId: "ann"}}}
		for name, server := range map[string]*toolgrantv1.McpServer{
			"silent":      {Endpoint: "http://" + silent.Addr().String()},
			"unreachable": {Endpoint: "http://127.0.0.1:1"},
			"stubborn":    {Transport: toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO, Endpoint: "sh -c 'trap : TERM; while :; do sleep 1; done'"},
			"missing":     {Transport: toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO, Endpoint: "/no/such/command"},
		} {
			server.McpServerId = name
			m.McpServers = append(m.McpServers, server)
			m.ToolTypes = append(m.ToolTypes, &toolgrantv1.ToolType{ToolTypeId: name, Source: toolgrantv1.ToolSource_TOOL_SOURCE_EXTERNAL_MCP, McpServerId: name,
				Functions: []*toolgrantv1.McpFunction{{Name: "f"}}})
			m.Tools = append(m.Tools, &toolgrantv1.Tool{ToolId: name, ToolTypeId: name, Name: name})
		}
		if _, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: m}); err != nil {
			t.Fatal(err)
		}
		select { // it does ask
		case <-asked:
		case <-ctx.Done():
			t.Fatal("nobody asks the server")
		}
		if _, err := toolgrantv1.NewEntitlementServiceClient(conn).ResolveTools(ctx, &toolgrantv1.ResolveToolsRequest{ChatId: "c", UserId: "ann",
			Surface: &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}}); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		began = time.Now()
		stop()
		if err := <-done; err != nil {
			t.Errorf("it ended with: %v\n%s", err, log)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v to shut down", took)
		}
	}
}
