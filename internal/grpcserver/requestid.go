package grpcserver

import (
	"context"
	"crypto/rand"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/toolgrant/toolgrant/internal/id"
)

// requestID is the name of a call that failed: the one that its caller, or a proxy, gave it, or else a new one. The
// caller is told it in the header of the answer, so that it can be found in the log. Calls that succeed are not named:
// nothing is logged about them.
func requestID(ctx context.Context) string {
	name := first(ctx, requestIDKey)
	if !id.Valid(name) {
		name = rand.Text()
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(requestIDKey, name)) // fails outside of a call, or when streams have begun
	return name
}
