package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// audience is many watchers. They look for a text in the messages as they are on the wire: decoding them all
// would take time from the server that is measured.
type audience struct {
	size    int
	news    atomic.Pointer[news] // what is waited for; nil: nothing
	failure chan error           // the first one
}

// news is what an audience waits for.
type news struct {
	text    []byte
	start   time.Time
	delays  []atomic.Int64 // by watcher, since start; 0: not there yet
	missing atomic.Int64
	all     chan struct{} // closed when everybody has it
}

func newAudience(size int) *audience { return &audience{size: size, failure: make(chan error, 1)} }

// open opens the streams, and returns when each has its first message. They end when stop is called, which waits.
func (a *audience) open(ctx context.Context, w *world, conns []*grpc.ClientConn) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	stop = func() {
		cancel()
		listening.Wait()
	}
	r := w.random(kindWatcher, 0)
	opening, openingCtx := errgroup.WithContext(ctx)
	opening.SetLimit(128)
	for i := range a.size {
		q := w.question(r)
		opening.Go(func() error {
			if openingCtx.Err() != nil {
				return openingCtx.Err()
			}
			stream, err := watch(ctx, conns[i%len(conns)], q)
			if err != nil {
				return fmt.Errorf("chat %s of %s: %w (was the world loaded with these sizes and this seed?)", q.GetChatId(), q.GetUserId(), err)
			}
			listening.Go(func() { a.listen(stream, i) })
			return nil
		})
	}
	if err := opening.Wait(); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// watch opens a stream and receives its first message.
func watch(ctx context.Context, conn *grpc.ClientConn, q *toolgrantv1.ResolveToolsRequest) (grpc.ClientStream, error) {
	request, err := proto.Marshal(&toolgrantv1.WatchToolsRequest{ChatId: q.GetChatId(), UserId: q.GetUserId(), Surface: q.GetSurface()})
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, toolgrantv1.EntitlementService_WatchTools_FullMethodName,
		grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&request); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	var first []byte
	return stream, stream.RecvMsg(&first)
}

// listen takes the time when a watcher has the news.
func (a *audience) listen(stream grpc.ClientStream, number int) {
	var message []byte
	for {
		if err := stream.RecvMsg(&message); err != nil {
			select {
			case a.failure <- err:
			default:
			}
			return
		}
		n := a.news.Load()
		if n == nil || !bytes.Contains(message, n.text) || !n.delays[number].CompareAndSwap(0, int64(time.Since(n.start))) {
			continue
		}
		if n.missing.Add(-1) == 0 {
			close(n.all)
		}
	}
}

// expect starts the clock for a text.
func (a *audience) expect(text string) *news {
	n := &news{text: []byte(text), delays: make([]atomic.Int64, a.size), all: make(chan struct{}), start: time.Now()}
	n.missing.Store(int64(a.size))
	a.news.Store(n)
	return n
}

// await returns when everybody has the news, with each one's delay.
func (a *audience) await(ctx context.Context, n *news) ([]time.Duration, error) {
	select {
	case <-n.all:
	case err := <-a.failure:
		return nil, fmt.Errorf("a watcher's stream ended: %w", err)
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%d of %d watchers do not have the change", n.missing.Load(), a.size), ctx.Err())
	}
	delays := make([]time.Duration, a.size)
	for i := range delays {
		delays[i] = time.Duration(n.delays[i].Load())
	}
	return delays, nil
}
