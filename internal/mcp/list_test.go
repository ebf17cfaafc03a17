package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func tool(name string) *sdk.Tool {
	return &sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type": "object"}`)}
}

func answer(text string) sdk.ToolHandler {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

func server(name, url string) *catalog.MCPServer {
	return &catalog.MCPServer{ID: id.MCPServer(name), Transport: catalog.TransportStreamableHTTP, Endpoint: url}
}

// child is a server that is a process of this test's binary.
func child(t *testing.T, kind string) *catalog.MCPServer {
	t.Helper()
	t.Setenv("TOOLGRANT_TEST_KIND", kind)
	t.Setenv("TOOLGRANT_TEST_SECRET", "hidden")
	t.Setenv("TOOLGRANT_TEST_SHARED", "shared")
	return &catalog.MCPServer{ID: "child", Transport: catalog.TransportStdio, Endpoint: "'" + os.Args[0] + "'",
		HeadersFromEnv: map[string]string{serverVariable: "TOOLGRANT_TEST_KIND", "SECRET": "TOOLGRANT_TEST_SHARED"}}
}

func list(t *testing.T, d mcp.Dialer, server *catalog.MCPServer) (*mcp.Listing, error) {
	t.Helper()
	conn, err := d.Dial(testkit.Context(t), server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.List(testkit.Context(t))
}

func names(l *mcp.Listing) []string {
	var names []string
	for _, f := range l.Functions {
		names = append(names, f.Name)
	}
	return names
}

func TestAllPagesAreRead(t *testing.T) {
	listing, err := list(t, mcp.Dialer{Stdio: true}, child(t, "honest"))
	if err != nil || !slices.Equal(names(listing), []string{"a", "b", "c", "crash", "d", "e", "flood"}) || len(listing.LeftOut) > 0 {
		t.Fatalf("%+v, %v", listing, err)
	}
	if f := listing.Functions[0]; f.Description != "Does a." || string(f.InputSchema) != `{"type":"object"}` || f.Annotations != nil || f.Risk() != catalog.RiskHigh {
		t.Errorf("a function is %+v of risk %s", f, f.Risk())
	}
}

func TestChildProcessesAreStartedOnlyWhereThatIsAllowed(t *testing.T) {
	if _, err := list(t, mcp.Dialer{}, child(t, "honest")); err != mcp.ErrStdio {
		t.Error(err)
	}
}

func TestAChildProcessThatIgnoresEverythingIsEnded(t *testing.T) {
	began := time.Now()
	_, err := list(t, mcp.Dialer{Stdio: true, Limits: mcp.Limits{Connect: 100 * time.Millisecond}}, child(t, "stubborn"))
	if err == nil || !strings.Contains(err.Error(), "did not answer within 100ms") {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// page answers initialize as a server does, and tools/list with what list makes of the cursor.
func page(t *testing.T, list func(cursor string) string) *catalog.MCPServer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Cursor string `json:"cursor"`
			} `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		w.Header().Set("Content-Type", "application/json")
		switch request.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, request.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, list(request.Params.Cursor))
		case "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			if request.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, request.ID)
		}
	}))
	t.Cleanup(server.Close)
	return &catalog.MCPServer{ID: "page", Transport: catalog.TransportStreamableHTTP, Endpoint: server.URL}
}

func TestHostileListsAreBounded(t *testing.T) {
	var pages atomic.Int64
	for name, test := range map[string]struct {
		list   func(cursor string) string
		limits mcp.Limits
		want   string
	}{
		"pages without end": {func(string) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, pages.Add(1)) }, mcp.Limits{}, "more than 200 pages"},
		"a circle":          {func(string) string { return `{"tools":[],"nextCursor":"again"}` }, mcp.Limits{}, "circle"},
		"too many": {func(string) string {
			return `{"tools":[` + strings.Repeat(`{"name":"a","inputSchema":{"type":"object"}},`, 20) + `{"name":"b"}]}`
		}, mcp.Limits{Functions: 20}, "more than 20 functions"},
		"a huge message": {func(string) string {
			return `{"tools":[{"name":"a","description":"` + strings.Repeat("a", 1<<20) + `"}]}`
		}, mcp.Limits{MessageBytes: 1 << 16}, "too large"},
		"many large ones": {func(string) string {
			return fmt.Sprintf(`{"tools":[{"name":"a","description":"%s"}],"nextCursor":"%d"}`, strings.Repeat("a", 1<<10), pages.Add(1))
		}, mcp.Limits{ListBytes: 1 << 14}, "more than 16384 bytes"},
		"no JSON":       {func(string) string { return `{"tools":[` }, mcp.Limits{}, ""},
		"another shape": {func(string) string { return `{"tools":{"a":1}}` }, mcp.Limits{}, ""},
		"slow": {func(string) string {
			time.Sleep(2 * time.Second) // longer than the bound: what is tested is that nobody waits for it
			return `{"tools":[]}`
		}, mcp.Limits{List: 100 * time.Millisecond}, "within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			listing, err := list(t, mcp.Dialer{Limits: test.limits}, page(t, test.list))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, %v; want it to tell %q", listing, err, test.want)
			}
		})
	}
}

func TestWhatTheCatalogueCannotHoldIsLeftOut(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 120) + "1" + strings.Repeat("}", 120)
	listing, err := list(t, mcp.Dialer{}, page(t, func(string) string {
		return `{"tools":[null, {"name":"fine","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false,"title":"Fine"}},
			{"name":"not fine","inputSchema":{}}, {"name":"","inputSchema":{}}, {"name":"раypal","inputSchema":{}}, {"name":"fine","inputSchema":{}},
			{"name":"list","inputSchema":[1]}, {"name":"deep","inputSchema":` + deep + `},
			{"name":"nul","description":"a\u0000b","inputSchema":{}}, {"name":"long","title":"` + strings.Repeat("a", 1025) + `","inputSchema":{}}]}`
	}))
	if err != nil || !slices.Equal(names(listing), []string{"fine"}) || len(listing.LeftOut) != 8 {
		t.Fatalf("%+v, %v", listing, err)
	}
	if f := listing.Functions[0]; f.Title != "Fine" || f.Risk() != catalog.RiskMedium {
		t.Errorf("it is %+v, of risk %s", f, f.Risk())
	}
	for _, l := range listing.LeftOut {
		if strings.IndexFunc(l.Name, func(r rune) bool { return r > 126 }) >= 0 || l.Why == "" {
			t.Errorf("left out: %+v", l)
		}
	}
}

func TestUnreachableAndRedirectingServersAreTold(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with the header %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	redirects := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	t.Setenv("TOOLGRANT_TEST_TOKEN", "secret")
	for name, test := range map[string]struct{ url, want string }{
		"unreachable": {"http://127.0.0.1:1", "connection refused"},
		"silent":      {"http://" + silent.Addr().String(), "within 200ms"},
		"redirecting": {redirects.URL, "redirects to " + elsewhere.URL},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := list(t, mcp.Dialer{Limits: mcp.Limits{Connect: 200 * time.Millisecond}}, &catalog.MCPServer{Transport: catalog.TransportStreamableHTTP,
				Endpoint: test.url, HeadersFromEnv: map[string]string{"Authorization": "TOOLGRANT_TEST_TOKEN"}})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v; want it to tell %q", err, test.want)
			}
		})
	}
}
