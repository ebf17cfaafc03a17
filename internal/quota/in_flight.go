package quota

import (
	"context"
	"sync"
)

// inFlight lets those who ask for the same operation at the same time take turns: whoever repeats it is not to find
// half a decision.
type inFlight struct {
	mu    sync.Mutex
	there map[consumedKey]chan struct{}
}

// enter waits for a turn, and returns what ends it.
func (f *inFlight) enter(ctx context.Context, key consumedKey) (leave func(), err error) {
	for {
		f.mu.Lock()
		other, busy := f.there[key]
		if !busy {
			if f.there == nil {
				f.there = make(map[consumedKey]chan struct{})
			}
			done := make(chan struct{})
			f.there[key] = done
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.there, key)
				f.mu.Unlock()
				close(done)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
