package replica

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// polls is who waits for the next poll, and how polls went.
type polls struct {
	wake chan struct{} // holds one; more would not change anything

	mu      sync.Mutex
	waiting []chan error
	last    error // nil: the last one succeeded
	stopped chan struct{}

	sent, failed, lost atomic.Uint64
}

func (p *polls) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Wake makes the replica look for changes soon. It never blocks.
func (r *Replica) Wake() {
	select {
	case r.polls.wake <- struct{}{}:
	default:
	}
}

// ask waits for a poll that is sent from now on.
func (r *Replica) ask(ctx context.Context) error {
	done := make(chan error, 1)
	r.polls.mu.Lock()
	r.polls.waiting = append(r.polls.waiting, done)
	r.polls.mu.Unlock()
	r.Wake()
	select {
	case err := <-done:
		return err
	case <-r.polls.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stopped is closed when Run ends.
func (r *Replica) Stopped() <-chan struct{} { return r.polls.stopped }

// ErrStopped is what is asked for after Run.
var ErrStopped = &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable, Message: "the server is shutting down"}

// Run follows the source until ctx ends. It must be called once.
func (r *Replica) Run(ctx context.Context) {
	interval := r.options.MaxStaleness / 4
	timer := time.NewTimer(interval)
	defer timer.Stop()
	defer close(r.polls.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.polls.wake:
		case <-timer.C:
		}
		r.poll(ctx)
		timer.Reset(interval)
	}
}

// poll refreshes the state, tells those who waited before it began, and logs when failures begin and end.
func (r *Replica) poll(ctx context.Context) {
	r.polls.mu.Lock()
	waiting := r.polls.waiting
	r.polls.waiting = nil
	before := r.polls.last
	r.polls.mu.Unlock()

	err := r.refresh(ctx)

	r.polls.mu.Lock()
	r.polls.last = err
	r.polls.mu.Unlock()
	for _, done := range waiting {
		done <- err
	}
	switch {
	case err != nil && before == nil && ctx.Err() == nil:
		r.options.Logger.WarnContext(ctx, "changes cannot be read; answers from memory end when they are older than allowed", "error", err)
	case err == nil && before != nil:
		r.options.Logger.InfoContext(ctx, "changes are read again")
	}
}

// timedOut words the end of a read's own time.
func timedOut(err error, timeout time.Duration) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable,
		Message: "the database did not answer in " + timeout.String(), Cause: err}
}

// refresh reads what changed since the state that is held, and publishes the next one.
func (r *Replica) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	r.polls.sent.Add(1)
	before := r.state.Load()
	var since revision.Revision
	if before != nil {
		since = before.revision
	}
	next := &state{asOf: time.Now()}
	d, err := r.options.Source.Changes(ctx, since)
	if err != nil {
		r.polls.failed.Add(1)
		return timedOut(err, r.options.Timeout)
	}
	next.revision, next.token, next.version, next.world = d.Revision, d.Revision.String(), d.Version, d.World
	if before == nil || d.Lost {
		r.polls.lost.Add(1)
		next.facts, next.accounts = newFactCache(r.options, d.Revision), newAccountCache(r.options)
	} else {
		next.facts, next.accounts, next.keys = before.facts, before.accounts, before.keys
		next.facts.forget(d.Users, d.Chats, d.Revision)
		next.accounts.forget(d.Users)
	}
	if d.Keys != nil {
		next.keys = d.Keys
	}
	r.state.Store(next)
	if before != nil && (d.Lost || before.world != next.world) {
		r.watchers.wakeAll()
	} else {
		r.watchers.wake(d.Users, d.Chats)
	}
	r.approvalWatchers.tell(d.Approvals, before != nil && d.Lost)
	return nil
}
