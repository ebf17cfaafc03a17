package replica

import (
	"context"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/span"
)

// Account is what the rules of quotas need to know of a user.
type Account struct {
	World     *effective.World
	Overrides quota.Overrides
}

// Account returns the account of a user, no older than MaxStaleness. An unknown user is a fault.
func (r *Replica) Account(ctx context.Context, user id.User) (Account, error) {
	for {
		s, _, err := r.snapshot(ctx, Consistency{})
		if err != nil {
			return Account{}, err
		}
		held, err := s.accounts.of(ctx, user)
		if err != nil {
			return Account{}, err
		}
		if held.version <= s.version {
			return Account{s.world, held.overrides}, nil
		}
		if err := r.ask(ctx); err != nil {
			return Account{}, err
		}
	}
}

// accountCache keeps the overrides of users, beside the cache of facts: who asks what he may use and whose calls are
// counted need not be the same, and nobody should wait for what he does not need.
type accountCache struct {
	cache   *otter.Cache[id.User, account]
	source  Source
	timeout time.Duration
}

// account is what is kept of a user, and the version of the catalogue that was current when it was read.
type account struct {
	overrides quota.Overrides
	version   int64
}

func newAccountCache(o Options) *accountCache {
	const entry, override = 256, 96
	return &accountCache{source: o.Source, timeout: o.Timeout, cache: otter.Must(&otter.Options[id.User, account]{
		MaximumWeight: o.CacheBytes / 8,
		Weigher:       func(user id.User, a account) uint32 { return uint32(entry + len(user) + override*len(a.overrides)) },
	})}
}

func (c *accountCache) of(ctx context.Context, user id.User) (account, error) {
	if held, ok := c.cache.GetIfPresent(user); ok {
		span.Cached(ctx, "load")
		return held, nil
	}
	ctx, loading := span.Start(ctx, "load")
	loaded, err := c.load(ctx, user)
	loading.End(err)
	if errors.Is(err, otter.ErrNotFound) {
		err = fault.Missing("user", string(user))
	}
	return loaded, err
}

// load loads for all who ask for the user. It outlives a caller who gives up, since others may have joined, but not
// its own time.
func (c *accountCache) load(ctx context.Context, user id.User) (account, error) {
	type result struct {
		account account
		err     error
	}
	done := make(chan result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		loaded, err := c.cache.Get(ctx, user, otter.LoaderFunc[id.User, account](c.read))
		done <- result{loaded, timedOut(err, c.timeout)}
	}()
	select {
	case r := <-done:
		return r.account, r.err
	case <-ctx.Done():
		return account{}, ctx.Err()
	}
}

func (c *accountCache) read(ctx context.Context, user id.User) (account, error) {
	overrides, exists, version, err := c.source.Overrides(ctx, user)
	if err == nil && !exists {
		err = otter.ErrNotFound
	}
	return account{overrides, version}, err
}

// forget drops what was changed, and what is being loaded of it.
func (c *accountCache) forget(users []id.User) {
	for _, user := range users {
		c.cache.Invalidate(user)
	}
}
