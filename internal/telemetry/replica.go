package telemetry

import "github.com/toolgrant/toolgrant/internal/replica"

// WatchReplica reads the metrics of a replica off its Stats.
func (m *Metrics) WatchReplica(stats func() replica.Stats) {
	type s = replica.Stats
	m.registry.MustRegister(readings[s]{stats, []reading[s]{
		gauge("replica_age_seconds", "How old the newest known state of the database is. Above max_staleness, questions wait or fail, or are answered as stale.",
			func(s s) float64 { return s.Age.Seconds() }),
		counter("replica_polls_total", "How often the database was asked what changed.",
			func(s s) float64 { return float64(s.Polls) }),
		counter("replica_poll_failures_total", "How often it could not be asked. If this grows, the database cannot be reached or is too slow.",
			func(s s) float64 { return float64(s.FailedPolls) }),
		counter("replica_changes_lost_total", "How often the changes could not be told any more, and all users and chats were forgotten. If this grows, changes_retention is too short.",
			func(s s) float64 { return float64(s.LostChanges) }),
		counter("replica_cache_hits_total", "Users and chats found in memory. Begins again at zero when changes were lost, as all of the cache's counts do.",
			func(s s) float64 { return float64(s.CacheHits) }),
		counter("replica_cache_loads_total", "How often users and chats were loaded from the database, a user with a chat as one load.",
			func(s s) float64 { return float64(s.Loads) }),
		counter("replica_cache_load_failures_total", "Loads that failed: their questions failed too.",
			func(s s) float64 { return float64(s.FailedLoads) }),
		counter("replica_cache_evictions_total", "Users and chats dropped for lack of room. If this grows as fast as loads, cache_bytes is too small for those who are active.",
			func(s s) float64 { return float64(s.Evictions) }),
		gauge("replica_cache_entries", "Users and chats in memory.",
			func(s s) float64 { return float64(s.CacheEntries) }),
		gauge("replica_cache_bytes", "Memory of the users and chats in memory, as estimated. At most half of cache_bytes.",
			func(s s) float64 { return float64(s.CacheBytes) }),
		gauge("watchers", "Open streams of WatchTools.",
			func(s s) float64 { return float64(s.Watchers) }),
	}})
}
