package mcp_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/mcp"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// manyServers is a catalogue of servers, each with a tool that is called as it: those that are broken, and maps.
func manyServers(t *testing.T, maps string) string {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, kind := range []string{"honest", "stubborn", "babbling", "garbling", "slow"} {
		t.Setenv("TOOLGRANT_TEST_"+strings.ToUpper(kind), kind)
	}
	t.Setenv("TOOLGRANT_TEST_SECRET", "hidden")
	t.Setenv("TOOLGRANT_TEST_SHARED", "shared")
	var servers, types, tools, names strings.Builder
	add := func(name, rest string) {
		fmt.Fprintf(&servers, "  - {mcp_server_id: %s, %s}\n", name, rest)
		fmt.Fprintf(&types, "  - {tool_type_id: %s, source: TOOL_SOURCE_EXTERNAL_MCP, mcp_server_id: %s, functions: [", name, name)
		for _, function := range []string{"route", "a", "crash", "flood", "hold"} {
			fmt.Fprintf(&types, "{name: %s, risk: TOOL_RISK_LOW}, ", function)
		}
		fmt.Fprintf(&types, "]}\n")
		fmt.Fprintf(&tools, "  - {tool_id: %s, tool_type_id: %s, name: %s, health: {fail_threshold: 100}}\n", name, name, name)
		fmt.Fprintf(&names, "%s, ", name)
	}
	stdio := func(kind string) string {
		events := ""
		if kind == "slow" {
			events = ", EVENTS: TOOLGRANT_TEST_EVENTS"
		}
		return fmt.Sprintf("transport: MCP_TRANSPORT_STDIO, endpoint: %q, headers_from_env: {%s: TOOLGRANT_TEST_%s, SECRET: TOOLGRANT_TEST_SHARED%s}",
			"'"+os.Args[0]+"'", serverVariable, strings.ToUpper(kind), events)
	}
	add("maps", "endpoint: "+maps)
	add("honest", stdio("honest"))
	add("stubborn", stdio("stubborn"))
	add("babbling", stdio("babbling"))
	add("garbling", stdio("garbling"))
	add("slow", stdio("slow"))
	add("silent", "endpoint: http://"+silent.Addr().String())
	add("unreachable", "endpoint: http://127.0.0.1:1")
	return fmt.Sprintf("mcp_servers:\n%stool_types:\n%stools:\n%sgroups: [{group_id: all, grant_tool_ids: [%s]}]\navatars: [{avatar_id: a, tool_ids: [%s]}]\n"+
		"default_avatars: [{avatar_id: a}]\nusers: [{user_id: ann, memberships: [{group_id: all}]}]\n", &servers, &types, &tools, &names, &names)
}

