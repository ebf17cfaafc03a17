package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-retry"
	"golang.org/x/sync/errgroup"
)

const (
	// publishTimeout bounds one PUBLISH, with all it takes to get a connection.
	publishTimeout = 5 * time.Second

	firstDelay = 50 * time.Millisecond
	maxDelay   = 2 * time.Second

	// steadyAfter is how long a subscription must have lasted for its end not to count as yet another failure
	// in a row. It is longer than an attempt to subscribe can take.
	steadyAfter = 30 * time.Second
)

// Wakeups tells the other nodes of a database that something was committed, and hears it from them, through a
// channel of Redis. It is best effort: a message may be lost, and nobody learns that it was. Whoever needs to
// know what was committed looks there; a wake-up only says that looking now is worth while.
type Wakeups struct {
	client  redis.UniversalClient
	channel string
	node    string        // what this node publishes, to tell its own messages from others'
	noted   chan struct{} // holds a note that something was committed since it was last published
	outage  outage

	// idleFor is how long nothing may be heard until the connection is tested. A peer that is gone without a
	// word shows only so.
	idleFor time.Duration
}

// NewWakeups is for one node of a database, which the number identifies: nodes hear those of the same database
// and no others. A user of Redis's access control needs PUBLISH, SUBSCRIBE, PING and the channels toolgrant:*.
func NewWakeups(client redis.UniversalClient, database uint64, logger *slog.Logger) *Wakeups {
	return &Wakeups{
		client:  client,
		channel: fmt.Sprintf("toolgrant:%016x:committed", database),
		node:    rand.Text(),
		noted:   make(chan struct{}, 1),
		outage:  outage{logger: logger},
		idleFor: 5 * time.Second,
	}
}

// Publish notes that something was committed. It never blocks and never fails: Run tells the others, and tells
// them once whatever was noted meanwhile.
func (w *Wakeups) Publish() { note(w.noted) }

// note leaves a note in a channel that holds one, unless one is there already.
func note(notes chan<- struct{}) {
	select {
	case notes <- struct{}{}:
	default:
	}
}

// Run publishes what was noted, and calls woken when another node published. It calls woken, too, whenever it
// has subscribed, at first and after every outage, because it was deaf until then. Calls don't overlap: what is
// heard while woken runs becomes one more call.
//
// Run outlasts every outage of Redis. It returns nil when ctx ends, and an error only when the client is closed.
func (w *Wakeups) Run(ctx context.Context, woken func()) error {
	heard := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.publish(ctx) })
	group.Go(func() error { return w.subscribe(ctx, heard) })
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-heard:
				woken()
			}
		}
	})
	return group.Wait()
}

func (w *Wakeups) publish(ctx context.Context) error {
	delays := newDelays()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.noted: // before publishing: what is committed from now on may come too late for this message
		}
		limit, cancel := context.WithTimeout(ctx, publishTimeout)
		err := w.client.Publish(limit, w.channel, w.node).Err()
		cancel()
		if err == nil {
			w.outage.over(publishing)
			delays = newDelays()
			continue
		}
		w.Publish() // again: to wake twice does no harm
		if err := w.rest(ctx, publishing, err, delays); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (w *Wakeups) subscribe(ctx context.Context, heard chan<- struct{}) error {
	delays := newDelays()
	for {
		began := time.Now()
		err := w.listen(ctx, heard)
		if time.Since(began) > steadyAfter {
			delays = newDelays()
		}
		if err := w.rest(ctx, subscribing, err, delays); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// rest waits after a failure until it is time to try again, or ctx ends. It returns an error if trying again
// is useless.
func (w *Wakeups) rest(ctx context.Context, a activity, failure error, delays retry.Backoff) error {
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(failure, redis.ErrClosed) {
		return fmt.Errorf("wake-ups through Redis: %w", failure)
	}
	w.outage.failed(a, failure)
	delay, _ := delays.Next()
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
	return nil
}

// newDelays are those between attempts: longer and longer, and not the same in all nodes, which lost Redis at
// the same moment.
func newDelays() retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(maxDelay, retry.NewExponential(firstDelay)))
}

// listen subscribes and leaves a note of every message of another node, until the connection fails or ctx ends.
func (w *Wakeups) listen(ctx context.Context, heard chan<- struct{}) error {
	subscription := w.client.Subscribe(ctx) // to nothing yet: this way an error would be lost
	defer func() { _ = subscription.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() }) // which ends waiting for a message
	defer stop()
	if err := subscription.Subscribe(ctx, w.channel); err != nil {
		return err
	}
	for asked := true; ; { // asked: Redis owes an answer, to SUBSCRIBE or to PING
		patience := w.idleFor
		if asked {
			patience = readTimeout
		}
		message, err := subscription.ReceiveTimeout(ctx, patience)
		if err != nil {
			if asked || !isTimeout(err) {
				return err
			}
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			asked = true
			continue
		}
		asked = false
		switch message := message.(type) {
		case *redis.Subscription:
			w.outage.over(subscribing)
			note(heard)
		case *redis.Message:
			if message.Payload != w.node {
				note(heard)
			}
		}
	}
}

func isTimeout(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}
