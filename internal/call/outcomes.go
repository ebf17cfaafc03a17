package call

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

const (
	outcomesInterval = 500 * time.Millisecond
	outcomesTimeout  = 10 * time.Second
	outcomesBatch    = 5_000   // rows in a transaction
	outcomesMax      = 100_000 // that wait for theirs
)

// Outcome is how a call went.
type Outcome struct {
	Call     id.Call
	Chat     id.Chat
	User     id.User
	Tool     id.Tool
	Function string
	Outcome  health.Outcome
	Latency  time.Duration
	Tokens   int64
	Time     time.Time // when it was reported
	Turn     int32
	Mode     routing.Mode // empty: not known
}

// OutcomeStore keeps outcomes.
type OutcomeStore interface {
	// AddOutcomes adds those of calls that have none yet.
	AddOutcomes(context.Context, []Outcome) error
}

// Outcomes hands outcomes over to a store every half second, for whoever learns from them. While the store is away
// 100,000 wait. A process that is killed loses what it has not handed over: those of less than a second, or since the
// store is away.
type Outcomes struct {
	store OutcomeStore
	log   *slog.Logger

	mu      sync.Mutex
	waiting []Outcome
	lost    int // of those that there was no room for

	stop, stopped chan struct{}
}

// NewOutcomes hands over what is recorded until it is closed.
func NewOutcomes(store OutcomeStore, log *slog.Logger) *Outcomes {
	o := &Outcomes{store: store, log: log, stop: make(chan struct{}), stopped: make(chan struct{})}
	go o.run()
	return o
}

// Record adds an outcome. Of one call the first counts.
func (o *Outcomes) Record(one Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= outcomesMax {
		o.lost++
		return
	}
	o.waiting = append(o.waiting, one)
}

func (o *Outcomes) run() {
	defer close(o.stopped)
	ticker := time.NewTicker(outcomesInterval)
	defer ticker.Stop()
	away := false
	for {
		select {
		case <-o.stop:
			return
		case <-ticker.C:
		}
		err := o.flush(context.Background())
		if err != nil && !away {
			o.log.Warn("how calls went cannot be written; it waits in memory", "error", err)
		} else if err == nil && away {
			o.log.Info("how calls went is written again")
		}
		away = err != nil
	}
}

// Close hands over what was recorded before, and tries again until ctx ends. It must not be called twice.
func (o *Outcomes) Close(ctx context.Context) error {
	close(o.stop)
	select {
	case <-o.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		err := o.flush(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(outcomesInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// flush hands over all that was recorded before. A batch whose fate is unknown is handed over again.
func (o *Outcomes) flush(ctx context.Context) error {
	for {
		o.mu.Lock()
		batch, lost := o.waiting[:min(len(o.waiting), outcomesBatch)], o.lost
		o.lost = 0
		o.mu.Unlock()
		if lost > 0 {
			o.log.Error("how calls went was lost: too many while it could not be written", "calls", lost)
		}
		if len(batch) == 0 {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, outcomesTimeout)
		err := o.store.AddOutcomes(limited, batch)
		cancel()
		if err != nil {
			return err
		}
		o.mu.Lock()
		if o.waiting = o.waiting[len(batch):]; len(o.waiting) == 0 {
			o.waiting = nil
		}
		o.mu.Unlock()
	}
}
