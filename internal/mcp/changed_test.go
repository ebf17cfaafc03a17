package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/mcp"
)

// A server that is connected says that its functions changed: it is asked at once, not when its time comes.
func TestAServerThatSaysItChangedIsAskedAtOnce(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"with sessions": {}, "without": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			external := sdk.NewServer(&sdk.Implementation{Name: "maps", Version: "1"}, nil)
			external.AddTool(tool("route"), answer("by road"))
			web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return external }, options))
			t.Cleanup(func() {
				web.CloseClientConnections()
				web.Close()
			})
			b := gateway(t, fmt.Sprintf(world, web.URL))
			refresher := mcp.NewRefresher(mcp.RefreshOptions{World: b.Replica.World, Observe: b.Store.Observe, Interval: 100 * time.Hour, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
			pool := mcp.NewPool(mcp.PoolOptions{Changed: refresher.Changed})
			running, stop := context.WithCancel(b.ctx)
			stopped := make(chan struct{}, 2)
			go func() { refresher.Run(running); stopped <- struct{}{} }()
			go func() { pool.Run(running); stopped <- struct{}{} }()
			defer func() {
				stop()
				<-stopped
				<-stopped
			}()
			if _, err := pool.Call(b.ctx, server("maps", web.URL), "route", nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			observed := func() bool {
				for n := range uint(b.Replica.World().Catalog.Len()) {
					if len(b.Replica.World().Catalog.Type(n).Observations) > 0 {
						return true
					}
				}
				return false
			}
			if observed() {
				t.Fatal("it was asked before it said anything")
			}
			again := 0
			await(t, b.ctx, "what changed", func() bool {
				again++ // the first word may be lost: the stream may not be there yet
				if again%20 == 1 {
					external.AddTool(tool(fmt.Sprintf("new%d", again)), answer("new"))
				}
				return observed()
			})
		})
	}
}
