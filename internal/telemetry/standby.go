package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolgrant/toolgrant/internal/postgres"
)

// WatchStandby reads the metrics of what a standby is read for.
func (m *Metrics) WatchStandby(stats func() postgres.StandbyStats) {
	type s = postgres.StandbyStats
	reads := func(result string, of func(s) uint64) reading[s] {
		return labelled("standby_reads_total",
			"Reads of users and chats that the standby was asked for: served by it, or left to the primary since it was behind, or failed.",
			prometheus.Labels{"result": result}, prometheus.CounterValue, func(s s) float64 { return float64(of(s)) })
	}
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		reads("served", func(s s) uint64 { return s.Served }),
		reads("behind", func(s s) uint64 { return s.Behind }),
		reads("failed", func(s s) uint64 { return s.Failed }),
	}})
}
