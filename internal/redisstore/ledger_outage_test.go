package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// wantUnavailable checks that all calls fail soon. The bound is far above what they are given, since a busy machine
// may be slow, and far below waiting for a Redis that does not answer.
func wantUnavailable(t *testing.T, l *Ledger, rule quota.Limited) {
	t.Helper()
	ctx := testkit.Context(t)
	begin := time.Now()
	_, take := l.Take(ctx, operation("lost", 1, 0, rule))
	_, reserve := l.Take(ctx, operation("lost2", 1, time.Minute, rule))
	_, commit := l.Commit(ctx, "held", nil)
	_, states := l.States(ctx, "u", []quota.Limited{rule})
	for _, err := range []error{take, reserve, commit, states} {
		if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || f.Reason != fault.ReasonCountersUnavailable {
			t.Errorf("got %v", err)
		}
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

// A Redis that stands still runs what it was sent when it goes on: whoever repeats is not charged twice.
func TestLedgerWhileRedisIsPaused(t *testing.T) {
	server := testkit.RedisServer(t)
	l := NewLedger(openFor(t, server.URL), 1, 80*time.Millisecond)
	slow := NewLedger(openFor(t, server.URL), 1, 20*time.Second)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	must(t)(slow.Take(testkit.Context(t), operation("held", 1, time.Hour, rule)))
	// Both scripts are known, and there are connections.
	must(t)(slow.Take(testkit.Context(t), operation("before", 1, 0, rule)))
	for range 5 {
		server.Pause()
		wantUnavailable(t, l, rule)
		server.Resume()
	}
	ctx := testkit.Context(t)
	for range 3 {
		must(t)(slow.Take(ctx, operation("lost", 1, 0, rule)))
		must(t)(slow.Take(ctx, operation("lost2", 1, time.Minute, rule)))
		must(t)(slow.Commit(ctx, "held", nil))
	}
	states, err := slow.States(ctx, "u", []quota.Limited{rule})
	if err != nil || states[0].Used != 3 || states[0].Held != 1 {
		t.Errorf("%+v, %v", states, err)
	}
}

// A Redis that was killed begins from nothing, and so do the counters; scripts are loaded again. The same after
// FLUSHALL.
func TestLedgerWhenRedisForgets(t *testing.T) {
	server := testkit.RedisServer(t)
	ctx := testkit.Context(t)
	client := openFor(t, server.URL)
	l, slow := NewLedger(client, 1, 80*time.Millisecond), NewLedger(client, 1, 20*time.Second)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	forget := map[string]func(){
		"killed": func() {
			server.Kill()
			wantUnavailable(t, l, rule)
			server.Start()
		},
		"flushed": func() {
			if err := client.FlushAll(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
	for how, forget := range forget {
		must(t)(slow.Take(ctx, operation("a"+how, 10, 0, rule)))
		must(t)(slow.Take(ctx, operation("held"+how, 1, time.Hour, limited("other", quota.UnitCalls, 10, fixed(time.Hour)))))
		forget()
		var d quota.Decision
		for { // connections that broke are noticed one by one
			var err error
			if d, err = slow.Take(ctx, operation("b"+how, 1, 0, rule)); err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
		if !d.Admitted || d.States[0].Used != 1 {
			t.Errorf("%s: %+v", how, d)
		}
		_, err := slow.Release(ctx, "held"+how)
		wantFault(t, err, fault.ReasonNotFound)
		if _, err := slow.Reset(ctx, "u", rule); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLedgerAndTheCallersContext(t *testing.T) {
	l := NewLedger(openFor(t, testkit.Redis(t)), 1, 20*time.Second)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	must(t)(l.Take(testkit.Context(t), operation("a", 1, time.Hour, rule)))
	over, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	if _, err := l.Take(over, operation("b", 1, 0, rule)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d := must(t)(l.Commit(over, "a", nil)); d.States[0].Used != 1 {
		t.Errorf("%+v", d)
	}
}
