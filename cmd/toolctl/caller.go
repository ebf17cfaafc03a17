package main

import (
	"context"
	"os/user"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/toolgrant/toolgrant/internal/id"
)

// named tells the server who calls, for its audit log: the user of this machine.
func named() grpc.UnaryClientInterceptor {
	name := ""
	if u, err := user.Current(); err == nil && id.Valid(u.Username) {
		name = u.Username
	}
	return func(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if name != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "toolgrant-actor", name)
		}
		return invoke(ctx, method, request, response, conn, options...)
	}
}
