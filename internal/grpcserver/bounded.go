package grpcserver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// bounded is a call's context with a deadline that costs nothing until somebody waits for it. A timer, and what it
// takes to end those who wait, would cost as much as half of an answer from memory, which waits for nothing. So it is
// made by the first who calls Done, as everything does that may wait.
type bounded struct {
	context.Context // the caller's
	deadline        time.Time
	waiting         atomic.Pointer[context.Context] // the context with a timer; nil: nobody has waited
	mu              sync.Mutex                      // for making it
	cancel          context.CancelFunc
	over            bool
}

// bound bounds a call's time. The context ends when end is called, which must be when the call does.
func bound(ctx context.Context, timeout time.Duration) (limited context.Context, end func()) {
	deadline := time.Now().Add(timeout)
	if own, ok := ctx.Deadline(); ok && !own.After(deadline) {
		return ctx, func() {} // the caller is less patient, and gRPC ends the call when it has returned
	}
	b := &bounded{Context: ctx, deadline: deadline}
	return b, b.end
}

func (b *bounded) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.cancel != nil {
		b.cancel()
	}
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} { return b.timed().Done() }

func (b *bounded) timed() context.Context {
	if made := b.waiting.Load(); made != nil {
		return *made
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if made := b.waiting.Load(); made != nil {
		return *made
	}
	made, cancel := context.WithDeadline(b.Context, b.deadline)
	if b.over {
		cancel()
	}
	b.cancel = cancel
	b.waiting.Store(&made)
	return made
}

// Err implements context.Context.
func (b *bounded) Err() error {
	if made := b.waiting.Load(); made != nil {
		return (*made).Err()
	}
	if err := b.Context.Err(); err != nil {
		return err
	}
	if time.Now().Before(b.deadline) && !b.ended() {
		return nil
	}
	return b.timed().Err()
}

func (b *bounded) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// Value implements context.Context. Contexts that are derived find the one with the timer by a value of it, so that
// they end with it and take no goroutine.
func (b *bounded) Value(key any) any {
	if made := b.waiting.Load(); made != nil {
		return (*made).Value(key)
	}
	return b.Context.Value(key)
}
