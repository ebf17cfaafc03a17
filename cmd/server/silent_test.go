package main

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestADatabaseThatSaysNothingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	relay, url := newRelay(t, testkit.Database(t))
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_CALL_TIMEOUT=5s")
	server.start()
	server.awaitReady()
	c := server.connect()
	w := newWorkload(ctx, t, c)
	// None of the calls has a deadline of its own.
	expected := func(err error) bool { return databaseAway(err) || outOfTime(ctx, err) }
	stop := w.start(ctx, expected, c)
	w.awaitWrites(20)

	// Whoever was asking PostgreSQL gets no answer.
	failed := w.failed.Load()
	relay.silent.Store(true)
	await(t, "it says that PostgreSQL does not answer", func() bool { return server.saysNotReady(ctx, c) })
	stop() // which waits until every call has returned
	if w.failed.Load() == failed {
		t.Error("no call failed")
	}

	// Whoever connects gets none either.
	relay.cut()
	await(t, "it says that no connection comes about", func() bool {
		_, err := resolve(ctx, c, "c0")
		if !expected(err) {
			t.Fatalf("a read of a silent database: %v", err)
		}
		return databaseAway(err)
	})
	if !server.saysNotReady(ctx, c) {
		t.Error("it is ready without a database")
	}

	relay.speak()
	await(t, "it says that PostgreSQL is back", func() bool { return server.saysReady(ctx, c) })
	stop = w.start(ctx, expected, c)
	w.awaitWrites(20)
	stop()
	w.check(ctx, c)
	w.repeat(ctx, c)
	w.report()
}

// outOfTime tells whether a call took longer than the server lets it, and not only longer than the test.
func outOfTime(test context.Context, err error) bool {
	return status.Code(err) == codes.DeadlineExceeded && test.Err() == nil
}
