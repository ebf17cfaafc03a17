package main

import (
	"context"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// metrics is what a server's /metrics told, by name.
type metrics map[string]*dto.MetricFamily

func scrape(t *testing.T, address string) metrics {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %v", response.StatusCode, err)
	}
	return families
}

// of is the value of a metric with these values among those of its labels; of a histogram, how often it
// observed. -1: there is none.
func (m metrics) of(name string, labels ...string) float64 {
	for _, metric := range m[name].GetMetric() {
		var values []string
		for _, label := range metric.GetLabel() {
			values = append(values, label.GetValue())
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(values, l) }) {
			continue
		}
		if h := metric.GetHistogram(); h != nil {
			return float64(h.GetSampleCount())
		}
		return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() // one of them
	}
	return -1
}

func TestMetricsTellWhatWasCalled(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	// No answer is so late that it is made twice. The database is no standby of itself and nobody answers about models, but
	// that they are set makes the server have all metrics that there are.
	url, nobody := testkit.Database(t), "http://"+freeAddress(t)+"/"
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_STANDBY_URL="+url, "TOOLGRANT_EMBEDDING_URL="+nobody,
		"TOOLGRANT_EMBEDDING_MODEL=none", "TOOLGRANT_RERANKER_URL="+nobody, "TOOLGRANT_MAX_STALENESS=1m")
	server.start()
	server.awaitReady()
	c := server.connect()
	before := scrape(t, server.web)
	if got := before.of("toolgrant_rpc_calls_total", "toolgrant.v1.EntitlementService", "ResolveTools", "OK"); got != 0 {
		t.Errorf("before the first call, the calls of ResolveTools: %g", got)
	}
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	const calls = 7
	for range calls {
		if _, err := resolve(ctx, c, "chat"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "chat", UserId: "nobody", Surface: web}); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	if _, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := c.WatchTools(watching, &v1.WatchToolsRequest{ChatId: "chat", UserId: "u", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}

	m := scrape(t, server.web)
	for _, want := range []struct {
		value  float64
		name   string
		labels []string
	}{
		{calls, "toolgrant_rpc_calls_total", []string{"ResolveTools", "OK"}},
		{1, "toolgrant_rpc_calls_total", []string{"ResolveTools", "NotFound"}},
		{1, "toolgrant_rpc_calls_total", []string{"ResolveTools", "InvalidArgument"}},
		{1, "toolgrant_rpc_calls_total", []string{"ApplyManifest", "OK"}},
		{0, "toolgrant_rpc_calls_total", []string{"ExplainTool", "OK"}},
		{calls + 2, "toolgrant_rpc_duration_seconds", []string{"ResolveTools"}},
		{1, "toolgrant_resolve_answers_total", []string{"made"}},
		{calls - 1, "toolgrant_resolve_answers_total", []string{"held"}},
		{calls, "toolgrant_resolve_answer_bytes", nil},
		{2, "toolgrant_replica_cache_entries", nil},
		{1, "toolgrant_watchers", nil},
	} {
		if got := m.of(want.name, want.labels...); got != want.value {
			t.Errorf("%s %v: %g, not %g", want.name, want.labels, got, want.value)
		}
	}
	for _, name := range []string{"toolgrant_replica_polls_total", "toolgrant_replica_cache_hits_total", "toolgrant_replica_cache_loads_total",
		"toolgrant_replica_cache_bytes", "toolgrant_replica_age_seconds", "toolgrant_postgres_connections", "toolgrant_postgres_acquires_total",
		"go_gc_heap_allocs_objects_total", "go_gc_heap_allocs_bytes_total", "go_goroutines", "process_resident_memory_bytes"} {
		if got := m.of(name); got <= 0 {
			t.Errorf("%s: %g", name, got)
		}
	}

	stop()
	await(t, "the stream is counted as ended", func() bool {
		m := scrape(t, server.web)
		return m.of("toolgrant_watchers") == 0 && m.of("toolgrant_rpc_calls_total", "WatchTools", "Canceled") == 1
	})

	documentation, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(toolgrant_[a-z0-9_]+)").FindAllSubmatch(documentation, -1) {
		documented = append(documented, string(match[1]))
	}
	slices.Sort(documented)
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return !strings.HasPrefix(name, "toolgrant_") })
	if !slices.Equal(own, documented) {
		t.Errorf("the server has the metrics %v,\nand its documentation %v", own, documented)
	}
}
