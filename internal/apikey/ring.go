package apikey

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Ring tells whose a secret is. It never changes: of other keys another is made.
type Ring struct{ held map[Hash]*Held }

// Held is a secret on a ring.
type Held struct {
	Identity *caller.Identity
	Key      id.APIKey
	until    time.Time
}

// NewRing makes a ring of those keys that may be used, now or ever after.
func NewRing(keys []Key, now time.Time) *Ring {
	r := &Ring{held: map[Hash]*Held{}}
	for i := range keys {
		k := &keys[i]
		who := &caller.Identity{Actor: "key:" + string(k.ID), Role: k.Role, User: k.User}
		for j := range k.Secrets {
			if secret := &k.Secrets[j]; k.Usable(secret, now) {
				r.held[secret.Hash] = &Held{Identity: who, Key: k.ID, until: k.until(secret)}
			}
		}
	}
	return r
}

// Find returns whose a secret is; nil: nobody's, or nobody's any more. The secret is looked up by its hash, which whoever
// guesses cannot steer, so the time that it takes tells nothing.
func (r *Ring) Find(h Hash, now time.Time) *Held {
	if r == nil {
		return nil
	}
	held := r.held[h]
	if held == nil || !held.until.IsZero() && !now.Before(held.until) {
		return nil
	}
	return held
}

// Len is how many secrets are on the ring.
func (r *Ring) Len() int { return len(r.held) }

// Uses remembers when keys were used last. It is safe for concurrent use, and cheap for those who use.
type Uses struct {
	times sync.Map // id.APIKey to *atomic.Int64, in seconds since 1970
}

// Resolution is how exact the time of the last use is.
const Resolution = time.Minute

// Used says that a key was used.
func (u *Uses) Used(key id.APIKey, now time.Time) {
	at, known := u.times.Load(key)
	if !known {
		at, _ = u.times.LoadOrStore(key, &atomic.Int64{})
	}
	second := now.Truncate(Resolution).Unix()
	if last := at.(*atomic.Int64); last.Load() < second {
		last.Store(second)
	}
}

// Take returns the uses since the last Take.
func (u *Uses) Take() map[id.APIKey]time.Time {
	taken := map[id.APIKey]time.Time{}
	u.times.Range(func(key, at any) bool {
		if second := at.(*atomic.Int64).Swap(0); second > 0 {
			taken[key.(id.APIKey)] = time.Unix(second, 0).UTC()
		} else {
			u.times.Delete(key)
		}
		return true
	})
	return taken
}

// Return gives back uses that could not be written down.
func (u *Uses) Return(uses map[id.APIKey]time.Time) {
	for key, at := range maps.All(uses) {
		u.Used(key, at)
	}
}
