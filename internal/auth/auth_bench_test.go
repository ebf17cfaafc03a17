package auth

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
)

// BenchmarkOfCall measures what it takes to know a caller, by an API key among 10,000 and by a token that was seen before
// or not.
func BenchmarkOfCall(b *testing.B) {
	keys := make([]apikey.Key, 10_000)
	var secret string
	for i := range keys {
		var hash apikey.Hash
		secret, hash = apikey.NewSecret()
		keys[i] = apikey.Key{ID: id.APIKey("key"), Role: caller.ChatServer, Secrets: []apikey.Secret{{Hash: hash, Create: time.Now()}}}
	}
	ring := apikey.NewRing(keys, time.Now())
	of := func(authorization string) context.Context {
		ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}})
		return metadata.NewIncomingContext(ctx, metadata.MD{":authority": {"x"}, "content-type": {"application/grpc"}, "user-agent": {"grpc-go"}, "authorization": {authorization}})
	}
	run := func(b *testing.B, a *Authenticator, ctx context.Context, again func()) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := a.OfCall(ctx); err != nil {
				b.Fatal(err)
			}
			again()
		}
	}
	b.Run("API key", func(b *testing.B) {
		a := New(Options{Keys: func(context.Context) (*apikey.Ring, error) { return ring, nil }, Uses: &apikey.Uses{}})
		run(b, a, of("Bearer "+secret), func() {})
	})
	issuer := newAccounts(b)
	key := newRSA(b)
	issuer.publish(public("k1", key))
	a := issuer.tokens(nil)
	ctx := of("Bearer " + sign(b, "k1", jose.RS256, key, issuer.claims(nil)))
	b.Run("token seen before", func(b *testing.B) { run(b, a, ctx, func() {}) })
	b.Run("new token, RS256", func(b *testing.B) { run(b, a, ctx, a.Tokens.proven.Purge) })
}
