package grpcserver_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestListHealth(t *testing.T) {
	url, redis := testkit.Database(t), testkit.Redis(t)
	n, other := node.Start(t, url, node.Options{Redis: redis}), node.Start(t, url, node.Options{Redis: redis})
	ctx, c := testkit.Context(t), clientOf(n.Conn, url)
	c.apply(ctx, t, company)
	c.apply(ctx, t, `
tool_types: [{tool_type_id: fragile, source: TOOL_SOURCE_NATIVE, tool_class: X}]
tools: [{tool_id: glass, tool_type_id: fragile, name: glass, title: Glass, health: {fail_threshold: 1, cooldown_ms: 3600000}}]`)
	calls := v1.NewCallServiceClient(n.Conn)
	first, err := calls.ListHealth(ctx, &v1.ListHealthRequest{})
	if err != nil || len(first.GetHealth()) != 0 {
		t.Fatalf("before the first call: %v, %v", first, err)
	}
	glass, server := health.Subject{Tool: "glass"}, health.Subject{Server: "maps"}
	other.Health.Report(server, health.Report{Call: "1", Outcome: health.Success, Latency: 200 * time.Millisecond})
	n.Health.Report(health.Subject{Tool: "a"}, health.Report{Call: "2", Outcome: health.Timeout})
	n.Health.Report(glass, health.Report{Call: "3", Outcome: health.Unreachable}) // its own threshold
	var all []*v1.Health
	for len(all) < 3 { // the other node's report is on its way
		if ctx.Err() != nil {
			t.Fatalf("never three: %v", all)
		}
		all = nil
		for token := ""; ; {
			page, err := calls.ListHealth(ctx, &v1.ListHealthRequest{PageSize: 1, PageToken: token})
			if err != nil || len(page.GetHealth()) > 1 {
				t.Fatal(page, err)
			}
			all = append(all, page.GetHealth()...)
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
	}
	m, a, g := all[0], all[1], all[2]
	if m.GetMcpServerId() != "maps" || m.GetScore() != 1 || m.GetLatency().AsDuration() != 200*time.Millisecond || m.GetReportTime() == nil ||
		m.GetBreaker() != v1.BreakerState_BREAKER_STATE_CLOSED || m.GetRetryTime() != nil || m.GetLocal() {
		t.Errorf("%v", m)
	}
	if a.GetToolId() != "a" || a.GetBreaker() != v1.BreakerState_BREAKER_STATE_CLOSED || a.GetFailuresInARow() != 1 || a.GetScore() >= 1 || a.GetLatency() != nil {
		t.Errorf("%v", a)
	}
	if d := g.GetRetryTime().AsTime().Sub(g.GetReportTime().AsTime()); g.GetToolId() != "glass" || g.GetBreaker() != v1.BreakerState_BREAKER_STATE_OPEN ||
		d < time.Hour || d > 72*time.Minute {
		t.Errorf("%v: a cool-down of %v", g, d)
	}
	_, err = calls.ListHealth(ctx, &v1.ListHealthRequest{PageToken: "x"})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a token of nobody's: %v", err)
	}
}
