package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
)

var (
	errClosed  = errors.New("the slices were given back")
	errRetired = errors.New("this slice was given back")
)

// renewal is a slice with the goroutine that asks Redis for it. It ends some time after the last caller did.
type renewal struct {
	ledger *Ledger
	holder string
	rule   quota.Limited // what it counts, and over what time
	wake   chan struct{} // holds a note that Redis should be asked

	mu    sync.Mutex
	slice slice
}

func newRenewal(ledger *Ledger, holder string, rule *quota.Limited) *renewal {
	return &renewal{ledger: ledger, holder: holder, rule: *rule, wake: make(chan struct{}, 1),
		slice: slice{limit: rule.Own, shadow: rule.Shadow, places: rule.Unit == quota.UnitConcurrentCalls, touched: time.Now()}}
}

// counts tells whether this is what a rule counts, over its time. The limit may be another one.
func (r *renewal) counts(rule *quota.Limited) bool {
	if r.rule.Unit != rule.Unit || r.rule.Window.Fixed != rule.Window.Fixed {
		return false
	}
	a, b := &r.rule.Window, &rule.Window
	sameCalendar := a.Calendar == b.Calendar || a.Calendar != nil && b.Calendar != nil && *a.Calendar == *b.Calendar
	sameBucket := a.TokenBucket == b.TokenBucket ||
		a.TokenBucket != nil && b.TokenBucket != nil && a.TokenBucket.RefillPerSecond == b.TokenBucket.RefillPerSecond
	return sameCalendar && sameBucket
}

// spend takes units; if it must wait, until a deadline.
func (r *renewal) spend(ctx context.Context, rule *quota.Limited, cost int64, now, deadline time.Time) (verdict, quota.State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.slice
	if s.retired {
		return failed, quota.State{}, errRetired
	}
	s.adopt(rule)
	r.rule.OnAbandoned = rule.OnAbandoned
	v := s.spend(now, cost)
	if v == waits {
		var err error
		if v, err = r.wait(ctx, cost, deadline); err != nil {
			return failed, quota.State{}, err
		}
		now = time.Now()
	}
	if v == failed {
		if s.failure != nil {
			return failed, quota.State{}, s.failure
		}
		return failed, quota.State{}, unavailable(nil) // it was, just now
	}
	if s.failure == nil && s.due(now) {
		note(r.wake)
	}
	state := s.state(rule)
	if v == refused {
		state.RetryAfter = s.retryAfter(now, cost)
	}
	return v, state, nil
}

// wait gives the lock away meanwhile.
func (r *renewal) wait(ctx context.Context, cost int64, deadline time.Time) (verdict, error) {
	w := &waiter{cost, make(chan verdict, 1)}
	r.slice.queue = append(r.slice.queue, w)
	note(r.wake)
	r.mu.Unlock()
	defer r.mu.Lock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	select {
	case v := <-w.result:
		return v, nil
	case <-timer.C:
		err = unavailable(context.DeadlineExceeded)
	case <-ctx.Done():
		err = fmt.Errorf("counters in Redis: %w", context.Cause(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slice.leave(w)
	return failed, err
}

// undo gives back what was spent.
func (r *renewal) undo(rule *quota.Limited, cost int64) quota.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slice.undo(cost)
	return r.slice.state(rule)
}

// look tells how the rule stands, if that is known.
func (r *renewal) look(rule *quota.Limited) (state quota.State, known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slice.state(rule), r.slice.known && !r.slice.retired, r.slice.failure
}

// run asks Redis whenever it is due, until nobody needs the slice any more, closing says so, or ctx ends.
func (r *renewal) run(ctx context.Context, closing <-chan struct{}) {
	ticker := time.NewTicker(sliceTick)
	defer ticker.Stop()
	for r.renew(ctx) {
		select {
		case <-r.wake:
		case <-ticker.C:
		case <-closing:
			closing = nil
			r.retire()
		case <-ctx.Done():
			r.mu.Lock()
			r.slice.fail(time.Now(), unavailable(errClosed))
			r.mu.Unlock()
			return
		}
	}
}

func (r *renewal) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slice.retired = true
	note(r.wake)
}

// renew asks if it is due, and tells whether to go on.
func (r *renewal) renew(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := &r.slice, time.Now()
	if s.idle(now) {
		s.retired = true
	}
	for s.due(now) && (!s.retired || !s.over(now)) {
		request := s.ask(now)
		rule := r.rule
		rule.Own, rule.Shadow = request.limit, s.shadow
		r.mu.Unlock()
		answer, err := r.ask(ctx, &rule, request)
		r.mu.Lock()
		now = time.Now()
		if err != nil {
			s.fail(now, err)
			break
		}
		s.hear(now, request, answer)
	}
	return !s.retired || !s.over(now)
}

func (r *renewal) ask(ctx context.Context, rule *quota.Limited, q sliceRequest) (sliceAnswer, error) {
	call := r.ledger.call(r.ledger.scripts.slice, systemSubject(rule.ID), "n:"+r.holder, 1)
	call.argue(q.sequence, q.total, q.charged, q.keep, q.need, q.least, q.want, sliceLease.Milliseconds(),
		sliceRemembered.Milliseconds(), r.holder)
	call.rule(rule, 0, 0)
	a, err := call.run(ctx)
	if err != nil {
		return sliceAnswer{}, err
	}
	if a.status != done {
		return sliceAnswer{}, fmt.Errorf("counters in Redis: slice %s: status %d", r.holder, a.status)
	}
	granted := a.numbers[1]
	a.numbers[1] = 0 // no lease's end
	return sliceAnswer{granted, a.decision([]quota.Limited{*rule}).States[0], a.denied(0)}, nil
}
