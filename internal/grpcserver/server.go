// Package grpcserver answers Toolgrant's gRPC API: it turns messages into questions of the domain and
// answers into messages. Rules live in the domain packages, storage behind Store.
package grpcserver

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/erasure"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// maxMessageBytes bounds messages, unless Options say otherwise: the largest manifest.
const maxMessageBytes = 64 << 20

const (
	// maxHeaderBytes bounds the metadata of a call. A reason for the audit log, a trace and a token are in it.
	maxHeaderBytes = 32 << 10
	// handshakeTimeout is how long a new connection may take to say that it speaks HTTP/2.
	handshakeTimeout = 5 * time.Second
	// maxStreamsPerConnection is how many calls one connection may have under way, unless Options say otherwise.
	maxStreamsPerConnection = 10_000
)

// Store is the storage that the handlers need. Its errors are faults, or unexpected. A revision that it
// returns with an answer is the one that the answer is complete through; with a write, it names the write.
type Store interface {
	Overrides
	Usage
	// AdvanceTurn raises a chat's turn.
	AdvanceTurn(context.Context, id.Chat, int32) error
	// CreateChat creates a chat with its default avatar.
	CreateChat(context.Context, id.Chat, id.User, availability.Surface, enable.Request) (enable.Result, error)
	// ChangeChat appends to a chat's log, or ends the chat if there is nothing to append.
	ChangeChat(context.Context, id.Chat, *int32, enable.Request, func(*enable.Chat, *effective.World) ([]enable.Entry, error)) (enable.Result, error)
	// Chat returns a chat.
	Chat(context.Context, id.Chat) (enable.Chat, revision.Revision, error)
	// ChatLog returns the entries of a chat after one, at most so many, and whether there are more.
	ChatLog(ctx context.Context, chat id.Chat, after, atMost int32) (entries []enable.LogEntry, more bool, at revision.Revision, err error)
	// Definitions returns all that is stored but the users.
	Definitions(context.Context) (admin.Manifest, revision.Revision, error)
	// Export returns all that is stored.
	Export(context.Context) (admin.Manifest, revision.Revision, error)
	// User returns a user; nil: there is none.
	User(context.Context, id.User) (*availability.User, revision.Revision, error)
	// Users returns the users after one, at most so many.
	Users(ctx context.Context, after id.User, atMost int32) ([]availability.User, revision.Revision, error)
	// AuditEntries returns the entries that fit after one, newest first, at most so many, and whether there are more.
	AuditEntries(ctx context.Context, f audit.Filter, after audit.Key, atMost int32) (entries []audit.Entry, more bool, at revision.Revision, err error)
	// Edit makes what decide makes of all that is stored but the users, and of those of the users that exist. The
	// audit log tells that the context's caller did it.
	Edit(ctx context.Context, users []id.User, decide func(stored admin.Manifest) (admin.Edit, error)) ([]admin.Change, revision.Revision, error)
	// Preview tells what Edit would change.
	Preview(ctx context.Context, decide func(stored admin.Manifest) (admin.Edit, error)) ([]admin.Change, revision.Revision, error)
	ApprovalStore
	APIKeyStore
	CallStore
	RoutingStore
	learning.ReportSource
	erasure.Store
}

