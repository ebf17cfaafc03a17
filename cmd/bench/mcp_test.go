package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestCallsThroughToolgrantAreMeasured(t *testing.T) {
	ctx := testkit.Context(t)
	n := node.Start(t, testkit.Database(t), node.Options{})
	gateway := mcp.NewGateway(mcp.GatewayOptions{Entitlements: toolgrantv1.NewEntitlementServiceClient(n.Conn), Calls: toolgrantv1.NewCallServiceClient(n.Conn),
		Pool: mcp.NewPool(mcp.PoolOptions{}), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Server: func(_ context.Context, name id.MCPServer) (*catalog.MCPServer, error) {
			for _, s := range n.Replica.World().MCPServers {
				if s.ID == name {
					return &s, nil
				}
			}
			return nil, errors.New("no such server")
		}})
	defer gateway.Close()
	web := httptest.NewServer(gateway.Handler())
	defer web.Close()
	defer web.CloseClientConnections()
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		out := &bytes.Buffer{}
		if err := run(ctx, []string{"mcp", "--addr", n.Address, "--url", web.URL, "--protocol", protocol, "--functions=80", "--concurrency=1,3", "--duration=50ms", "--warmup=0s", "--rounds=2", "-o=json"},
			nil, out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var got mcpReport
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(got.Results) != 2 {
			t.Fatalf("the report is %s", out)
		}
		for _, r := range got.Results {
			if len(r.Contenders) != 4 || len(r.Comparisons) != 4 || r.Comparisons[0].Median <= 0 {
				t.Errorf("at %d: %+v", r.Concurrency, r)
			}
			for _, c := range r.Contenders {
				if len(c.Rounds) != 2 || c.Median.Requests == 0 || c.Median.Errors > 0 {
					t.Errorf("at %d, %s: %+v", r.Concurrency, c.Name, c.Median)
				}
			}
		}
	}
}
