package routing

import (
	"errors"
	"log/slog"
	"sync"
)

// maxShadowed is how many jobs wait at most.
const maxShadowed = 256

var errPanicked = errors.New("it panicked")

// Shadow does jobs that nobody waits for, one after the other, in the order in which they came. So they take one
// processor at most from those who are waited for. When too many wait, others are dropped, and counted.
type Shadow struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []func() error
	running bool
	stats   ShadowStats
}

// ShadowStats is what became of jobs.
type ShadowStats struct {
	Done    uint64
	Failed  uint64
	Dropped uint64 // there was no room for them
	Waiting int    // one that is being done not counted
}

// NewShadow returns an idle shadow.
func NewShadow(log *slog.Logger) *Shadow { return &Shadow{log: log} }

// Do has a job done some time. It never waits.
func (s *Shadow) Do(job func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxShadowed {
		s.stats.Dropped++
		return
	}
	s.waiting = append(s.waiting, job)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// Stats returns what became of jobs so far.
func (s *Shadow) Stats() ShadowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Waiting = len(s.waiting)
	return stats
}

// run does jobs until none waits.
func (s *Shadow) run() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.waiting, s.running = nil, false
			s.mu.Unlock()
			return
		}
		job := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		err := s.attempt(job)
		s.mu.Lock()
		if err == nil {
			s.stats.Done++
		} else {
			s.stats.Failed++
		}
		s.mu.Unlock()
	}
}

// attempt does a job. A fault of a strategy that is only tried out must not end the server.
func (s *Shadow) attempt(job func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.log.Error("a strategy in the shadow panicked", "panic", panicked)
			err = errPanicked
		}
	}()
	return job()
}
