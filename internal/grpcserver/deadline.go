package grpcserver

import (
	"context"
	gostrings "strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/toolgrant/toolgrant/internal/fault"
)

// deadlines sees to it that each unary call has one, before its request is read.
type deadlines struct {
	most  time.Duration
	unary map[string]bool // by the full name of the RPC; complete before the server serves
}

// ownServices is how the names of the services begin of which it is required. Health checks may wait as they like.
const ownServices = "toolgrant."

func (d *deadlines) apply(services map[string]grpc.ServiceInfo) {
	d.unary = map[string]bool{}
	for service, info := range services {
		for _, method := range info.Methods {
			d.unary["/"+service+"/"+method.Name] = gostrings.HasPrefix(service, ownServices) && !method.IsClientStream && !method.IsServerStream
		}
	}
}

var errNoDeadline = statusOf(&fault.Fault{Kind: fault.InvalidArgument, Reason: fault.ReasonDeadlineRequired,
	Message: "the call must have a deadline"})

// tap implements tap.ServerInHandle. What reads from a connection waits for it.
func (d *deadlines) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !d.unary[info.FullMethodName] {
		return ctx, nil
	}
	own, ok := ctx.Deadline()
	if !ok {
		return nil, errNoDeadline
	}
	if bound := time.Now().Add(d.most); d.most > 0 && own.After(bound) {
		limited, cancel := context.WithDeadline(ctx, bound)
		context.AfterFunc(ctx, cancel) // gRPC ends its own context with the call
		return limited, nil
	}
	return ctx, nil
}
