package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// WatchSearches reads what is recorded of searches off a log's Stats.
func (m *Metrics) WatchSearches(stats func() learning.LogStats) {
	type s = learning.LogStats
	all := []reading[s]{
		counter("discovery_lost_total", "Searches and narrowings that are not recorded, since too many waited for the database.",
			func(s s) float64 { return float64(s.Lost) }),
	}
	for _, kind := range []learning.Kind{learning.KindSearch, learning.KindNarrowing} {
		for _, mode := range routing.Modes() {
			of := learning.Recorded{Kind: kind, Mode: mode}
			all = append(all, labelled("discovery_recorded_total", "Searches, and narrowings of large effective sets, by the user's routing mode; in hybrid, those in the shadow.",
				prometheus.Labels{"kind": strings.ToLower(string(kind)), "mode": strings.ToLower(string(mode))}, prometheus.CounterValue,
				func(s s) float64 { return float64(s.Recorded[of]) }))
		}
	}
	m.registry.MustRegister(readings[s]{stats, all})
}

// WatchShadow reads what became of jobs in the shadow off its Stats.
func (m *Metrics) WatchShadow(stats func() routing.ShadowStats) {
	type s = routing.ShadowStats
	const name, help = "discovery_shadow_total", "What was to be worked out in the shadow, by what became of it; dropped: too much waited."
	became := func(what string, of func(s) uint64) reading[s] {
		return labelled(name, help, prometheus.Labels{"result": what}, prometheus.CounterValue, func(s s) float64 { return float64(of(s)) })
	}
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		became("done", func(s s) uint64 { return s.Done }),
		became("failed", func(s s) uint64 { return s.Failed }),
		became("dropped", func(s s) uint64 { return s.Dropped }),
		gauge("discovery_shadow_waiting", "What waits to be worked out in the shadow.", func(s s) float64 { return float64(s.Waiting) }),
	}})
}
