package learning

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

const (
	logInterval = 100 * time.Millisecond // well below the time from a search to the report of a call
	logTimeout  = 10 * time.Second
	logBatch    = 5_000
	logMax      = 50_000 // that wait
)

// Kind is what a request was made for.
type Kind string

// The kinds.
const (
	KindSearch    Kind = "SEARCH"    // SearchTools
	KindNarrowing Kind = "NARROWING" // ResolveTools with a query, of a large effective set
)

// Search is a search, or a narrowing, as it is kept.
type Search struct {
	Kind     Kind
	Mode     routing.Mode // the user's then; unless it is V2, the answer did not tell what was found
	Chat     id.Chat
	User     id.User
	Groups   []id.Group // the user's, active then
	Features discovery.Features
	Query    string    // empty unless queries are kept
	Found    []id.Tool // best first
	Time     time.Time
	// Narrowings: how many tools were effective, and which of them were kept.
	Effective int
	Kept      []id.Tool
}

// LogStore keeps searches.
type LogStore interface {
	AddSearches(context.Context, []Search) error
}

// Log hands searches over to a store, many at a time, so that no search waits for it. While the store is away 50,000
// wait; those for which there is no room, and those that a process has not handed over when it is killed, teach nothing.
type Log struct {
	store LogStore
	log   *slog.Logger
	keep  bool

	mu      sync.Mutex
	waiting []Search
	stats   LogStats

	stop, stopped chan struct{}
}

// NewLog hands over what is recorded until it is closed. keepQueries keeps the words besides the features.
func NewLog(store LogStore, keepQueries bool, log *slog.Logger) *Log {
	l := &Log{store: store, log: log, keep: keepQueries, stats: LogStats{Recorded: map[Recorded]uint64{}}, stop: make(chan struct{}), stopped: make(chan struct{})}
	go l.run()
	return l
}

// Record adds a search for a text, or a narrowing for a message. Of a message nothing is kept.
func (l *Log) Record(s Search, text string) {
	if s.Kind == KindSearch {
		s.Features = discovery.FeaturesOf(text)
		if l.keep {
			s.Query = text
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= logMax {
		l.stats.Lost++
		return
	}
	l.waiting = append(l.waiting, s)
	l.stats.Recorded[Recorded{s.Kind, s.Mode}]++
}

// LogStats is what was recorded.
type LogStats struct {
	Recorded map[Recorded]uint64
	Lost     uint64 // there was no room for them
}

// Recorded is a kind of records.
type Recorded struct {
	Kind Kind
	Mode routing.Mode
}

// Stats returns what was recorded so far.
func (l *Log) Stats() LogStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LogStats{maps.Clone(l.stats.Recorded), l.stats.Lost}
}

func (l *Log) run() {
	defer close(l.stopped)
	ticker := time.NewTicker(logInterval)
	defer ticker.Stop()
	away := false
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		err := l.Flush(context.Background())
		if err != nil && !away {
			l.log.Warn("searches cannot be written; they wait in memory", "error", err)
		}
		away = err != nil
	}
}

// Close hands over what was recorded before. It must not be called twice.
func (l *Log) Close(ctx context.Context) error {
	close(l.stop)
	select {
	case <-l.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.Flush(ctx)
}

// Flush hands over all that was recorded before.
func (l *Log) Flush(ctx context.Context) error {
	for {
		l.mu.Lock()
		batch := l.waiting[:min(len(l.waiting), logBatch)]
		l.waiting = l.waiting[len(batch):]
		l.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, logTimeout)
		err := l.store.AddSearches(limited, batch)
		cancel()
		if err != nil {
			l.mu.Lock()
			l.waiting = append(batch[:len(batch):len(batch)], l.waiting...)
			l.mu.Unlock()
			return err
		}
	}
}
