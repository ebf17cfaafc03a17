package mcp_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// try connects, and listens for changes.
func (b bundle) try(user, version string) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}})
	return client.Connect(b.ctx, &sdk.StreamableClientTransport{Endpoint: b.url, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: as{"toolgrant-user": user, "toolgrant-chat": "c"}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
}

// listens opens a stream of changes, and tells whether that was acknowledged.
func (b bundle) listens(t *testing.T, user string) (stop func(), acknowledged bool) {
	t.Helper()
	ctx, stop := context.WithCancel(b.ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "subscriptions/listen", "Toolgrant-User": user, "Toolgrant-Chat": "c"} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.Contains(line, "notifications/subscriptions/acknowledged"):
			return stop, true
		case strings.Contains(line, "too many sessions"):
			stop()
			return stop, false
		}
	}
	t.Fatal("the stream ended before it began")
	return nil, false
}

// What clients keep open is bounded, for each user and in all; what is closed makes room. Each kind has a gateway of its
// own: nobody tells when what a client closed is gone there.
func TestSessionsAreBounded(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	bundle{Node: n, ctx: testkit.Context(t)}.apply(t, "users: [{user_id: ann}, {user_id: bob}, {user_id: cyd}]")
	limited := func(t *testing.T) bundle {
		return gatewayBefore(t, n, func(o *mcp.GatewayOptions) { o.Sessions, o.SessionsPerUser = 3, 2 })
	}
	bounded := func(t *testing.T, open func(b bundle, user string) (stop func(), opened bool)) {
		b := limited(t)
		var stops []func()
		defer func() {
			for _, stop := range stops {
				stop()
			}
		}()
		opens := func(user string) bool {
			stop, opened := open(b, user)
			if opened {
				stops = append(stops, stop)
			}
			return opened
		}
		for _, user := range []string{"ann", "ann", "bob"} {
			if !opens(user) {
				t.Fatalf("no room for %s", user)
			}
		}
		for _, user := range []string{"ann", "cyd"} {
			if opens(user) {
				t.Errorf("%s may open one more", user)
			}
		}
		stops[0]()
		await(t, b.ctx, "room", func() bool { return opens("cyd") })
	}
	t.Run("sessions", func(t *testing.T) {
		bounded(t, func(b bundle, user string) (func(), bool) {
			s, err := b.try(user, "2025-11-25")
			if err != nil && !strings.Contains(err.Error(), "Too Many Requests") {
				t.Errorf("%s: %v", user, err)
			}
			return func() { _ = s.Close() }, err == nil
		})
	})
	t.Run("streams", func(t *testing.T) {
		bounded(t, func(b bundle, user string) (func(), bool) { return b.listens(t, user) })
	})
	t.Run("requests that open nothing take no room", func(t *testing.T) {
		b := limited(t)
		for range 5 {
			response, err := (&http.Client{Transport: as{"toolgrant-user": "bob", "toolgrant-chat": "c"}}).Post(b.url, "text/plain", nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusTooManyRequests {
				t.Error("what opens nothing takes room")
			}
		}
	})
}

func TestIdleSessionsAreClosed(t *testing.T) {
	b := gateway(t, "users: [{user_id: ann}]", func(o *mcp.GatewayOptions) { o.SessionsPerUser, o.SessionTimeout = 1, 50*time.Millisecond })
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	idle, err := client.Connect(b.ctx, &sdk.StreamableClientTransport{Endpoint: b.url, MaxRetries: -1, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: as{"toolgrant-user": "ann", "toolgrant-chat": "c"}}}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	await(t, b.ctx, "room", func() bool {
		s, err := b.try("ann", "2025-11-25")
		if err == nil {
			_ = s.Close()
		}
		return err == nil
	})
}
