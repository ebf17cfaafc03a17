package telemetry

import "github.com/prometheus/client_golang/prometheus"

// answers counts what ResolveTools answers.
type answers struct {
	held, made prometheus.Counter
	bytes      prometheus.Histogram
}

func newAnswers(registry prometheus.Registerer) *answers {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "resolve_answers_total",
		Help: `Answers of ResolveTools: "held" ones were in memory already, "made" ones took the rules and encoding. Few held ones mean that questions differ, facts change, or cache_bytes is too small.`},
		[]string{"answer"})
	bytes := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "resolve_answer_bytes",
		Help:    "Encoded size of the answers of ResolveTools. Large ones cost network and memory: callers may do with a smaller view, chats with fewer tools.",
		Buckets: prometheus.ExponentialBuckets(256, 4, 9)}) // 256 B to 16 MiB
	registry.MustRegister(total, bytes)
	return &answers{held: total.WithLabelValues("held"), made: total.WithLabelValues("made"), bytes: bytes}
}

func (a *answers) count(bytes int, held bool) {
	if held {
		a.held.Inc()
	} else {
		a.made.Inc()
	}
	a.bytes.Observe(float64(bytes))
}
