package caller

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Role is what a caller may do. The API's documentation says what each may.
type Role string

// The roles.
const (
	Admin      Role = "ADMIN"
	Operator   Role = "OPERATOR"
	ChatServer Role = "CHAT_SERVER"
	Frontend   Role = "FRONTEND"
	Viewer     Role = "VIEWER"
)

// Roles are all there are.
var Roles = []Role{Admin, Operator, ChatServer, Frontend, Viewer}

// Identity is who a caller proved to be. It never changes once it is made.
type Identity struct {
	// Actor says how it was proved, a colon, and who it is: "key:chat-1".
	Actor string
	Role  Role
	// User is whose data a Frontend reaches. Others may have one, too: it then says who they are, and bounds nothing.
	User id.User
	// Groups are those that a token names; the way to a role, and nothing else.
	Groups []string
	// MCP says that this server's own MCP endpoint asks, for a client that proved to be this.
	MCP bool
}

type identityKey struct{}

// WithIdentity returns a context of a request of whom this is.
func WithIdentity(ctx context.Context, i *Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, i)
}

// IdentityOf returns who proved to make the request; nil: nobody was asked for proof.
func IdentityOf(ctx context.Context) *Identity {
	i, _ := ctx.Value(identityKey{}).(*Identity)
	return i
}
