package replica

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/span"
)

// factCache keeps users and chats. Concurrent loads of one key are joined, and a load that is invalidated
// before it ends is made again.
type factCache struct {
	cache   *otter.Cache[factKey, fact]
	stats   *stats.Counter
	source  Source
	timeout time.Duration
	loaders crew
	// floor is the revision whose changes were forgotten last, or are being forgotten: what is loaded from now on must
	// include it, since nobody will forget it again.
	floor atomic.Pointer[revision.Revision]
}

// factKey is a user or, if that is empty, a chat.
type factKey struct {
	user id.User
	chat id.Chat
}

// fact is a user or a chat, and the version of the catalogue that was current when it was read.
type fact struct {
	user    *availability.User
	chat    *enable.Chat // nil: never created
	version int64
}

func newFactCache(o Options, floor revision.Revision) *factCache {
	c := &factCache{source: o.Source, timeout: o.Timeout, stats: stats.NewCounter(), loaders: make(crew)}
	c.floor.Store(&floor)
	c.cache = otter.Must(&otter.Options[factKey, fact]{
		MaximumWeight: o.CacheBytes,
		Weigher:       func(k factKey, f fact) uint32 { return f.bytes() + uint32(len(k.user)+len(k.chat)) },
		StatsRecorder: c.stats,
	})
	return c
}

// userAndChat returns both, read in one round trip if neither is held. An unknown user is a fault, an
// unknown chat is not.
func (c *factCache) userAndChat(ctx context.Context, user id.User, chat id.Chat) (u, ch fact, err error) {
	userKey, chatKey := factKey{user: user}, factKey{chat: chat}
	u, haveUser := c.cache.GetIfPresent(userKey)
	ch, haveChat := c.cache.GetIfPresent(chatKey)
	if haveUser && haveChat {
		span.Cached(ctx, "load")
		return u, ch, nil
	}
	keys := make([]factKey, 0, 2)
	if !haveUser {
		keys = append(keys, userKey)
	}
	if !haveChat {
		keys = append(keys, chatKey)
	}
	ctx, loading := span.Start(ctx, "load")
	loaded, err := c.load(ctx, keys)
	loading.End(err)
	if err != nil {
		return u, ch, err
	}
	if !haveUser {
		u, haveUser = loaded[userKey]
	}
	if !haveUser {
		return u, ch, fault.Missing("user", string(user))
	}
	if !haveChat {
		ch = loaded[chatKey]
	}
	return u, ch, nil
}

// load loads for all who ask for the keys. It outlives a caller who gives up, since others may have joined,
// but not its own time.
func (c *factCache) load(ctx context.Context, keys []factKey) (map[factKey]fact, error) {
	type result struct {
		facts map[factKey]fact
		err   error
	}
	done := make(chan result, 1)
	c.loaders.run(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		facts, err := c.cache.BulkGet(ctx, keys, otter.BulkLoaderFunc[factKey, fact](c.read))
		done <- result{facts, timedOut(err, c.timeout)}
	})
	select {
	case r := <-done:
		return r.facts, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads a user, a chat, or one of each. An unknown user is left out.
func (c *factCache) read(ctx context.Context, keys []factKey) (map[factKey]fact, error) {
	var user id.User
	var chat id.Chat
	for _, k := range keys {
		if k.user != "" {
			user = k.user
		} else {
			chat = k.chat
		}
	}
	u, ch, version, err := c.source.UserAndChat(ctx, user, chat, *c.floor.Load())
	if err != nil {
		return nil, err
	}
	found := make(map[factKey]fact, len(keys))
	if u != nil {
		found[factKey{user: user}] = fact{user: u, version: version}
	}
	if chat != "" {
		found[factKey{chat: chat}] = fact{chat: ch, version: version}
	}
	return found, nil
}

// forget drops what was changed through a revision, and what is being loaded of it.
func (c *factCache) forget(users []id.User, chats []id.Chat, through revision.Revision) {
	c.floor.Store(&through)
	for _, user := range users {
		c.cache.Invalidate(factKey{user: user})
	}
	for _, chat := range chats {
		c.cache.Invalidate(factKey{chat: chat})
	}
}

// bytes estimates the memory of a fact with its place in the cache. Strings are counted, and for each object
// what its headers and its share of a map take.
func (f fact) bytes() uint32 {
	const entry, object = 256, 64
	size := entry
	if f.user != nil {
		for _, d := range f.user.Devices {
			size += object + len(d.ID) + len(d.Type)
		}
		for _, m := range f.user.Memberships {
			size += object + 48 + len(m.Group)
		}
	}
	if f.chat != nil {
		size += 2 * object
		for avatar := range f.chat.State.Avatars {
			size += object + len(avatar)
		}
		for tool := range f.chat.State.Tools {
			size += 2*object + len(tool)
		}
	}
	return uint32(size)
}
