package grpcserver_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

const clockwork = "Please: what time is it now, by the clock?"

// The fast path needs all of it: the task, an effective tool of LOW risk whose preconditions hold, that is healthy and
// sure enough, and mode V2.
func TestFastPathNeedsAllOfIt(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	declared := []string{"what time is it"}
	update := func(tool *v1.Tool, path string) {
		t.Helper()
		tool.ToolId = "now"
		if _, err := f.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: tool, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}}); err != nil {
			t.Fatal(err)
		}
	}
	fast := func(what string, want bool) {
		t.Helper()
		if p := f.search(searchBy("ann", clockwork)); (p.GetFastPath() != nil) != want {
			t.Errorf("%s: %v", what, p)
		}
	}
	fast("all holds", true)
	update(&v1.Tool{Risk: v1.ToolRisk_TOOL_RISK_MEDIUM}, "risk")
	fast("risk MEDIUM", false)
	update(&v1.Tool{Risk: v1.ToolRisk_TOOL_RISK_LOW}, "risk")
	update(&v1.Tool{}, "core")
	fast("off", false)
	update(&v1.Tool{Core: true}, "core")
	update(&v1.Tool{Capability: &v1.Capability{DeterministicFor: declared, Requires: []string{"model.image_input"}}}, "capability")
	fast("a precondition that does not hold", false)
	update(&v1.Tool{Capability: &v1.Capability{DeterministicFor: []string{"what year is it"}}}, "capability")
	fast("another task", false)
	update(&v1.Tool{Capability: &v1.Capability{DeterministicFor: declared}}, "capability")
	fast("all holds again", true)
	if _, err := f.discovery.SetRoutingMode(ctx, &v1.SetRoutingModeRequest{Mode: hybrid}); err != nil {
		t.Fatal(err)
	}
	fast("mode HYBRID", false)
	if _, err := f.discovery.SetRoutingMode(ctx, &v1.SetRoutingModeRequest{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.node.Health.Report(health.Subject{Tool: "now"}, health.Report{Call: id.Call(fmt.Sprint(i)), Outcome: health.Unreachable})
	}
	fast("put aside", false)

	settings := finder.DefaultSettings()
	settings.FastPathThreshold = 1
	n := node.Start(t, f.url, node.Options{Discovery: grpcserver.DiscoveryOptions{Settings: settings}})
	sure := &finding{t, clientOf(n.Conn, f.url), v1.NewDiscoveryServiceClient(n.Conn), n}
	if p := sure.search(searchBy("ann", clockwork)); p.GetFastPath() != nil || len(p.GetMatches()) == 0 {
		t.Errorf("not sure enough: %v", p)
	}
}
