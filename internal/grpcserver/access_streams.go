package grpcserver

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// recheckInterval is how often the credentials of open streams are looked at again. A key that was revoked ends its
// streams after this, and what it takes to hear of it.
const recheckInterval = time.Second

// stream is the interceptor of streams.
func (a *access) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, r, who, err := a.admit(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	if who == nil {
		return handle(server, stream)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	open := &admittedStream{ServerStream: stream, access: a, ctx: ctx, rule: r, who: who, end: end}
	a.open.add(open)
	defer a.open.remove(open)
	err = handle(server, open)
	if refused, ok := fault.As(context.Cause(ctx)); ok && stream.Context().Err() == nil {
		return refused
	}
	return err
}

// admittedStream checks what it receives.
type admittedStream struct {
	grpc.ServerStream
	access *access
	ctx    context.Context
	rule   *rule
	who    *caller.Identity
	end    context.CancelCauseFunc
}

// Context implements grpc.ServerStream.
func (s *admittedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *admittedStream) RecvMsg(message any) error {
	if err := s.ServerStream.RecvMsg(message); err != nil {
		return err
	}
	return s.access.checkRequest(s.ctx, s.rule, s.who, message)
}

// recheck ends the stream if its caller is not any more who it was. While that cannot be told, it goes on.
func (s *admittedStream) recheck() {
	who, err := s.access.authenticate(s.ServerStream.Context())
	if f, ok := fault.As(err); ok && f.Kind == fault.Unauthenticated {
		s.end(err)
	}
	if err == nil && (who.Role != s.who.Role || who.User != s.who.User) {
		s.end(&fault.Fault{Kind: fault.Unauthenticated, Reason: fault.ReasonUnauthenticated, Message: "the credentials are another's now"})
	}
}

// openStreams are the streams whose callers are looked at again now and then, by one goroutine while there are any.
type openStreams struct {
	mu      sync.Mutex
	streams map[*admittedStream]struct{}
}

func (o *openStreams) add(s *admittedStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.streams == nil {
		o.streams = map[*admittedStream]struct{}{}
		time.AfterFunc(recheckInterval, o.recheck)
	}
	o.streams[s] = struct{}{}
}

func (o *openStreams) remove(s *admittedStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.streams, s)
}

func (o *openStreams) recheck() {
	o.mu.Lock()
	streams := make([]*admittedStream, 0, len(o.streams))
	for s := range o.streams {
		streams = append(streams, s)
	}
	if len(streams) == 0 {
		o.streams = nil // the next one begins anew
	}
	o.mu.Unlock()
	for _, s := range streams {
		s.recheck()
	}
	if len(streams) > 0 {
		time.AfterFunc(recheckInterval, o.recheck)
	}
}
