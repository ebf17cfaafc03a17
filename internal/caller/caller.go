// Package caller tells who makes a request, and why: from where the request came in to where that is written down.
package caller

import "context"

// Caller is who makes a request.
type Caller struct {
	// Actor says how the caller is known, a colon, and who it is: "claimed:ann".
	Actor string
	// Reason is why, in the caller's words; empty: it did not say.
	Reason string
	// RequestID names the request; empty: it has no name.
	RequestID string
}

// Server is who makes the writes that nobody requested.
const Server = "server:internal"

type key struct{}

// With returns a context of a request of this caller.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns whose request the context belongs to: if it is nobody's, the server's own.
func From(ctx context.Context) Caller {
	if c, ok := ctx.Value(key{}).(Caller); ok {
		return c
	}
	return Caller{Actor: Server}
}
