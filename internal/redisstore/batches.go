package redisstore

import (
	"errors"
	"sync"
	"time"
)

const (
	// batchSize is how much goes to Redis together at most. Its answers come together, too.
	batchSize = 256
	// enough is for how many a batch is worth going while another one is under way. The more go together, the less each
	// takes; but then nobody has anything to do while Redis works, and Redis nothing while they are answered.
	enough = 20
	// gatherTime is how long a batch is waited for after one of at least gatherAfter.
	gatherAfter = 8
	gatherTime  = 600 * time.Microsecond
	// queueSize is how much may wait for its turn. More is refused: Redis is slower than it comes.
	queueSize = 8192
)

var errQueueFull = errors.New("too many commands wait for Redis")

// batches send what many callers ask for together: what is asked while others are under way goes next, all in one, or,
// when enough wait, beside them. Two batches at a time keep everybody busy: Redis works on one while the callers of the
// other are answered, and ask again. As they often do so at once, after a batch of several the next one waits a moment
// for as many. A lone caller waits for nobody, and sends himself.
type batches[T any] struct {
	send func([]T) // and say each that it is done

	mu       sync.Mutex
	waiting  []T
	underWay int           // batches that are sent or gathered, 2 at most
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
		b.underWay--
		b.next()
	}()
	b.send([]T{one})
	return nil
}

// queue has one wait, unless it is alone: nothing is under way.
func (b *batches[T]) queue(one T) (alone bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underWay == 0 {
		b.underWay++
		return true, nil
	}
	if len(b.waiting) >= queueSize {
		return false, errQueueFull
	}
	b.waiting = append(b.waiting, one)
	if b.gathered == nil {
		b.next()
	} else if len(b.waiting) >= b.wanted {
		close(b.gathered)
		b.gathered = nil
	}
	return false, nil
}

// next has those sent who wait, if it is their turn. The lock is held.
func (b *batches[T]) next() {
	if b.underWay == 0 && len(b.waiting) > 0 || b.underWay == 1 && len(b.waiting) >= enough {
		b.underWay++
		go b.run()
	}
}

// run sends until nobody waits, or another goes on.
func (b *batches[T]) run() {
	for {
		b.mu.Lock()
		batch := b.waiting[:min(len(b.waiting), batchSize)]
		b.waiting = b.waiting[len(batch):]
		if len(batch) == 0 {
			b.underWay--
		}
		b.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		b.send(batch)
		if len(batch) >= gatherAfter && !b.gather(min(len(batch), enough)) {
			return
		}
	}
}

// gather waits until so many wait, but not for long; or says that it leaves them to the batch that is under way.
func (b *batches[T]) gather(many int) bool {
	b.mu.Lock()
	if len(b.waiting) >= many {
		b.mu.Unlock()
		return true
	}
	if b.underWay == 2 {
		b.underWay--
		b.mu.Unlock()
		return false
	}
	gathered := make(chan struct{})
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
	return true
}
