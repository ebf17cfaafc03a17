package grpcserver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	proven "github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// from is a context of a call from an address.
func from(ctx context.Context, ip string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234}})
}

func reasonOf(err error) fault.Reason {
	f, ok := fault.As(err)
	if !ok {
		return ""
	}
	return f.Reason
}

func TestACrowdHasItsLimits(t *testing.T) {
	t.Parallel()
	crowd := NewCrowd("calls", 3, 2)
	enter := func(ip string) (*atomic.Int64, error) { return crowd.enter(whoCalls(from(t.Context(), ip))) }
	first, err := enter("10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enter("10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	_, err = enter("::ffff:10.0.0.1") // the same one
	if f, ok := fault.As(err); !ok || f.Reason != fault.ReasonCallerBusy || f.Kind != fault.ResourceExhausted || f.RetryAfter <= 0 {
		t.Errorf("the third of a caller: %v", err)
	}
	if _, err := enter("10.0.0.2"); err != nil {
		t.Errorf("another caller: %v", err)
	}
	_, err = enter("10.0.0.3")
	if f, ok := fault.As(err); !ok || f.Reason != fault.ReasonServerBusy || f.Kind != fault.Unavailable || f.RetryAfter <= 0 {
		t.Errorf("the fourth of all: %v", err)
	}
	if got, want := crowd.Stats(), (CrowdStats{3, 1, 1}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	crowd.leave(first)
	if _, err := enter("10.0.0.1"); err != nil {
		t.Errorf("after one left: %v", err)
	}
}

func TestCallersAreKnownByTheNameThatTheyProved(t *testing.T) {
	t.Parallel()
	crowd := NewCrowd("calls", 0, 1)
	as := func(actor, ip string) context.Context {
		return proven.WithIdentity(from(t.Context(), ip), &proven.Identity{Actor: actor})
	}
	answer := func(context.Context, any) (any, error) { return nil, nil }
	inside := func(context.Context, any) (any, error) {
		_, same := admit(crowd)(as("key:ann", "10.0.0.2"), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, answer)
		_, health := admit(crowd)(as("key:ann", "10.0.0.2"), nil, &grpc.UnaryServerInfo{FullMethod: healthv1.Health_Check_FullMethodName}, answer)
		_, other := admit(crowd)(as("key:bob", "10.0.0.1"), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, answer)
		return nil, fmt.Errorf("%s, %v, %v", reasonOf(same), health, other)
	}
	_, err := admit(crowd)(as("key:ann", "10.0.0.1"), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, inside)
	if err.Error() != "CALLER_BUSY, <nil>, <nil>" {
		t.Error(err)
	}
}

// However many come and go, nobody is counted twice or left inside, and who is gone is forgotten.
func TestACrowdForgetsThoseWhoLeft(t *testing.T) {
	t.Parallel()
	crowd := NewCrowd("calls", 0, 3)
	var group sync.WaitGroup
	var refused, over atomic.Int64
	var inside [4]atomic.Int64
	for worker := range 8 {
		group.Go(func() {
			for n := range 10_000 {
				busy := n % 4
				caller := who{name: fmt.Sprint("busy", busy)}
				if n%2 == 0 {
					caller = who{name: fmt.Sprint("once", worker, n)}
				}
				of, err := crowd.enter(caller)
				if err != nil {
					refused.Add(1)
					continue
				}
				if n%2 == 1 {
					if inside[busy].Add(1) > 3 {
						over.Add(1)
					}
					inside[busy].Add(-1)
				}
				crowd.leave(of)
			}
		})
	}
	group.Wait()
	if n := crowd.Stats().Inside; n != 0 || over.Load() > 0 {
		t.Errorf("%d are left inside, %d times too many were", n, over.Load())
	}
	known := 0
	for i := range crowd.shards {
		known += len(crowd.shards[i].known)
		for caller, n := range crowd.shards[i].known {
			if n.Load() != 0 {
				t.Errorf("%v has %d under way", caller, n.Load())
			}
		}
	}
	if known > crowdShards*(forgetAbove+1) {
		t.Errorf("%d callers are remembered", known)
	}
}

// BenchmarkAdmit is what the limits of a server and of callers cost each call.
func BenchmarkAdmit(b *testing.B) {
	interceptor := admit(NewCrowd("calls", 10_000, 5_000))
	info := &grpc.UnaryServerInfo{FullMethod: "/toolgrant.v1.EntitlementService/ResolveTools"}
	answer := func(context.Context, any) (any, error) { return nil, nil }
	ctx := from(b.Context(), "10.0.0.1")
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = interceptor(ctx, nil, info, answer)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = interceptor(ctx, nil, info, answer)
			}
		})
	})
}
