package quota

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// failuresToOpen is after how many failures in a row a ledger is not asked any more.
	failuresToOpen = 5
	// silence is for how long besides nobody must have been answered: commands that travel together also fail together,
	// and one late batch on a busy machine is no outage.
	silence = 250 * time.Millisecond
	// coolDown is for how long, before one request is let through to see. A random part more keeps nodes from
	// asking all at once.
	coolDown = 500 * time.Millisecond
)

// breaker asks a ledger as long as it answers. One that does not answer costs each caller the time that it is
// given: after some failures in a row all are answered at once that it is unavailable, but for one now and then who
// finds out whether that is over.
type breaker struct {
	ledger  Ledger
	givenUp atomic.Bool
	*gobreaker.CircuitBreaker[any]
}

// newBreaker tells changed when the ledger is given up, and when it answers again.
func newBreaker(ledger Ledger, changed func(open bool)) *breaker {
	begin, answered := time.Now(), &atomic.Int64{} // when the ledger last did, since the beginning
	b := &breaker{ledger: ledger}
	b.CircuitBreaker = gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		Timeout: coolDown + rand.N(coolDown),
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= failuresToOpen && time.Since(begin)-time.Duration(answered.Load()) > silence
		},
		IsSuccessful: func(err error) bool {
			if unavailable(err) {
				return false
			}
			answered.Store(int64(time.Since(begin)))
			return true
		},
		// A caller who went away says nothing about the ledger.
		IsExcluded: func(err error) bool {
			return !unavailable(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
		},
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.givenUp.Store(to != gobreaker.StateClosed)
			if from == gobreaker.StateClosed || to == gobreaker.StateClosed {
				changed(to != gobreaker.StateClosed)
			}
		},
	})
	return b
}

// unavailable tells whether counters cannot be reached.
func unavailable(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Reason == fault.ReasonCountersUnavailable
}

// notAsked tells whether the ledger was not even asked, so that nothing can have been charged.
func notAsked(err error) bool { return errors.Is(err, errOpen) }

var errOpen = &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonCountersUnavailable,
	Message: "the counters of quotas can't be reached; try again"}

func through[T any](b *breaker, ask func() (T, error)) (answer T, err error) {
	_, err = b.Execute(func() (any, error) {
		answer, err = ask()
		return nil, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = errOpen
	}
	return answer, err
}

// Take implements Ledger. Whether an outage is over is found out by a question that charges nothing: if its answer is
// lost, too, nobody has to wonder what was charged.
func (b *breaker) Take(ctx context.Context, o Operation) (Decision, error) {
	if b.givenUp.Load() {
		if _, err := b.States(ctx, o.User, nil); unavailable(err) {
			return Decision{}, errOpen
		}
	}
	return through(b, func() (Decision, error) { return b.ledger.Take(ctx, o) })
}

// Commit implements Ledger.
func (b *breaker) Commit(ctx context.Context, operation string, tokens *int64) (Decision, error) {
	return through(b, func() (Decision, error) { return b.ledger.Commit(ctx, operation, tokens) })
}

// Release implements Ledger.
func (b *breaker) Release(ctx context.Context, operation string) (Decision, error) {
	return through(b, func() (Decision, error) { return b.ledger.Release(ctx, operation) })
}

// States implements Ledger.
func (b *breaker) States(ctx context.Context, user id.User, rules []Limited) ([]State, error) {
	return through(b, func() ([]State, error) { return b.ledger.States(ctx, user, rules) })
}

// Reset implements Ledger.
func (b *breaker) Reset(ctx context.Context, user id.User, rule Limited) (State, error) {
	return through(b, func() (State, error) { return b.ledger.Reset(ctx, user, rule) })
}
