package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestHealth(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	o := operator{testkit.Context(t), n.Address}
	for range 3 {
		n.Health.Report(health.Subject{Server: "maps"}, health.Report{Outcome: health.Timeout})
	}
	n.Health.Report(health.Subject{Tool: "search"}, health.Report{Outcome: health.Success, Latency: 1234567})
	table := o.run(t, "", "health")
	for _, want := range []string{`server +│ +maps +│ +open +│ 0\.73 +│ +3 +│ +│ in 1m\d+s +│ \d+s ago`, `tool +│ +search +│ +closed +│ 1\.00 +│ +0 +│ +1ms +│ +│ \d+s ago`} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("got\n%s\nwithout %s", table, want)
		}
	}
	if failing := o.run(t, "", "health", "--failing"); !strings.Contains(failing, "maps") || strings.Contains(failing, "search") {
		t.Errorf("got\n%s", failing)
	}
	if json := o.run(t, "", "health", "-o", "json"); !strings.Contains(json, `"breaker": "BREAKER_STATE_OPEN"`) || !strings.Contains(json, `"tool_id": "search"`) {
		t.Errorf("got\n%s", json)
	}
	if yaml := o.run(t, "", "health", "-o", "yaml"); !strings.Contains(yaml, "mcp_server_id: maps") {
		t.Errorf("got\n%s", yaml)
	}
}
