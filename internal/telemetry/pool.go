package telemetry

import "github.com/jackc/pgx/v5/pgxpool"

// WatchPool reads the metrics of the connections to the database off the pool's own counts.
func (m *Metrics) WatchPool(stat func() *pgxpool.Stat) {
	type s = *pgxpool.Stat
	m.registry.MustRegister(readings[s]{stat, []reading[s]{
		gauge("postgres_connections", "Connections to PostgreSQL, used or not.",
			func(s s) float64 { return float64(s.TotalConns()) }),
		gauge("postgres_connections_used", "Connections that a statement or a transaction holds now.",
			func(s s) float64 { return float64(s.AcquiredConns()) }),
		gauge("postgres_connections_max", "How many connections there may be: pool_max_conns of database_url.",
			func(s s) float64 { return float64(s.MaxConns()) }),
		counter("postgres_connections_opened_total", "Connections opened. If this grows all the time, connections break or are closed.",
			func(s s) float64 { return float64(s.NewConnsCount()) }),
		counter("postgres_acquires_total", "How often a connection was taken for a statement or a transaction.",
			func(s s) float64 { return float64(s.AcquireCount()) }),
		counter("postgres_acquire_waits_total", "How often none was free, and it took waiting or a new one.",
			func(s s) float64 { return float64(s.EmptyAcquireCount()) }),
		counter("postgres_acquire_wait_seconds_total", "How long that took. If this grows by more than a second per second, calls queue for connections.",
			func(s s) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
		counter("postgres_acquires_canceled_total", "How often a caller gave up before there was a connection.",
			func(s s) float64 { return float64(s.CanceledAcquireCount()) }),
	}})
}
