package meaning

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// maxOwnTools bounds how many of a user's private tools are embedded; the others, by id, are found by their words.
	maxOwnTools = 1000
	// ownBytes is the memory for all users' private tools' vectors. Whose are not among them are read again when he searches.
	ownBytes = 64 << 20
	// maxOwnAge is when they are read anew, which notes that they are needed.
	maxOwnAge = 6 * time.Hour
	// maxQueue bounds how many users' tools wait for the model; others come when they search again.
	maxQueue = 256
)

// owners keeps the vectors of private tools, each user's apart: nothing here is found but by its owner.
type owners struct {
	cache   *otter.Cache[id.User, *owned]
	reading singleflight.Group // by user

	mu     sync.Mutex
	queued map[id.User]bool
	queue  chan id.User
}

// owned is what is kept for one user. It does not change.
type owned struct {
	version    any        // of the catalogue
	beside     *published // what is usual
	dimensions int64
	tools      []want // those that have a vector
	missing    []want
	unsaved    []Stored
	held       map[Fingerprint][]float32
	vectors    *discovery.Vectors // nil: there are none
}

func newOwners(bytes uint64) *owners {
	return &owners{queued: map[id.User]bool{}, queue: make(chan id.User, maxQueue), cache: otter.Must(&otter.Options[id.User, *owned]{
		MaximumWeight:    bytes,
		ExpiryCalculator: otter.ExpiryCreating[id.User, *owned](maxOwnAge),
		Weigher: func(user id.User, o *owned) uint32 {
			const entry, tool = 512, 256 // with what the cache and maps add
			bytes := entry + len(user)
			for _, w := range slices.Concat(o.tools, o.missing) {
				bytes += tool + len(w.text) + 4*len(o.held[w.Fingerprint])
			}
			return uint32(bytes)
		}})}
}

// Own are the vectors of a user's private tools; nil: none are held. They are others if and only if something changed. They
// must be shown to nobody else.
func (k *Keeper) Own(user id.User) *discovery.Vectors {
	if k.owners == nil {
		return nil
	}
	if held, ok := k.owners.cache.GetIfPresent(user); ok {
		return held.vectors
	}
	return nil
}

// awaken has a user's private tools' vectors read from the store, if that is to be done, and what is missing made in the
// background. Nil: there is nothing to wait for.
func (k *Keeper) awaken(ctx context.Context, user id.User) <-chan singleflight.Result {
	if k.owners == nil {
		return nil
	}
	version, describe := k.o.Private(user)
	if describe == nil {
		k.owners.cache.Invalidate(user)
		return nil
	}
	if held, ok := k.owners.cache.GetIfPresent(user); ok && k.fresh(held, version) && held.whole() {
		return nil
	}
	return k.owners.reading.DoChan(string(user), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // others wait for it, too
		defer cancel()
		err := k.readOwn(ctx, user)
		if held, ok := k.owners.cache.GetIfPresent(user); ok && !held.whole() {
			k.owners.enqueue(user)
		}
		return nil, err
	})
}

// SyncOwn gets the vectors that a user's private tools lack, from the store or else from the model. What other servers are
// asking for is not waited for.
func (k *Keeper) SyncOwn(ctx context.Context, user id.User) error {
	if k.owners == nil {
		return nil
	}
	if _, err, _ := k.owners.reading.Do(string(user), func() (any, error) { return nil, k.readOwn(ctx, user) }); err != nil {
		return err
	}
	held, ok := k.owners.cache.GetIfPresent(user)
	if !ok {
		return nil
	}
	vault := k.o.Store.PrivateVectors(user)
	if len(held.unsaved) > 0 {
		if err := k.ask(ctx, func(ctx context.Context) error { return vault.Add(ctx, k.claimant, k.o.Model, held.unsaved) }); err != nil {
			return err
		}
		k.addOwn(user, held.unsaved, true)
	}
	_, err := k.fetch(ctx, vault, held.missing, func(vectors []Stored, stored bool) { k.addOwn(user, vectors, stored) })
	return err
}

// fresh tells whether what is held is of this catalogue and this model.
func (k *Keeper) fresh(o *owned, version any) bool {
	return o.version == version && o.beside == k.shared.Load() && o.dimensions == k.dimensions.Load()
}

// whole tells whether nothing is left to do.
func (o *owned) whole() bool { return len(o.missing) == 0 && len(o.unsaved) == 0 }