func TestOneBrokenServerDoesNotBlockTheRest(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events")
	t.Setenv("TOOLGRANT_TEST_EVENTS", events)
	url, _, _ := maps(t)
	b := gateway(t, manyServers(t, url), func(o *mcp.GatewayOptions) {
		o.CallTimeout = time.Minute
		o.Pool.Dialer.Limits = mcp.Limits{Connect: 2 * time.Second, MessageBytes: 1 << 20}
	})
	s := b.connect(t, ann, "", nil)
	if got := tools(t, b.ctx, s); len(got) != 40 {
		t.Errorf("it lists %v", got)
	}
	var broken, slow sync.WaitGroup
	slow.Go(func() { // it answers after all others
		if text, _, isError := call(t, b.ctx, s, "slow__hold", nil); isError {
			t.Errorf("the slow one is answered %q", text)
		}
	})
	await(t, b.ctx, "the slow call", func() bool { return told(events, "hold") == 1 })
	for _, name := range []string{"stubborn__a", "babbling__a", "silent__a", "unreachable__a", "garbling__a", "honest__crash", "honest__flood"} {
		broken.Go(func() {
			if text, _, isError := call(t, b.ctx, s, name, nil); !isError || !strings.Contains(text, "cannot be reached, or broke off") {
				t.Errorf("%s: %q", name, text)
			}
		})
	}
	for range 20 { // meanwhile
		if text, _, isError := call(t, b.ctx, s, "maps__route", map[string]any{"to": "Rome"}); isError {
			t.Errorf("a good server is answered %q", text)
		}
	}
	broken.Wait()
	if err := os.WriteFile(events+".release", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	slow.Wait()
	// The one that crashed is started again, with the secrets that its entry names, and no others.
	await(t, b.ctx, "a new process", func() bool {
		text, _, isError := call(t, b.ctx, s, "honest__a", nil)
		return !isError && text == "shared"
	})
	// What broke counts for health, what worked does not.
	health, err := v1.NewCallServiceClient(b.Conn).ListHealth(b.ctx, &v1.ListHealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range health.GetHealth() {
		if name := h.GetMcpServerId(); name != "" && name != "honest" && (h.GetFailuresInARow() > 0) != (name != "maps" && name != "slow") {
			t.Errorf("the health of %s is %v", name, h)
		}
	}
}

// holding is a catalogue with a server that is a child process, a function of which holds until it is released.
func holding(t *testing.T) (manifest, events string) {
	t.Helper()
	events = filepath.Join(t.TempDir(), "events")
	t.Setenv("TOOLGRANT_TEST_EVENTS", events)
	t.Setenv("TOOLGRANT_TEST_HONEST", "honest")
	server := fmt.Sprintf("mcp_servers: [{mcp_server_id: maps, transport: MCP_TRANSPORT_STDIO, endpoint: %q, headers_from_env: {%s: TOOLGRANT_TEST_HONEST, EVENTS: TOOLGRANT_TEST_EVENTS}}]",
		"'"+os.Args[0]+"'", serverVariable)
	_, rest, _ := strings.Cut(strings.Replace(riskyWorld, "{name: route}", "{name: hold, risk: TOOL_RISK_LOW}, {name: pid, risk: TOOL_RISK_LOW}", 1), "tool_types:")
	return server + "\ntool_types:" + rest, events
}

// A call that hangs is given up in time, and the process is told; it can be called again.
func TestACallThatHangsIsGivenUp(t *testing.T) {
	manifest, events := holding(t)
	b := gateway(t, manifest, func(o *mcp.GatewayOptions) { o.CallTimeout = 300 * time.Millisecond })
	s := b.connect(t, ann, "", nil)
	if text, _, isError := call(t, b.ctx, s, "maps__hold", nil); !isError || !strings.Contains(text, "did not answer within 300ms") {
		t.Errorf("it is answered %q", text)
	}
	await(t, b.ctx, "its end", func() bool { return told(events, "cancelled") == 1 })
	await(t, b.ctx, "another call", func() bool {
		_, _, isError := call(t, b.ctx, s, "maps__pid", nil)
		return !isError
	})
	health, err := v1.NewCallServiceClient(b.Conn).ListHealth(b.ctx, &v1.ListHealthRequest{})
	if err != nil || len(health.GetHealth()) == 0 || health.GetHealth()[0].GetScore() == 1 {
		t.Errorf("the server's health is %v, %v", health, err)
	}
}

// Progress and cancellation pass through to and from a process, in both generations of the protocol.
func TestProgressAndCancellationPassThrough(t *testing.T) {
	manifest, events := holding(t)
	b := gateway(t, manifest)
	for i, version := range versions {
		var heard atomic.Pointer[sdk.ProgressNotificationParams]
		s := b.connect(t, ann, version, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			heard.Store(r.Params)
		}})
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() {
			params := &sdk.CallToolParams{Name: "maps__hold"}
			params.SetProgressToken("mine")
			_, err := s.CallTool(ctx, params)
			done <- err
		}()
		await(t, b.ctx, "progress", func() bool { return heard.Load() != nil })
		if p := heard.Load(); p.ProgressToken != "mine" || p.Progress != 1 || p.Total != 2 || p.Message != "half" {
			t.Errorf("%s: it hears %+v", version, p)
		}
		cancel()
		if err := <-done; err == nil {
			t.Errorf("%s: it was answered", version)
		}
		await(t, b.ctx, "the cancellation", func() bool { return told(events, "cancelled") == i+1 })
	}
}

func TestAPoolOpensOneConnectionClosesItAndLeavesAServerAloneForAWhile(t *testing.T) {
	ctx := testkit.Context(t)
	url, _, _ := maps(t)
	pool := mcp.NewPool(mcp.PoolOptions{Backoff: time.Hour})
	good, bad := server("good", url), server("bad", "http://127.0.0.1:1")
	if _, err := pool.Call(ctx, good, "broken", nil, nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := pool.Call(ctx, bad, "broken", nil, nil, nil); err == nil || strings.Contains(err.Error(), "left alone") {
		t.Errorf("the first call: %v", err)
	}
	if _, err := pool.Call(ctx, bad, "broken", nil, nil, nil); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("the next call: %v", err)
	}
	bad.Endpoint = url // the operator corrects it: it is asked at once
	if _, err := pool.Call(ctx, bad, "broken", nil, nil, nil); err != nil {
		t.Error(err)
	}
}
