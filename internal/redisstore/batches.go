package redisstore

import (
	"errors"
	"sync"
	"time"
)

const (
	// batchSize is how much goes to Redis together at most. Its answers come together, too.
	batchSize = 256
	// gatherAtLeast is how large a batch was that the next one waits for as many after; gatherAtMost and gatherTime bound
	// for how many and for how long.
	gatherAtLeast = 8
	gatherAtMost  = 48
	gatherTime    = 600 * time.Microsecond
	// queueSize is how much may wait for its turn. More is refused: Redis is slower than it comes.
	queueSize = 8192
)

var errQueueFull = errors.New("too many commands wait for Redis")

// batches send what many callers ask for together: what is asked while others are under way goes next, all in one.
// Those who were just answered often ask again at once, so after a large batch the next one waits a moment for as many:
// the larger batches are, the less they take of everybody's time, and two at a time would be smaller ones. A lone caller
// waits for nobody, and sends himself.
type batches[T any] struct {
	send func([]T) // and say each that it is done

	mu       sync.Mutex
	waiting  []T
	running  bool
	gathered chan struct{} // closed when as many wait as are wanted; nil: nobody gathers
	wanted   int
}

// add has one sent: it was, or it waits for its turn.
func (b *batches[T]) add(one T) error {
	if alone, err := b.queue(one); err != nil || !alone {
		return err
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running = len(b.waiting) > 0; b.running {
			go b.run()
		}
	}()
	b.send([]T{one})
	return nil
}

// queue has one wait, unless it is alone: nothing is under way.
func (b *batches[T]) queue(one T) (alone bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		b.running = true
		return true, nil
	}
	if len(b.waiting) >= queueSize {
		return false, errQueueFull
	}
	b.waiting = append(b.waiting, one)
	if b.gathered != nil && len(b.waiting) >= b.wanted {
		close(b.gathered)
		b.gathered = nil
	}
	return false, nil
}

// run sends until nobody waits.
func (b *batches[T]) run() {
	for {
		b.mu.Lock()
		batch := b.waiting[:min(len(b.waiting), batchSize)]
		b.waiting = b.waiting[len(batch):]
		b.running = len(batch) > 0
		b.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		b.send(batch)
		if len(batch) >= gatherAtLeast {
			b.gather(min(len(batch), gatherAtMost))
		}
	}
}

// gather waits until so many wait, but not for long.
func (b *batches[T]) gather(many int) {
	gathered := make(chan struct{})
	b.mu.Lock()
	if len(b.waiting) >= many {
		b.mu.Unlock()
		return
	}
	b.gathered, b.wanted = gathered, many
	b.mu.Unlock()
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-gathered:
	case <-timer.C:
		b.mu.Lock()
		b.gathered = nil
		b.mu.Unlock()
	}
}
