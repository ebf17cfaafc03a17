package quota

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Usage is what a user used of a tool on a day.
type Usage struct {
	Day    time.Time // its midnight, in UTC
	User   id.User
	Tool   id.Tool
	Calls  int64
	Tokens int64
}

// HistoryStore keeps history for good.
type HistoryStore interface {
	// AddHistory adds a batch to what is kept, or nothing if it was added before. Batches of one node are numbered
	// 1, 2, 3 …, and one is repeated until it is known to be added. Its parts stand in the order of day, user and tool.
	AddHistory(ctx context.Context, node string, batch int64, parts []Usage) error
}

const (
	historyInterval = 500 * time.Millisecond
	historyTimeout  = 10 * time.Second
	historyBatch    = 10_000  // rows in a transaction
	historyMax      = 100_000 // days, users and tools that wait for theirs
)

// History adds up what is used, for bills, and hands it to a store every half second. While the store is away it goes
// on adding up, of as many different users and tools as historyMax. A process that is killed loses what it
// has not handed over: what was used in less than a second, or since the store is away.
//
// The day is that of the node's clock when the use was recorded.
type History struct {
	store HistoryStore
	log   *slog.Logger
	node  string

	mu      sync.Mutex
	sums    map[historyKey]Cost
	lost    Cost // of what there was no room for, and nobody was told of yet
	allLost Cost // ever
	sending int  // how many sums were taken and are not known to be kept
	written time.Time

	// Only flush, which runs once at a time, uses these. A batch whose fate is unknown must be repeated as it is, so
	// what was taken from sums is not added up with what comes later.
	taken []Usage
	batch int64 // the number of the first batch of taken

	stop, stopped chan struct{}
}

const secondsPerDay = 24 * 60 * 60

// historyKey has days since 1970 in it: it is made for each call.
type historyKey struct {
	day  int64
	user id.User
	tool id.Tool
}

// NewHistory returns a history that hands over what is recorded until it is closed.
func NewHistory(store HistoryStore, log *slog.Logger) *History {
	h := &History{store: store, log: log, node: rand.Text(), batch: 1, sums: make(map[historyKey]Cost), written: time.Now(),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go h.run()
	return h
}

// Record adds what a call used, once it is certain: when a known cost was admitted, or a reservation committed.
func (h *History) Record(user id.User, tool id.Tool, calls, tokens int64) {
	key := historyKey{time.Now().Unix() / secondsPerDay, user, tool}
	h.mu.Lock()
	defer h.mu.Unlock()
	sum, known := h.sums[key]
	if !known && len(h.sums) == historyMax {
		h.lost, h.allLost = Cost{h.lost.Calls + calls, h.lost.Tokens + tokens}, Cost{h.allLost.Calls + calls, h.allLost.Tokens + tokens}
		return
	}
	h.sums[key] = Cost{sum.Calls + calls, sum.Tokens + tokens}
}

// HistoryStats is how a history does.
type HistoryStats struct {
	Waiting int           // sums of a day, user and tool that are not known to be kept
	Age     time.Duration // since all that was recorded before was last kept
	Lost    Cost          // since the start, for lack of room
}

// Stats returns how the history does.
func (h *History) Stats() HistoryStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return HistoryStats{Waiting: len(h.sums) + h.sending, Age: time.Since(h.written), Lost: h.allLost}
}

func (h *History) run() {
	defer close(h.stopped)
	ticker := time.NewTicker(historyInterval)
	defer ticker.Stop()
	away := false
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
		}
		err := h.flush(context.Background())
		if err != nil && !away {
			h.log.Warn("history of quotas cannot be written; it waits in memory", "error", err)
		} else if err == nil && away {
			h.log.Info("history of quotas is written again")
		}
		away = err != nil
	}
}

// Close hands over what was recorded before, and tries again until ctx ends. It must not be called twice.
func (h *History) Close(ctx context.Context) error {
	close(h.stop)
	select {
	case <-h.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		err := h.flush(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(historyInterval):
		case <-ctx.Done():
			return err
		}
	}
}

// flush hands over all that was recorded before.
func (h *History) flush(ctx context.Context) error {
	if err := h.send(ctx); err != nil { // what was taken earlier
		return err
	}
	begin := h.take()
	if err := h.send(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written = begin
	return nil
}

// take moves the sums to where they are sent from, and returns when it did.
func (h *History) take() time.Time {
	h.mu.Lock()
	at, sums, lost := time.Now(), h.sums, h.lost
	h.sums, h.lost, h.sending = make(map[historyKey]Cost), Cost{}, len(sums)
	h.mu.Unlock()
	if lost != (Cost{}) {
		h.log.Error("history of quotas was lost: too many users and tools while it could not be written", "calls", lost.Calls, "tokens", lost.Tokens)
	}
	h.taken = make([]Usage, 0, len(sums))
	for key, sum := range sums {
		h.taken = append(h.taken, Usage{time.Unix(key.day*secondsPerDay, 0).UTC(), key.user, key.tool, sum.Calls, sum.Tokens})
	}
	slices.SortFunc(h.taken, func(a, b Usage) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.User, b.User), cmp.Compare(a.Tool, b.Tool))
	})
	return at
}

// send sends what was taken, batch by batch.
func (h *History) send(ctx context.Context) error {
	for len(h.taken) > 0 {
		batch := h.taken[:min(historyBatch, len(h.taken))]
		limited, cancel := context.WithTimeout(ctx, historyTimeout)
		err := h.store.AddHistory(limited, h.node, h.batch, batch)
		cancel()
		if err != nil {
			return err
		}
		h.taken, h.batch = h.taken[len(batch):], h.batch+1
		h.mu.Lock()
		h.sending = len(h.taken)
		h.mu.Unlock()
	}
	return nil
}
