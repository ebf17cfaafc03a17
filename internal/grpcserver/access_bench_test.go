package grpcserver

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/auth"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkAccess measures what the interceptor adds to a call: without authentication, and with API keys, of a chat
// server and of a frontend, whose user is looked at, too.
func BenchmarkAccess(b *testing.B) {
	ctx := testkit.Context(b)
	store, err := postgres.Open(ctx, testkit.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	if _, _, err := store.Edit(ctx, []id.User{"u"}, func(admin.Manifest) (edit admin.Edit, err error) {
		edit.Users = []availability.User{{ID: "u"}}
		return edit, nil
	}); err != nil {
		b.Fatal(err)
	}
	secrets := map[caller.Role]string{}
	for role, user := range map[caller.Role]id.User{caller.ChatServer: "", caller.Frontend: "u"} {
		secret, hash := apikey.NewSecret()
		secrets[role] = secret
		if _, _, _, err := store.CreateAPIKey(ctx, apikey.Key{ID: id.APIKey(role), Role: role, User: user, Create: time.Now(),
			Secrets: []apikey.Secret{{Hash: hash, RequestID: "r", Create: time.Now()}}}); err != nil {
			b.Fatal(err)
		}
	}
	memory, err := replica.New(ctx, replica.Options{Source: store, Logger: slog.Default(), MaxStaleness: time.Hour, CacheBytes: 1 << 20, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	keyed := &access{authenticate: auth.New(auth.Options{Keys: memory.Keys, CatchUp: memory.CatchUp, Uses: &apikey.Uses{}}).OfCall, replica: memory}
	var request any = &toolgrantv1.ResolveToolsRequest{ChatId: "chat", UserId: "u"}
	info := &grpc.UnaryServerInfo{FullMethod: toolgrantv1.EntitlementService_ResolveTools_FullMethodName}
	handle := func(context.Context, any) (any, error) { return nil, nil }
	for _, variant := range []struct {
		name   string
		access *access
		secret string
	}{
		{"without authentication", &access{}, "x"},
		{"a chat server's API key", keyed, secrets[caller.ChatServer]},
		{"a frontend's API key", keyed, secrets[caller.Frontend]},
	} {
		b.Run(variant.name, func(b *testing.B) {
			ctx := metadata.NewIncomingContext(ctx, metadata.MD{":authority": {"x"}, "content-type": {"application/grpc"},
				"user-agent": {"grpc-go"}, "authorization": {"Bearer " + variant.secret}})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := variant.access.unary(ctx, request, info, handle); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