// Options is what a server is made of.
type Options struct {
	Store   Store
	Replica *replica.Replica
	Logger  *slog.Logger
	// Gate decides about quotas.
	Gate *quota.Gate
	// Resets is where resets of quotas are written down.
	Resets quota.ResetLog
	// History is told what was used.
	History *quota.History
	// Health is told how calls went, and tells what may be called.
	Health *health.Board
	// Calls is what CallService needs besides.
	Calls CallOptions
	// Discovery is what DiscoveryService needs besides.
	Discovery DiscoveryOptions
	// Answers is the cache of encoded answers.
	Answers *Answers
	// CheckpointInterval is how often a stream on which nothing happens says so.
	CheckpointInterval time.Duration
	// CallTimeout ends calls that take longer; 0: only their callers do.
	CallTimeout time.Duration
	// RequireDeadlines refuses unary calls by gRPC without a deadline before anything of them is read, and lets none be
	// later than CallTimeout: otherwise a call that never sends its request stays as long as its connection.
	RequireDeadlines bool
	// MaxMessageBytes bounds messages; 0: 64 MiB.
	MaxMessageBytes int
	// MaxStreamsPerConnection is how many calls and streams a connection may have at a time; 0: 10,000.
	MaxStreamsPerConnection int
	// MaxConnectionAge is when a connection is asked to end, and calls go on with another; 0: never.
	MaxConnectionAge time.Duration
	// Drain ends streams; nil: they end when the replica stops.
	Drain *Drain
	// Calling and Streaming bound what is under way, of each caller by what it proved to be, or else its address; nil: no
	// bound.
	Calling, Streaming *Crowd
	// ApprovalTTL is how long a call waits for a person's word.
	ApprovalTTL time.Duration
	// Authenticate tells who calls; nil: nobody is asked, and everybody may do everything.
	Authenticate Authenticate
	// ServerOptions come before the server's own: interceptors among them see what callers are answered.
	ServerOptions []grpc.ServerOption
	// Answered, unless it is nil, is told of each answer of ResolveTools: its bytes, and whether it was held.
	Answered func(bytes int, held bool)
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// New returns a gRPC server of all of Toolgrant's services.
func New(o Options) *grpc.Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = maxMessageBytes
	}
	if o.MaxStreamsPerConnection == 0 {
		o.MaxStreamsPerConnection = maxStreamsPerConnection
	}
	if o.Answered == nil {
		o.Answered = func(int, bool) {}
	}
	validator, err := sharedValidator()
	if err != nil {
		panic("protovalidate: " + err.Error()) // the rules are compiled in
	}
	deadlines := &deadlines{most: o.CallTimeout}
	if o.RequireDeadlines {
		o.ServerOptions = append(slices.Clone(o.ServerOptions), grpc.InTapHandle(deadlines.tap))
	}
	access := &access{authenticate: o.Authenticate, replica: o.Replica, approvals: o.Store}
	s := grpc.NewServer(append(slices.Clone(o.ServerOptions),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(o.MaxMessageBytes),
		grpc.MaxConcurrentStreams(uint32(o.MaxStreamsPerConnection)),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		// Goroutines that serve one call after the other need not grow their stacks each time. While all are busy,
		// or taken by watchers, gRPC starts others.
		grpc.NumStreamWorkers(256),
		// Watchers are many and mostly idle: connections hold little memory, and those whose peers are gone end.
		grpc.ReadBufferSize(8<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, MaxConnectionAge: o.MaxConnectionAge, MaxConnectionAgeGrace: o.CallTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(limit(o.CallTimeout), translateErrors(o.Logger), access.unary, admit(o.Calling), validate(validator)),
		grpc.ChainStreamInterceptor(translateStreamErrors(o.Logger), endOthers(o.Drain), access.stream, admitStream(o.Streaming), validateStream(validator)),
	)...)
	if o.Discovery.Shelf == nil {
		o.Discovery.Shelf = finder.NewShelf(discovery.DefaultWeights(), nil)
	}
	if o.Discovery.Settings == (finder.Settings{}) {
		o.Discovery.Settings = finder.DefaultSettings()
	}
	if o.Discovery.Shadow == nil {
		o.Discovery.Shadow = routing.NewShadow(o.Logger)
	}
	conversations := newConversations(o.Calls.CacheBytes)
	finds := &discoverer{DiscoveryOptions: o.Discovery, conversations: conversations, deployment: o.Calls.Deployment, board: o.Health}
	s.RegisterService(entitlementDesc(), &entitlementServer{store: o.Store, replica: o.Replica, gate: o.Gate, answers: o.Answers, finds: finds, answered: o.Answered,
		watching: semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))), checkpoint: o.CheckpointInterval, drain: o.Drain, now: o.Now})
	toolgrantv1.RegisterChatServiceServer(s, &chatServer{store: o.Store})
	b := &backend{store: o.Store, validator: validator}
	toolgrantv1.RegisterCatalogServiceServer(s, &catalogServer{backend: b})
	toolgrantv1.RegisterAvailabilityServiceServer(s, &availabilityServer{backend: b})
	toolgrantv1.RegisterAvatarServiceServer(s, &avatarServer{backend: b})
	toolgrantv1.RegisterQuotaServiceServer(s, &quotaServer{gate: o.Gate, replica: o.Replica, overrides: o.Store, usage: o.Store, history: o.History, resets: o.Resets, now: o.Now})
	toolgrantv1.RegisterAdminServiceServer(s, &adminServer{backend: b})
	toolgrantv1.RegisterAuditServiceServer(s, &auditServer{store: o.Store})
	toolgrantv1.RegisterApiKeyServiceServer(s, &apiKeyServer{store: o.Store, now: o.Now})
	toolgrantv1.RegisterApprovalServiceServer(s, &approvalServer{store: o.Store, replica: o.Replica, checkpoint: o.CheckpointInterval, drain: o.Drain, now: o.Now})
	if o.Calls.Health == nil {
		o.Calls.Health = o.Health
	}
	toolgrantv1.RegisterCallServiceServer(s, &callServer{healthServer: healthServer{board: o.Health}, CallOptions: o.Calls, store: o.Store,
		advance: o.Store.AdvanceTurn, replica: o.Replica, gate: o.Gate, history: o.History, conversations: conversations,
		refusals: newRefusals(o.Store), approvalTTL: o.ApprovalTTL, now: o.Now})
	toolgrantv1.RegisterDiscoveryServiceServer(s, &discoveryServer{discoverer: finds, store: o.Store, replica: o.Replica, now: o.Now})
	toolgrantv1.RegisterPrivacyServiceServer(s, &privacyServer{store: o.Store, replica: o.Replica, gate: o.Gate, now: o.Now})
	deadlines.apply(s.GetServiceInfo())
	return s
}

// limit ends calls that take too long: a caller may wait without end, and what it waits for never come.
func limit(timeout time.Duration) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if timeout <= 0 {
			return handle(ctx, request)
		}
		limited, end := bound(ctx, timeout)
		defer end()
		return handle(limited, request)
	}
}
