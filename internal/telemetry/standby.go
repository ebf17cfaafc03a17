package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WatchStandby reads the metrics of what a standby is read for.
func (m *Metrics) WatchStandby(stats func() (served, behind, failed uint64)) {
	type counts struct{ served, behind, failed uint64 }
	reads := func(result string, of func(counts) uint64) reading[counts] {
		return labelled("standby_reads_total",
			"Reads of users and chats that the standby was asked for: served by it, or left to the primary since it was behind, or failed.",
			prometheus.Labels{"result": result}, prometheus.CounterValue, func(c counts) float64 { return float64(of(c)) })
	}
	all := func() (c counts) {
		c.served, c.behind, c.failed = stats()
		return c
	}
	m.registry.MustRegister(readings[counts]{all, []reading[counts]{
		reads("served", func(c counts) uint64 { return c.served }),
		reads("behind", func(c counts) uint64 { return c.behind }),
		reads("failed", func(c counts) uint64 { return c.failed }),
	}})
}
