package grpcserver

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
)

type traceKey struct{}

// A bounded context is to those who use it as one of context.WithTimeout.
func TestABoundedCallIsAsOneWithATimeout(t *testing.T) {
	t.Parallel()
	parent := context.WithValue(t.Context(), traceKey{}, "trace")

	t.Run("TheDeadlinePassesForThoseWhoWait", func(t *testing.T) {
		ctx, end := bound(parent, time.Millisecond)
		defer end()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
		}
	})
	t.Run("AndForThoseWhoAsk", func(t *testing.T) {
		ctx, end := bound(parent, time.Nanosecond)
		defer end()
		for ctx.Err() == nil {
			runtime.Gosched()
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
		}
		<-ctx.Done()
	})
	t.Run("TheCallerGivesUp", func(t *testing.T) {
		caller, giveUp := context.WithCancel(parent)
		asked, end := bound(caller, time.Hour)
		defer end()
		waited, endWaited := bound(caller, time.Hour)
		defer endWaited()
		done := waited.Done()
		giveUp()
		<-done
		<-asked.Done()
		for _, ctx := range []context.Context{asked, waited} {
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Error(ctx.Err())
			}
		}
	})
	t.Run("TheCallIsOver", func(t *testing.T) {
		asked, end := bound(parent, time.Hour)
		waited, endWaited := bound(parent, time.Hour)
		done := waited.Done()
		end()
		endWaited()
		<-done
		for _, ctx := range []context.Context{asked, waited} {
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Error(ctx.Err())
			}
			<-ctx.Done()
		}
	})
	t.Run("DerivedContextsEndWithItAndTakeNoGoroutine", func(t *testing.T) {
		ctx, end := bound(parent, time.Hour)
		var derived []context.Context
		before := runtime.NumGoroutine()
		for range 1000 {
			one, cancel := context.WithCancel(ctx)
			defer cancel()
			derived = append(derived, one)
		}
		if more := runtime.NumGoroutine() - before; more > 500 { // others come and go
			t.Errorf("%d goroutines", more)
		}
		end()
		for _, one := range derived {
			<-one.Done()
		}
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		ctx, end := bound(parent, time.Hour)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				_, _ = ctx.Deadline()
				if ctx.Value(traceKey{}) != "trace" {
					t.Error("a value is lost")
				}
				_ = ctx.Err()
				<-ctx.Done()
			})
		}
		end()
		group.Wait()
		if _, ok := ctx.Deadline(); !ok || ctx.Value(traceKey{}) != "trace" {
			t.Error("it lost its deadline or a value")
		}
	})
	t.Run("ALessPatientCallerNeedsNoOther", func(t *testing.T) {
		caller, giveUp := context.WithTimeout(parent, time.Minute)
		defer giveUp()
		if ctx, _ := bound(caller, time.Hour); ctx != caller {
			t.Error("another context was made")
		}
		ctx, end := bound(caller, time.Second)
		defer end()
		if deadline, _ := ctx.Deadline(); time.Until(deadline) > time.Second {
			t.Error("the server's bound does not hold")
		}
	})
}

// BenchmarkLimit is what the interceptor costs each call: of a caller who sets a deadline, and of one who does not.
func BenchmarkLimit(b *testing.B) {
	patient, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	impatient, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	interceptor := limit(time.Minute)
	answer := func(context.Context, any) (any, error) { return nil, nil }
	wait := func(ctx context.Context, _ any) (any, error) { return ctx.Done(), nil }
	for _, one := range []struct {
		name   string
		ctx    context.Context
		handle grpc.UnaryHandler
	}{{"impatient", impatient, wait}, {"patient", patient, answer}, {"patient_waits", patient, wait}} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := interceptor(one.ctx, nil, nil, one.handle); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
