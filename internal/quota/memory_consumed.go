package quota

import (
	"hash/maphash"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// consumed remembers operations that consumed: the newest maxOperations, and at most twice as many. There are no
// pointers in it, because there is much of it: the garbage collector has nothing to look at.
type consumed struct {
	seed         maphash.Seed
	newer, older map[digest]consumption
}

// digest stands for something in this process only. With a billion operations a day, one would be taken for another
// every four hundred years.
type digest uint64

type consumption struct {
	content digest
	at      int64 // Unix nanoseconds
}

func newConsumed() *consumed {
	return &consumed{seed: maphash.MakeSeed(), newer: map[digest]consumption{}, older: map[digest]consumption{}}
}

type consumedKey struct {
	user      id.User
	operation string
}

func (c *consumed) key(o *Operation) digest {
	return digestOf(c, consumedKey{o.User, o.ID})
}

func digestOf[T comparable](c *consumed, of T) digest {
	return digest(maphash.Comparable(c.seed, of))
}

func (c *consumed) empty() bool { return len(c.newer)+len(c.older) == 0 }

// find tells when an operation consumed, and whether it had this content. Known is false if it didn't, or long ago.
func (c *consumed) find(key digest, o *Operation, now time.Time) (at time.Time, same, known bool) {
	one, known := c.newer[key]
	if !known {
		one, known = c.older[key]
	}
	at = time.Unix(0, one.at)
	if !known || now.After(at.Add(rememberConsumed)) {
		return at, false, false
	}
	return at, one.content == digestOf(c, contentOf(o)), true
}

func (c *consumed) add(key digest, o *Operation, at time.Time) {
	if len(c.newer) == maxOperations {
		c.newer, c.older = c.older, c.newer
		clear(c.newer)
	}
	c.newer[key] = consumption{digestOf(c, contentOf(o)), at.UnixNano()}
}

func (c *consumed) remove(key digest) {
	delete(c.newer, key)
	delete(c.older, key)
}
