package redisstore

import (
	"log/slog"
	"sync"
)

// activity is what fails when Redis is away. Each finds out by itself.
type activity int

const (
	publishing activity = iota
	subscribing
	activities
)

// outage logs the beginning and the end of an outage once, whichever activity is the first to notice it, and
// the last to be well again.
type outage struct {
	logger *slog.Logger
	mu     sync.Mutex
	fails  [activities]bool
}

func (o *outage) failed(a activity, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fails == [activities]bool{} {
		o.logger.Warn("Redis does not answer: until it does, nodes learn what others committed only when they poll", "error", err)
	}
	o.fails[a] = true
}

func (o *outage) over(a activity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.fails[a] {
		return
	}
	o.fails[a] = false
	if o.fails == [activities]bool{} {
		o.logger.Info("Redis answers again: nodes wake one another when they commit")
	}
}
