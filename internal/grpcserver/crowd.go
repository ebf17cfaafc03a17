package grpcserver

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// Crowd counts what is under way, in all and of each caller, and refuses what is too much: a server that takes on
// more than it can do answers nobody in time. There are no queues: who is refused asks another server, or later.
//
// It takes no lock that all calls share, and forgets callers that have nothing under way.
type Crowd struct {
	what       string // in messages
	most, each int64
	inside     atomic.Int64
	full, busy atomic.Uint64 // refusals: the server's limit, a caller's
	seed       maphash.Seed
	shards     [crowdShards]crowdShard
}

const (
	crowdShards = 64
	// forgetAbove is how many callers a shard knows before it looks for some to forget.
	forgetAbove = 256
)

// who is a caller: a name that was proven, or else an address.
type who struct {
	name    string
	address netip.Addr
}

type crowdShard struct {
	mu    sync.RWMutex
	known map[who]*atomic.Int64
	_     [32]byte // shards are not to share a cache line
}

// CrowdStats is how a Crowd stands.
type CrowdStats struct {
	Inside         int64  // under way
	RefusedServer  uint64 // since the server had too much to do
	RefusedCallers uint64 // since the caller had
}

// NewCrowd returns a crowd of at most so many calls (or streams: what names them), and of each caller so many; 0: any.
func NewCrowd(what string, most, each int) *Crowd {
	c := &Crowd{what: what, most: int64(most), each: int64(each), seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].known = map[who]*atomic.Int64{}
	}
	return c
}

// Stats tells how it stands.
func (c *Crowd) Stats() CrowdStats {
	return CrowdStats{c.inside.Load(), c.full.Load(), c.busy.Load()}
}

// enter counts a call, or refuses it. Who entered must leave.
func (c *Crowd) enter(caller who) (of *atomic.Int64, err error) {
	if n := c.inside.Add(1); c.most > 0 && n > c.most {
		c.inside.Add(-1)
		c.full.Add(1)
		return nil, &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonServerBusy, RetryAfter: backOff(),
			Message: fmt.Sprintf("this server has %d %s under way, as many as it takes; try again, or another one", c.most, c.what)}
	}
	if c.each <= 0 {
		return nil, nil
	}
	of = c.count(caller)
	if of.Load() > c.each {
		of.Add(-1)
		c.inside.Add(-1)
		c.busy.Add(1)
		return nil, &fault.Fault{Kind: fault.ResourceExhausted, Reason: fault.ReasonCallerBusy, RetryAfter: backOff(),
			Message: fmt.Sprintf("this caller has %d %s under way at this server, as many as it may", c.each, c.what)}
	}
	return of, nil
}

func (c *Crowd) leave(of *atomic.Int64) {
	c.inside.Add(-1)
	if of != nil {
		of.Add(-1)
	}
}

// count adds one to a caller's calls. It does so while the caller cannot be forgotten.
func (c *Crowd) count(caller who) *atomic.Int64 {
	shard := c.shardOf(caller)
	shard.mu.RLock()
	of := shard.known[caller]
	if of != nil {
		of.Add(1)
	}
	shard.mu.RUnlock()
	if of != nil {
		return of
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if of = shard.known[caller]; of == nil {
		if len(shard.known) >= forgetAbove {
			for other, n := range shard.known {
				if n.Load() == 0 {
					delete(shard.known, other)
				}
			}
		}
		of = new(atomic.Int64)
		shard.known[caller] = of
	}
	of.Add(1)
	return of
}

func (c *Crowd) shardOf(caller who) *crowdShard {
	if caller.name != "" {
		return &c.shards[maphash.String(c.seed, caller.name)%crowdShards]
	}
	bytes := caller.address.As16() // of neighbours, the last ones differ
	return &c.shards[(bytes[15]^bytes[13]^bytes[7])%crowdShards]
}

// backOff is not the same for all, so that not all come back at once.
func backOff() time.Duration { return 100*time.Millisecond + rand.N(200*time.Millisecond) }

// admit refuses unary calls that are too many. Health checks are let through: a busy server is not a dead one.
func admit(crowd *Crowd) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if crowd == nil || info.FullMethod == healthv1.Health_Check_FullMethodName {
			return handle(ctx, request)
		}
		of, err := crowd.enter(whoCalls(ctx))
		if err != nil {
			return nil, err
		}
		defer crowd.leave(of)
		return handle(ctx, request)
	}
}

// admitStream is admit of streams.
func admitStream(crowd *Crowd) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if crowd == nil {
			return handle(server, stream)
		}
		of, err := crowd.enter(whoCalls(stream.Context()))
		if err != nil {
			return err
		}
		defer crowd.leave(of)
		return handle(server, stream)
	}
}

// whoCalls is a caller by the name that it has proven, if there is one, or by its address.
func whoCalls(ctx context.Context) who {
	if proven := caller.IdentityOf(ctx); proven != nil {
		return who{name: proven.Actor}
	}
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return who{}
	}
	if tcp, ok := p.Addr.(*net.TCPAddr); ok {
		address, _ := netip.AddrFromSlice(tcp.IP)
		return who{address: address.Unmap()}
	}
	withPort, err := netip.ParseAddrPort(p.Addr.String()) // of HTTP
	if err != nil {
		return who{name: p.Addr.Network()}
	}
	return who{address: withPort.Addr().Unmap()}
}
