package redisstore

import (
	"errors"
	"sync"
)

const (
	// batchSize is how much goes to Redis together at most. Its answers come together, too.
	batchSize = 256
	// atOnce is how many batches are under way: while Redis works on one, answers of the other are read.
	atOnce = 2
	// enough is how much must wait for a second batch to be worth it.
	enough = 16
	// queueSize is how much may wait for its turn. More is refused: Redis is slower than it comes.
	queueSize = 8192
)

var errQueueFull = errors.New("too many commands wait for Redis")

// batches send what many callers ask for together: what is asked while others are under way goes next, all in one.
// A lone caller waits for nobody.
type batches[T any] struct {
	send func([]T) // and say each that it is done

	mu      sync.Mutex
	waiting []T
	running int
}

func (b *batches[T]) add(one T) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= queueSize {
		return errQueueFull
	}
	b.waiting = append(b.waiting, one)
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
	}
}
