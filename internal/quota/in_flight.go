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

// enter waits for a turn, which leave ends.
func (f *inFlight) enter(ctx context.Context, key consumedKey) error {
	for {
		f.mu.Lock()
		other, busy := f.there[key]
		if !busy {
			if f.there == nil {
				f.there = make(map[consumedKey]chan struct{})
			}
			f.there[key] = nil // nobody waits yet
			f.mu.Unlock()
			return nil
		}
		if other == nil {
			other = make(chan struct{})
			f.there[key] = other
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *inFlight) leave(key consumedKey) {
	f.mu.Lock()
	waited := f.there[key]
	delete(f.there, key)
	f.mu.Unlock()
	if waited != nil {
		close(waited)
	}
}
