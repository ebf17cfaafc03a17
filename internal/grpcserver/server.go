// Package grpcserver answers Toolgrant's gRPC API: it turns messages into questions of the domain and
// answers into messages. Rules live in the domain packages, storage behind Store.
package grpcserver

import (
	"context"
	"log/slog"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// maxMessageBytes bounds requests: the largest manifest.
const maxMessageBytes = 64 << 20

// Store is the storage that the handlers need. Its errors are faults, or unexpected.
type Store interface {
	// Facts reads all that a question about a chat rests on, from one snapshot.
	Facts(context.Context, id.Chat, id.User, availability.Surface) (effective.Facts, error)
	// AdvanceTurn raises a chat's turn.
	AdvanceTurn(context.Context, id.Chat, int32) error
	// CheckRevision refuses a token that this database did not make before now.
	CheckRevision(token string, now revision.Revision) error
	// CreateChat creates a chat with its default avatar.
	CreateChat(context.Context, id.Chat, id.User, availability.Surface, enable.Request) (enable.Result, error)
	// ChangeChat appends to a chat's log, or ends the chat if there is nothing to append.
	ChangeChat(context.Context, id.Chat, *int32, enable.Request, func(*enable.Chat, *effective.World) ([]enable.Entry, error)) (enable.Result, error)
	// Chat returns a chat and the revision that this is complete through.
	Chat(context.Context, id.Chat) (enable.Chat, string, error)
	// ApplyManifest makes what is stored equal to a manifest, and returns what changed.
	ApplyManifest(ctx context.Context, m admin.Manifest, prune, dryRun bool) (changes []admin.Change, revision string, err error)
	// ExportManifest returns what is stored, and the revision that it is complete through.
	ExportManifest(ctx context.Context, omitUsers bool) (m admin.Manifest, revision string, err error)
	// ChatLog returns a page of a chat's log.
	ChatLog(ctx context.Context, chat id.Chat, after, atMost int32) (entries []enable.LogEntry, more bool, revision string, err error)
}

// Options is what a server is made of.
type Options struct {
	Store  Store
	Logger *slog.Logger
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// New returns a gRPC server of all of Toolgrant's services.
func New(o Options) *grpc.Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	validator, err := protovalidate.New()
	if err != nil {
		panic("protovalidate: " + err.Error()) // the rules are compiled in
	}
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.ChainUnaryInterceptor(translateErrors(o.Logger), validate(validator)),
	)
	toolgrantv1.RegisterEntitlementServiceServer(s, &entitlementServer{store: o.Store, now: o.Now})
	toolgrantv1.RegisterChatServiceServer(s, &chatServer{store: o.Store})
	toolgrantv1.RegisterAdminServiceServer(s, &adminServer{store: o.Store, validator: validator})
	return s
}
