package telemetry_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/routing"
	"github.com/toolgrant/toolgrant/internal/telemetry"
)

func TestReportsAreMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	m.WatchReports(func() []learning.Report {
		return []learning.Report{{Mode: routing.Hybrid, Narrowings: 2, LeftOut: .75, Routed: 8, Top1: 2, Top3: 4, Missed: 1}, {Mode: routing.V2, Searches: 5, Retries: 3,
			Enabled: 4, Unused: 1, Calls: 10, Failed: 2, Turns: 4}}
	})
	response := httptest.NewRecorder()
	m.Handler(slog.Default()).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`route_top1_hit{mode="hybrid"} 0.25`, `route_top3_hit{mode="hybrid"} 0.5`, `missed_rate{mode="hybrid"} 0.125`, `shadow_difference 0.75`,
		`search_retry_count{mode="v2"} 3`, `enable_unused_rate{mode="v2"} 0.25`, `tool_call_error_rate{mode="v2"} 0.2`, `average_tool_steps{mode="v2"} 2.5`,
		`route_top1_hit{mode="v2"} NaN`, `route_top1_hit{mode="legacy"} NaN`} {
		if !strings.Contains(response.Body.String(), "\ntoolgrant_discovery_"+want+"\n") {
			t.Errorf("without %s", want)
		}
	}
}
