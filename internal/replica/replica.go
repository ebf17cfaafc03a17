// Package replica holds in memory what questions rest on, and keeps it as fresh as promised. The compiled
// catalogue is always there; users and chats are read when they are asked for, and kept in a cache of
// bounded size.
//
// One goroutine follows the database. Each poll reads what was committed since the snapshot of the poll
// before, forgets those users and chats, and then publishes the new state. A question takes the state first
// and the user and the chat after it, so what it finds is at least as new as the state: whatever was
// committed through the state's revision is in the answer. What is loaded while its change is on the way is
// not kept (the cache discards a load that was invalidated meanwhile). Facts that are newer than the state's
// catalogue wait for it, so an answer never mixes a user with a catalogue that the user's write has already
// changed.
//
// A state is as fresh as the instant at which its poll was sent, on the monotonic clock. A question that
// finds it older than the bound asks for a poll and waits; so does one for a revision that the state does
// not include. Somebody who knows of a write can Wake the replica; if nobody does it polls by itself, often
// enough. Polls are shared: a poll that is sent after a question came is good enough for all that wait.
package replica

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/span"
)

// Options is what a replica is made of.
type Options struct {
	Source Source
	Logger *slog.Logger
	// MaxStaleness bounds how old an answer may be. A quarter of it is how often the source is polled when
	// nobody asks for it.
	MaxStaleness time.Duration
	// ServeStale lets questions be answered from an older state while the source fails.
	ServeStale bool
	// CacheBytes bounds the cache of users and chats, as estimated. That of overrides of quotas takes an eighth more.
	CacheBytes uint64
	// Timeout bounds each poll and each load, whoever waits for it.
	Timeout time.Duration
}

// Replica answers from memory what its source would. It is safe for concurrent use.
type Replica struct {
	options  Options
	state    atomic.Pointer[state]
	polls    polls
	watchers watchers

	approvalWatchers approvalWatchers
}

// state is what was known at an instant. It never changes.
type state struct {
	revision revision.Revision
	token    string // the revision's
	version  int64  // of the catalogue
	world    *effective.World
	asOf     time.Time // all that was committed before is known
	facts    *factCache
	accounts *accountCache
	keys     *apikey.Ring
}

// New reads the source's catalogue. The replica keeps what it read until Run is called.
func New(ctx context.Context, o Options) (*Replica, error) {
	r := &Replica{options: o, polls: polls{wake: make(chan struct{}, 1), stopped: make(chan struct{})},
		watchers: watchers{users: map[id.User]set{}, chats: map[id.Chat]set{}}}
	return r, r.refresh(ctx)
}

// Consistency is how fresh an answer must be. The zero value means no older than MaxStaleness.
type Consistency struct {
	// AtLeastAsFresh is a revision that must be included; empty: none.
	AtLeastAsFresh string
	// Full reads the source.
	Full bool
}

// Facts is what a question rests on.
type Facts struct {
	effective.Facts
	// Token is the revision's.
	Token string
	// Stale says that the facts may be older than MaxStaleness, which ServeStale allows.
	Stale bool
	// FreshUntil is when they will be older than MaxStaleness. An answer that is late must be made anew.
	FreshUntil time.Time
}

// Expired tells whether the facts have become older than allowed since they were returned.
func (f *Facts) Expired() bool { return !f.Stale && time.Now().After(f.FreshUntil) }

// Facts returns what a question about a chat rests on.
func (r *Replica) Facts(ctx context.Context, chat id.Chat, user id.User, surface availability.Surface, c Consistency) (Facts, error) {
	if c.Full {
		return r.read(ctx, chat, user, surface)
	}
	for {
		s, stale, err := r.snapshot(ctx, c)
		if err != nil {
			return Facts{}, err
		}
		u, ch, err := s.facts.userAndChat(ctx, user, chat)
		if err != nil {
			return Facts{}, err
		}
		if max(u.version, ch.version) > s.version {
			if err := r.ask(ctx); err != nil {
				return Facts{}, err
			}
			continue
		}
		_, own := u.user.Device(surface.Device)
		if !own && !surface.IsWeb() {
			// A refusal may not rest on what is old, and does not happen often.
			return r.read(ctx, chat, user, surface)
		}
		return Facts{
			Facts:      effective.Facts{World: s.world, User: u.user, Chat: ch.chat, DeviceExists: own, Revision: s.revision},
			Token:      s.token,
			Stale:      stale,
			FreshUntil: s.asOf.Add(r.options.MaxStaleness),
		}, nil
	}
}

// read reads the source.
func (r *Replica) read(ctx context.Context, chat id.Chat, user id.User, surface availability.Surface) (Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout) // a stream has no limit of its own
	defer cancel()
	ctx, loading := span.Start(ctx, "load")
	facts, err := r.options.Source.Facts(ctx, chat, user, surface)
	err = timedOut(err, r.options.Timeout)
	loading.End(err)
	return Facts{Facts: facts, Token: facts.Revision.String(), FreshUntil: time.Now().Add(r.options.MaxStaleness)}, err
}

// snapshot is stateFor as a part of a traced call.
func (r *Replica) snapshot(ctx context.Context, c Consistency) (*state, bool, error) {
	ctx, part := span.Start(ctx, "snapshot")
	s, stale, err := r.stateFor(ctx, c)
	part.End(err)
	return s, stale, err
}

// stateFor returns a state that is fresh enough, after a poll if need be.
func (r *Replica) stateFor(ctx context.Context, c Consistency) (s *state, stale bool, err error) {
	s = r.state.Load()
	if time.Since(s.asOf) > r.options.MaxStaleness {
		// While the source fails, those who may be served what is stale need not wait for it to fail again.
		if stale = r.options.ServeStale && r.polls.failure() != nil; !stale {
			err := r.ask(ctx)
			if stale = err != nil && r.options.ServeStale && ctx.Err() == nil; err != nil && !stale {
				return nil, false, err
			}
			s = r.state.Load()
		}
	}
	if c.AtLeastAsFresh == "" || c.AtLeastAsFresh == s.token {
		return s, stale, nil
	}
	err = revision.Require(c.AtLeastAsFresh, s.revision)
	if f, ok := fault.As(err); !ok || f.Kind != fault.OutOfRange {
		return s, stale, err // it is included, or no poll would make it so
	}
	if err := r.ask(ctx); err != nil {
		return nil, false, err
	}
	s = r.state.Load()
	return s, false, revision.Require(c.AtLeastAsFresh, s.revision)
}

// World returns the catalogue as it was last read.
func (r *Replica) World() *effective.World { return r.state.Load().world }

// Keys returns the API keys, no older than MaxStaleness.
func (r *Replica) Keys(ctx context.Context) (*apikey.Ring, error) {
	s, _, err := r.stateFor(ctx, Consistency{})
	if err != nil {
		return nil, err
	}
	return s.keys, nil
}

// CatchUp returns when the replica knows of all that was committed before, or cannot.
func (r *Replica) CatchUp(ctx context.Context) error { return r.ask(ctx) }

// Check tells why questions cannot be answered as promised; nil: they can.
func (r *Replica) Check() error {
	age := time.Since(r.state.Load().asOf)
	if age <= r.options.MaxStaleness || r.options.ServeStale {
		return nil
	}
	return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable,
		Message: "the database was last read " + age.Round(time.Millisecond).String() + " ago", Cause: r.polls.failure()}
}
