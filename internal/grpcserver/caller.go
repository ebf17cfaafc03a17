package grpcserver

import (
	"context"
	"net"
	gostrings "strings"
	"unicode/utf8"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// What callers say of themselves, in the metadata of their calls. It stands there and not in the requests, since
// it is the same for all.
const (
	actorKey        = "toolgrant-actor"
	reasonKey       = "toolgrant-reason"     // printable ASCII
	reasonBinaryKey = "toolgrant-reason-bin" // UTF-8
	requestIDKey    = "x-request-id"         // as proxies name their requests
)

const maxReasonBytes = 1024

// identify returns a context that tells who calls, and why. Who is authenticated is told as such, and after it whom it
// claims to act for. Of others the actor is what the caller claims to be, or else its address, and says which of the
// two. Whatever writes to the audit log calls this first; calls that don't are spared it.
func identify(ctx context.Context) (context.Context, error) {
	var c caller.Caller
	name := first(ctx, actorKey)
	who := caller.IdentityOf(ctx)
	switch {
	case name == "" && who != nil:
		c.Actor = who.Actor
	case name == "":
		c.Actor = "peer:" + peerOf(ctx)
	case id.Valid(name) && who != nil:
		c.Actor = who.Actor + " claimed:" + name // identifiers have no spaces
	case id.Valid(name):
		c.Actor = "claimed:" + name
	default:
		return nil, invalidMetadata(actorKey, "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -")
	}
	reason := reasonBinaryKey
	if c.Reason = first(ctx, reason); c.Reason == "" {
		reason = reasonKey
		c.Reason = first(ctx, reason)
	}
	switch {
	case len(c.Reason) > maxReasonBytes:
		return nil, invalidMetadata(reason, "must be at most 1024 bytes")
	case !utf8.ValidString(c.Reason) || gostrings.Contains(c.Reason, "\x00"):
		return nil, invalidMetadata(reason, "must be UTF-8 without the character U+0000")
	}
	if requestID := first(ctx, requestIDKey); id.Valid(requestID) { // a proxy's; the caller can't help it
		c.RequestID = requestID
	}
	return caller.With(ctx, c), nil
}

// first returns the first value of a key of a call's metadata, or nothing.
func first(ctx context.Context, key string) string {
	if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// peerOf returns the address that a call came from, without its port, which says nothing.
func peerOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return "unknown"
	}
	if host, _, err := net.SplitHostPort(p.Addr.String()); err == nil {
		return host
	}
	return p.Addr.Network() // a socket of this machine
}

func invalidMetadata(key, description string) error {
	return fault.Invalid(fault.Violation{Field: "metadata." + key, Description: description})
}

// edit is the store's Edit by whoever calls.
func (b *backend) edit(ctx context.Context, users []id.User, decide func(admin.Manifest) (admin.Edit, error)) ([]admin.Change, revision.Revision, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, revision.Revision{}, err
	}
	return b.store.Edit(ctx, users, decide)
}
