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

// WatchHistory reads the metrics of the history of quotas off its Stats.
func (m *Metrics) WatchHistory(stats func() quota.HistoryStats) {
	type s = quota.HistoryStats
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		gauge("quota_history_waiting", "Sums of a day, user and tool that are not known to be in the database yet.",
			func(s s) float64 { return float64(s.Waiting) }),
		gauge("quota_history_age_seconds", "Seconds since all that was used before was written to the database.",
			func(s s) float64 { return s.Age.Seconds() }),
		counter("quota_history_lost_calls_total", "Calls that were used and are missing in the history, since too many different users and tools waited for the database.",
			func(s s) float64 { return float64(s.Lost.Calls) }),
		counter("quota_history_lost_tokens_total", "Tokens that were used and are missing in the history, for the same reason.",
			func(s s) float64 { return float64(s.Lost.Tokens) }),
	}})
}

// WatchArchive reads the metrics of the copies of counters in the database: how many counters wait to be written, and how
// many changes were dropped because too many did.
func (m *Metrics) WatchArchive(stats func() (waiting int, dropped uint64)) {
	type s struct{ waiting, dropped float64 }
	take := func() s { waiting, dropped := stats(); return s{float64(waiting), float64(dropped)} }
	m.registry.MustRegister(readings[s]{take, []reading[s]{
		gauge("quota_archive_waiting", "Counters over an hour or more that changed and are not in the database yet.",
			func(s s) float64 { return s.waiting }),
		counter("quota_archive_dropped_total", "Changes of counters that will not be in the database before the counter changes again, since too many waited.",
			func(s s) float64 { return s.dropped }),
	}})
}
