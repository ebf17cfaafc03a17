package grpcserver

import (
	"context"
	gostrings "strings"

	"google.golang.org/grpc"
)

// Drain ends streams that would go on for ever, when the server is to end. Those over HTTP come first: gRPC's own
// farewell, after which no client takes its connection for another call, can only be sent when there are none.
type Drain struct {
	http, all       context.Context
	endHTTP, endAll context.CancelFunc
}

// NewDrain returns one that has not begun.
func NewDrain() *Drain {
	d := &Drain{}
	d.all, d.endAll = context.WithCancel(context.Background())
	d.http, d.endHTTP = context.WithCancel(d.all)
	return d
}

// EndHTTP ends the streams over HTTP, and those that come.
func (d *Drain) EndHTTP() { d.endHTTP() }

// End ends all streams, and those that come.
func (d *Drain) End() { d.endAll() }

// of is closed when a stream is to end.
func (d *Drain) of(ctx context.Context) <-chan struct{} {
	switch {
	case d == nil:
		return nil
	case overHTTP(ctx):
		return d.http.Done()
	}
	return d.all.Done()
}

// endOthers ends the streams of services that don't know of Drain: those of gRPC itself, of which health's may wait
// for ever.
func endOthers(d *Drain) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if d == nil || !gostrings.HasPrefix(info.FullMethod, "/grpc.") {
			return handle(server, stream)
		}
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		defer context.AfterFunc(d.all, cancel)()
		return handle(server, &endingStream{stream, ctx})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s *endingStream) Context() context.Context { return s.ctx }
