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
		gauge("embedding_tools", "Shared tools that have a vector in memory.", func(s s) float64 { return float64(s.Vectors) }),
		gauge("embedding_waiting", "Texts of shared tools that have no vector yet.", func(s s) float64 { return float64(s.Waiting) }),
		gauge("embedding_private_tools", "Private tools that have a vector in memory.", func(s s) float64 { return float64(s.Private) }),
		gauge("embedding_private_owners", "Users whose private tools have vectors in memory.", func(s s) float64 { return float64(s.Owners) }),
		counter("embedding_loaded_total", "Vectors of tools that were read from PostgreSQL.", func(s s) float64 { return float64(s.Loaded) }),
		counter("embedding_broken_total", "Vectors that were found in PostgreSQL, are none, and were deleted.", func(s s) float64 { return float64(s.Broken) }),
		counter("embedding_texts_total", "Texts of tools that the model made vectors of.", func(s s) float64 { return float64(s.Made) }),
		counter("embedding_texts_failed_total", "Texts of tools that it was asked about in vain.", func(s s) float64 { return float64(s.Unmade) }),
		counter("embedding_store_failures_total", "Questions about vectors to PostgreSQL that failed.", func(s s) float64 { return float64(s.StoreFailures) }),
		counter("embedding_queries_total", "Searches whose vector was asked for.", func(s s) float64 { return float64(s.Asked) }),
		counter("embedding_queries_remembered_total", "Searches whose vector was known.", func(s s) float64 { return float64(s.Remembered) }),
		counter("embedding_queries_failed_total", "Searches that went on without a vector that was asked for.", func(s s) float64 { return float64(s.Failed) }),
	}})
}
