package redisstore

import (
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// ownAtMost bounds how many reservations a node remembers, some 20 MB. Others are read when they are settled.
const ownAtMost = 1 << 15

// errAnother says that a reservation is not the one that this node made.
var errAnother = errors.New("another reservation is written down")

// own is what this node reserved: whoever settles it here, as most do, need not read it first. It may be forgotten, and
// it may be wrong, if Redis lost the reservation and another was made in its place; so settling compares.
type own struct {
	*lru.Cache[string, written]
}

// written is whose a reservation is, and what is written down of it.
type written struct {
	user   id.User
	record string
}

func newOwn() own {
	cache, err := lru.New[string, written](ownAtMost)
	if err != nil {
		panic(err) // the size is positive
	}
	return own{cache}
}

// note remembers what was reserved, if it was just now.
func (m own) note(o *quota.Operation, d *quota.Decision, record string) {
	if d.Admitted && !d.Repeated {
		m.Add(o.ID, written{o.User, record})
	}
}

// take returns what was reserved, and forgets it: it is settled once.
func (m own) take(operation string) (written, bool) {
	one, known := m.Peek(operation)
	if known {
		m.Remove(operation)
	}
	return one, known
}
