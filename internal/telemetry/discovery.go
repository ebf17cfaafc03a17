package telemetry

import (
	"math"
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

// WatchReports reads how well tools are found off the latest reports. A rate is missing (NaN) where there is nothing to
// divide by.
func (m *Metrics) WatchReports(latest func() []learning.Report) {
	type s = map[routing.Mode]*learning.Report
	var all []reading[s]
	for _, mode := range routing.Modes() {
		add := func(name, help string, of func(*learning.Report) (float64, bool)) {
			all = append(all, labelled("discovery_"+name, help+" In the last hour, by routing mode, from the database: every server tells the same.",
				prometheus.Labels{"mode": strings.ToLower(string(mode))}, prometheus.GaugeValue, func(s s) float64 {
					if r := s[mode]; r != nil {
						if value, ok := of(r); ok {
							return value
						}
					}
					return math.NaN()
				}))
		}
		add("route_top1_hit", "The share of routed calls that were of the tool that was found first.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Top1, r.Routed) })
		add("route_top3_hit", "The share of routed calls that were of one of the three tools that were found first.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Top3, r.Routed) })
		add("missed_rate", "The share of routed calls that were of tools that a narrowing left out; in hybrid, would have.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Missed, r.Routed) })
		add("search_retry_count", "Searches that were in vain, and tried again.", func(r *learning.Report) (float64, bool) { return float64(r.Retries), true })
		add("enable_unused_rate", "The share of the tools turned on after a search that were not called.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Unused, r.Enabled) })
		add("tool_call_error_rate", "The share of calls that failed.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Failed, r.Calls) })
		add("average_tool_steps", "Calls by turns with calls.", func(r *learning.Report) (float64, bool) { return learning.Rate(r.Calls, r.Turns) })
	}
	all = append(all, gauge("discovery_shadow_difference", "The share of the effective tools that V2 would have left out, on average over narrowings in the shadow. In the last hour, from the database: every server tells the same.",
		func(s s) float64 {
			if r := s[routing.Hybrid]; r != nil && r.Narrowings > 0 {
				return r.LeftOut
			}
			return math.NaN()
		}))
	m.registry.MustRegister(readings[s]{func() s {
		byMode := s{}
		for _, r := range latest() {
			byMode[r.Mode] = &r
		}
		return byMode
	}, all})
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
