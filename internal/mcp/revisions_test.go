package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Which revision a client speaks is nothing to the external server, which may speak another one.
func TestClientsAndServersMaySpeakDifferentRevisions(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"with sessions": {}, "without": {Stateless: true}} {
		external := sdk.NewServer(&sdk.Implementation{Name: "maps", Version: "1"}, nil)
		external.AddTool(tool("wipe"), answer("wiped"))
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return external }, options))
		t.Cleanup(func() {
			web.CloseClientConnections()
			web.Close()
		})
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				b := gateway(t, strings.Replace(fmt.Sprintf(riskyWorld, web.URL), "{name: route}", "{name: wipe, risk: TOOL_RISK_LOW}", 1))
				s := b.connect(t, ann, version, nil)
				for range 2 { // over a new connection, and over one that is there
					if text, _, isError := call(t, b.ctx, s, "maps__wipe", nil); isError || text != "wiped" {
						t.Errorf("it is answered %q", text)
					}
				}
			})
		}
	}
}