// readOwn brings what is held for a user up to date with the catalogue and the store.
func (k *Keeper) readOwn(ctx context.Context, user id.User) error {
	version, describe := k.o.Private(user)
	if describe == nil {
		k.owners.cache.Invalidate(user)
		return nil
	}
	tools := describe()
	slices.SortFunc(tools, func(a, b discovery.Tool) int { return strings.Compare(string(a.ID), string(b.ID)) })
	wanted := make([]want, 0, len(tools))
	for i := range tools[:min(len(tools), maxOwnTools)] {
		text := TextOf(&tools[i])
		wanted = append(wanted, want{Stored{Fingerprint: k.o.fingerprint(text, string(user), string(tools[i].ID)), Tool: tools[i].ID}, text})
	}
	before, ok := k.owners.cache.GetIfPresent(user)
	if !ok {
		before = &owned{}
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(w want) bool { return k.holds(before, w) })
	vault := k.o.Store.PrivateVectors(user)
	found, err := k.read(ctx, vault, printsOf(missing))
	if err == nil && len(found) > 0 {
		prints := make([]Fingerprint, len(found))
		for i := range found {
			prints[i] = found[i].Fingerprint
		}
		err = k.ask(ctx, func(ctx context.Context) error { return vault.Need(ctx, prints) })
	}
	k.owners.cache.Compute(user, func(before *owned, ok bool) (*owned, otter.ComputeOp) {
		if !ok {
			before = &owned{}
		}
		return k.compose(version, wanted, before, found), otter.WriteOp
	})
	return err
}

// addOwn adds to what is held for a user.
func (k *Keeper) addOwn(user id.User, vectors []Stored, stored bool) {
	k.owners.cache.Compute(user, func(before *owned, ok bool) (*owned, otter.ComputeOp) {
		if !ok {
			return before, otter.CancelOp // dropped meanwhile
		}
		next := k.compose(before.version, slices.Concat(before.tools, before.missing), before, vectors)
		next.unsaved = slices.DeleteFunc(slices.Clone(next.unsaved), func(s Stored) bool {
			return slices.ContainsFunc(vectors, func(other Stored) bool { return other.Fingerprint == s.Fingerprint })
		})
		if !stored {
			next.unsaved = append(next.unsaved, vectors...)
		}
		return next, otter.WriteOp
	})
}

// holds tells whether there is a vector of the model's dimensions.
func (k *Keeper) holds(o *owned, w want) bool {
	vector, ok := o.held[w.Fingerprint]
	return ok && int64(len(vector)) == k.dimensions.Load()
}

// compose is what is held of some tools, given what was held and what was added.
func (k *Keeper) compose(version any, wanted []want, before *owned, added []Stored) *owned {
	next := &owned{version: version, beside: k.shared.Load(), dimensions: k.dimensions.Load(), held: make(map[Fingerprint][]float32, len(wanted))}
	all := maps.Clone(before.held)
	if all == nil {
		all = map[Fingerprint][]float32{}
	}
	for _, one := range added {
		all[one.Fingerprint] = one.Vector
	}
	v := &discovery.Vectors{ByTool: make(map[id.Tool][]float32, len(wanted))}
	if next.beside != nil {
		v.Beside = next.beside.sample
	}
	for _, w := range wanted {
		if vector, ok := all[w.Fingerprint]; ok && int64(len(vector)) == next.dimensions {
			next.held[w.Fingerprint], v.ByTool[w.Tool] = vector, vector
			next.tools = append(next.tools, w)
		} else {
			next.missing = append(next.missing, w)
		}
	}
	for _, one := range before.unsaved {
		if next.held[one.Fingerprint] != nil {
			next.unsaved = append(next.unsaved, one)
		}
	}
	if len(v.ByTool) > 0 {
		next.vectors = v
	}
	if before.beside == next.beside && before.vectors != nil && sameVectors(before.vectors.ByTool, v.ByTool) {
		next.vectors = before.vectors
	}
	return next
}

// enqueue has a user's missing vectors made, if there is room.
func (o *owners) enqueue(user id.User) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queued[user] {
		return
	}
	select {
	case o.queue <- user:
		o.queued[user] = true
	default:
	}
}

// runOwners makes what is missing, user by user, until ctx ends. Who could not be helped comes again when he searches.
func (k *Keeper) runOwners(ctx context.Context) {
	var p pauses
	for p.wait(ctx, 0) {
		select {
		case <-ctx.Done():
			return
		case user := <-k.owners.queue:
			k.owners.mu.Lock()
			delete(k.owners.queued, user)
			k.owners.mu.Unlock()
			err := k.SyncOwn(ctx, user)
			k.report(&p, "vectors of private tools", err, ctx.Err() != nil)
		}
	}
}

// runForgetting drops what is held for those who have no private tools any more, soon after the catalogue changed, whatever
// the model and the store do.
func (k *Keeper) runForgetting(ctx context.Context) {
	var p pauses
	var known any
	for p.wait(ctx, interval) {
		version, _ := k.o.Catalogue()
		if version == known {
			continue
		}
		known = version
		for user := range k.owners.cache.Keys() {
			if _, describe := k.o.Private(user); describe == nil {
				k.owners.cache.Invalidate(user)
			}
		}
	}
}

// count returns of how many users how many vectors are held.
func (o *owners) count() (users, vectors int) {
	for held := range o.cache.Values() {
		users++
		vectors += len(held.tools)
	}
	return users, vectors
}
