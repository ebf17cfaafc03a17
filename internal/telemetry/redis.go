package telemetry

import "github.com/redis/go-redis/v9"

// WatchRedis reads the metrics of the client of Redis: how many commands there were since the start, how many of them
// failed, and the counts of its connections.
func (m *Metrics) WatchRedis(stats func() (commands, failures uint64, pool *redis.PoolStats)) {
	type s struct {
		commands, failures uint64
		pool               *redis.PoolStats
	}
	take := func() s { commands, failures, pool := stats(); return s{commands, failures, pool} }
	m.registry.MustRegister(readings[s]{take, []reading[s]{
		counter("redis_commands_total", "Commands that Redis was asked, scripts among them.",
			func(s s) float64 { return float64(s.commands) }),
		counter("redis_command_failures_total", "Commands that were not answered in time, or with an error.",
			func(s s) float64 { return float64(s.failures) }),
		gauge("redis_connections", "Connections to Redis, used or not, without subscriptions; in a Cluster, to all nodes.",
			func(s s) float64 { return float64(s.pool.TotalConns) }),
		gauge("redis_connections_idle", "Those that no command uses now.",
			func(s s) float64 { return float64(s.pool.IdleConns) }),
		counter("redis_connections_stale_total", "Connections that were closed since they broke or were too old.",
			func(s s) float64 { return float64(s.pool.StaleConns) }),
		counter("redis_pool_hits_total", "How often a connection was free.",
			func(s s) float64 { return float64(s.pool.Hits) }),
		counter("redis_pool_misses_total", "How often none was free, and it took waiting or a new one.",
			func(s s) float64 { return float64(s.pool.Misses) }),
		counter("redis_pool_timeouts_total", "How often none became free in time.",
			func(s s) float64 { return float64(s.pool.Timeouts) }),
	}})
}
