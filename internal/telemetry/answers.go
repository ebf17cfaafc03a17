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

// WatchAnswers reads the metrics of the cache of answers off its size.
func (m *Metrics) WatchAnswers(size func() (entries int, bytes, evictions uint64)) {
	type s struct {
		entries          int
		bytes, evictions uint64
	}
	m.registry.MustRegister(readings[s]{func() (now s) { now.entries, now.bytes, now.evictions = size(); return now }, []reading[s]{
		gauge("answer_cache_entries", "Encoded answers in memory.",
			func(s s) float64 { return float64(s.entries) }),
		gauge("answer_cache_bytes", "Memory of the encoded answers in memory, as estimated. At most half of cache_bytes.",
			func(s s) float64 { return float64(s.bytes) }),
		counter("answer_cache_evictions_total", "Answers dropped for lack of room. If this grows as fast as made answers, cache_bytes is too small for those who are active.",
			func(s s) float64 { return float64(s.evictions) }),
	}})
}
