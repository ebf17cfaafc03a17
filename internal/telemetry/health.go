package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolgrant/toolgrant/internal/health"
)

// WatchHealth reads the metrics of breakers off a board's Stats.
func (m *Metrics) WatchHealth(stats func() health.Stats) {
	type s = health.Stats
	all := []reading[s]{
		gauge("health_pending", "Tools and MCP servers about which the other servers are yet to be told.",
			func(s s) float64 { return float64(s.Pending) }),
		gauge("health_outage", "1 while the health of tools cannot be shared, because Redis did not answer; else 0.",
			func(s s) float64 {
				if s.Away {
					return 1
				}
				return 0
			}),
		counter("health_exchanges_total", "How often the health of tools was exchanged with Redis.",
			func(s s) float64 { return float64(s.Exchanges) }),
		counter("health_exchange_failures_total", "How often it could not be.",
			func(s s) float64 { return float64(s.Failures) }),
		counter("health_reports_lost_total", "Reports of calls that do not count for health, because too many tools are known.",
			func(s s) float64 { return float64(s.Lost) }),
	}
	for _, kind := range []string{"tool", "mcp_server"} {
		for _, state := range []health.State{health.Closed, health.Open, health.HalfOpen} {
			at := health.Transition{Kind: kind, To: state}
			all = append(all,
				labelled("breakers", "Breakers of tools and MCP servers that were called in the last 24 hours, by how they stand.",
					prometheus.Labels{"kind": kind, "state": state.String()}, prometheus.GaugeValue, func(s s) float64 { return float64(s.Breakers[at]) }),
				labelled("breaker_changes_total", "Changes of breakers that this server saw, whichever server made them, by what they became; half_open is a probe that was let through.",
					prometheus.Labels{"kind": kind, "to": state.String()}, prometheus.CounterValue, func(s s) float64 { return float64(s.Transitions[at]) }))
		}
	}
	m.registry.MustRegister(readings[s]{stats, all})
}
