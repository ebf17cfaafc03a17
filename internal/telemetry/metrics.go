// Package telemetry tells operators what a server does: metrics for Prometheus, and traces by OpenTelemetry.
// The other packages know neither; cmd/server wires them to what is counted and traced.
package telemetry

import (
	"log/slog"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
)

const namespace = "toolgrant"

// goRuntime are the runtime's own metrics that tell what calls cost in memory and in waiting for a processor.
var goRuntime = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/(gc/heap/allocs:.*|gc/heap/live:bytes|sched/latencies:seconds|sched/pauses/total/gc:seconds)$`)}

// Metrics is all metrics of one server. What calls touch is looked up before they come.
type Metrics struct {
	registry  *prometheus.Registry
	calls     *calls
	answers   *answers
	toolCalls *toolCalls
}

// NewMetrics returns metrics of the process, the Go runtime and calls.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(goRuntime)),
		collectors.NewBuildInfoCollector(),
	)
	m.calls = newCalls(m.registry)
	m.answers = newAnswers(m.registry)
	m.toolCalls = newToolCalls(m.registry)
	return m
}

// Expect names the RPCs that will be called: all of them are there from the start, as zeros, so that the
// first call is seen as a change. It must be called before the server serves.
func (m *Metrics) Expect(services map[string]grpc.ServiceInfo) { m.calls.expect(services) }

// Answered counts an answer of ResolveTools: its bytes, and whether it was held in memory.
func (m *Metrics) Answered(bytes int, held bool) { m.answers.count(bytes, held) }

// Handler serves the metrics.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)})
}
