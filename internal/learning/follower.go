package learning

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// maxUses is how many uses are held: twice what a history keeps.
	maxUses = 131_072
	// overlap is how much earlier than what was read last a reading begins. No transaction that writes uses takes so long.
	overlap = time.Minute
	// followInterval is how often it is looked for new uses.
	followInterval = 10 * time.Second
)

// Source has the uses.
type Source interface {
	// SearchUses returns the newest uses that were written since an instant, at most so many.
	SearchUses(ctx context.Context, since time.Time, atMost int) ([]Use, error)
	// LastErasure is when uses were deleted last before their time, as far as that is known.
	LastErasure(ctx context.Context) (time.Time, error)
}

// Follower knows what the uses in a source teach.
type Follower struct {
	source  Source
	weights discovery.LearnedWeights
	now     func() time.Time
	log     *slog.Logger

	reading sync.Mutex
	uses    map[id.Call]Use
	last    time.Time // the newest that was read, by the database's clock
	erased  time.Time // the last erasure that was known then
	learned atomic.Pointer[Learned]
}

// NewFollower reads what there is. nil now: the system's clock.
func NewFollower(ctx context.Context, source Source, weights discovery.LearnedWeights, now func() time.Time, log *slog.Logger) (*Follower, error) {
	if now == nil {
		now = time.Now
	}
	f := &Follower{source: source, weights: weights, now: now, log: log, uses: map[id.Call]Use{}}
	return f, f.Read(ctx)
}

// Learned is what is known. It is another one if and only if something changed.
func (f *Follower) Learned() *Learned { return f.learned.Load() }

// Read takes in what was written since.
func (f *Follower) Read(ctx context.Context) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	erased, err := f.source.LastErasure(ctx)
	if err != nil {
		return err
	}
	anew := !erased.Equal(f.erased)
	var since time.Time
	if !f.last.IsZero() && !anew {
		since = f.last.Add(-overlap)
	}
	read, err := f.source.SearchUses(ctx, since, maxUses)
	if err != nil {
		return err
	}
	changed := anew
	if anew {
		f.erased, f.uses = erased, map[id.Call]Use{}
	}
	for _, u := range read {
		if u.Written.After(f.last) {
			f.last = u.Written
		}
		if _, known := f.uses[u.Call]; !known {
			f.uses[u.Call] = u
			changed = true
		}
	}
	now := f.now()
	if held := f.learned.Load(); !changed && held != nil && held.day.Equal(Day(now)) {
		return nil
	}
	uses := make([]Use, 0, len(f.uses))
	for _, u := range f.uses {
		uses = append(uses, u)
	}
	slices.SortFunc(uses, newest)
	for _, old := range uses[min(len(uses), maxUses):] {
		delete(f.uses, old.Call)
	}
	f.learned.Store(Learn(uses[:min(len(uses), maxUses)], f.weights, now))
	return nil
}

// Run follows the source until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := f.Read(ctx)
		if err != nil && !away && ctx.Err() == nil {
			f.log.Warn("what is learned from use cannot be read; what is known stays", "error", err)
		}
		away = err != nil
	}
}
