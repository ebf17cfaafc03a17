package replica

import "time"

// Stats is how a replica does. Counts are since the start; those of the cache, since changes were last lost.
type Stats struct {
	Age                             time.Duration // since all that was committed was known
	Polls, FailedPolls, LostChanges uint64
	CacheHits, Loads, FailedLoads   uint64
	Evictions                       uint64
	CacheEntries                    int
	CacheBytes                      uint64 // as estimated
	Watchers                        int
}

// Stats returns how the replica does.
func (r *Replica) Stats() Stats {
	s := r.state.Load()
	cache := s.facts.stats.Snapshot()
	r.watchers.mu.Lock()
	watchers := r.watchers.count
	r.watchers.mu.Unlock()
	return Stats{
		Age:   time.Since(s.asOf),
		Polls: r.polls.sent.Load(), FailedPolls: r.polls.failed.Load(), LostChanges: r.polls.lost.Load() - 1,
		CacheHits: cache.Hits, Loads: cache.Loads(), FailedLoads: cache.LoadFailures, Evictions: cache.Evictions,
		CacheEntries: s.facts.cache.EstimatedSize(), CacheBytes: s.facts.cache.WeightedSize(),
		Watchers: watchers,
	}
}
