package redisstore

import (
	"errors"
	"sync"
	"time"
)

const (
	// batchSize is how much goes to Redis together at most. Its answers come together, too.
	batchSize = 256
	// atOnce is how many batches are under way: while Redis works on one, answers of the other are read.
	atOnce = 2
	// enough is how much must wait for a second batch to be worth it.
	enough = 16
	// gatherAtMost and gatherTime bound for how many, and how long, a batch waits.
	gatherAtMost = 32
	gatherTime   = 300 * time.Microsecond
	// queueSize is how much may wait for its turn. More is refused: Redis is slower than it comes.
	queueSize = 8192
)

var errQueueFull = errors.New("too many commands wait for Redis")

// batches send what many callers ask for together: what is asked while others are under way goes next, all in one.
// Those who were just answered often ask again at once, so the next batch waits a moment for as many: large ones take
// far less of everybody's time. A lone caller waits for nobody.
type batches[T any] struct {
	send func([]T) // and say each that it is done

	mu       sync.Mutex
	waiting  []T
	running  int           // batches
	gathered chan struct{} // closed when so many wait as are wanted; nil: nobody gathers
	wanted   int
}

func (b *batches[T]) add(one T) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= queueSize {
		return errQueueFull
	}
	b.waiting = append(b.waiting, one)
	if b.gathered != nil && len(b.waiting) >= b.wanted {
		close(b.gathered)
		b.gathered = nil
	}
	if b.running == 0 || b.running < atOnce && len(b.waiting) >= enough {
		b.running++
		go b.run()
	}
	return nil
}

// run sends until nobody waits.
func (b *batches[T]) run() {
	for {
		b.mu.Lock()
		batch := b.waiting[:min(len(b.waiting), batchSize)]
		b.waiting = b.waiting[len(batch):]
		if len(batch) == 0 {
			b.running--
		}
		b.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		b.send(batch)
		b.gather(min(len(batch), gatherAtMost))
	}
}

// gather waits until so many wait, but not for long.
func (b *batches[T]) gather(many int) {
	b.mu.Lock()
	if many < 2 || len(b.waiting) >= many || b.gathered != nil {
		b.mu.Unlock()
		return
	}
	gathered := make(chan struct{})
	b.gathered, b.wanted = gathered, many
	b.mu.Unlock()
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-gathered:
		return
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gathered == gathered {
		b.gathered = nil
	}
}
