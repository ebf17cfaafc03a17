package telemetry

import "github.com/toolgrant/toolgrant/internal/quota"

// WatchQuotas reads the metrics of quotas off a gate's Stats.
func (m *Metrics) WatchQuotas(stats func() quota.GateStats) {
	type s = quota.GateStats
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		counter("quota_admitted_total", "Operations that took or reserved units.",
			func(s s) float64 { return float64(s.Admitted) }),
		counter("quota_denied_total", "Operations that a rule denied.",
			func(s s) float64 { return float64(s.Denied) }),
		counter("quota_decided_by_outage_total", "Operations about which on_outage decided, ALLOW or LOCAL_SHARE, because counters could not be reached.",
			func(s s) float64 { return float64(s.ByOutage) }),
		counter("quota_unavailable_total", "Operations that were not decided, because counters could not be reached and a rule's on_outage is DENY.",
			func(s s) float64 { return float64(s.Unavailable) }),
		counter("quota_near_limit_total", "Operations that were admitted when warn_at of a limit was reached.",
			func(s s) float64 { return float64(s.Near) }),
		counter("quota_shadow_exceeded_total", "Operations that were admitted over the limit of a shadow rule.",
			func(s s) float64 { return float64(s.ShadowOver) }),
		gauge("quota_outage", "1 while Redis is not asked about quotas, because it did not answer, but for a request now and then; else 0.",
			func(s s) float64 {
				if s.Outage {
					return 1
				}
				return 0
			}),
	}})
}
