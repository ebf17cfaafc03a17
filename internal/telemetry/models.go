package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolgrant/toolgrant/internal/inference"
	"github.com/toolgrant/toolgrant/internal/meaning"
)

// WatchEndpoint reads the metrics of a model's endpoint, embedding or reranker, off its Stats.
func (m *Metrics) WatchEndpoint(name string, stats func() inference.Stats) {
	type s = inference.Stats
	labels := prometheus.Labels{"endpoint": name}
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		labelled("model_requests_total", "Requests to the endpoint of a model.", labels, prometheus.CounterValue,
			func(s s) float64 { return float64(s.Requests) }),
		labelled("model_failures_total", "Requests to it that failed, or were answered too late or not well.", labels, prometheus.CounterValue,
			func(s s) float64 { return float64(s.Failures) }),
		labelled("model_left_alone_total", "Questions that it was not asked, because it kept failing.", labels, prometheus.CounterValue,
			func(s s) float64 { return float64(s.LeftAlone) }),
		labelled("model_seconds_total", "How long requests to it took together.", labels, prometheus.CounterValue,
			func(s s) float64 { return s.Seconds }),
		labelled("model_open", "1 while it is left alone; else 0.", labels, prometheus.GaugeValue,
			func(s s) float64 {
				if s.Open {
					return 1
				}
				return 0
			}),
	}})
}

// WatchMeaning reads the metrics of vectors off a keeper's Stats.
func (m *Metrics) WatchMeaning(stats func() meaning.Stats) {
	type s = meaning.Stats
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		gauge("embedding_tools", "Tools that have a vector.", func(s s) float64 { return float64(s.Vectors) }),
		gauge("embedding_waiting", "Tools whose vector is yet to be made.", func(s s) float64 { return float64(s.Waiting) }),
		counter("embedding_queries_total", "Searches whose vector was asked for.", func(s s) float64 { return float64(s.Asked) }),
		counter("embedding_queries_remembered_total", "Searches whose vector was known.", func(s s) float64 { return float64(s.Remembered) }),
		counter("embedding_queries_failed_total", "Searches that went on without a vector that was asked for.", func(s s) float64 { return float64(s.Failed) }),
	}})
}
