package grpcserver

import (
	"context"
	"net"
	"net/http"
	gostrings "strings"
	"time"

	"connectrpc.com/connect"
	connectcors "connectrpc.com/cors"
	"connectrpc.com/vanguard"
	"connectrpc.com/vanguard/vanguardgrpc"
	"github.com/rs/cors"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// WebOptions say who may call over HTTP.
type WebOptions struct {
	// Authenticated says that callers are asked who they are.
	Authenticated bool
	// Origins are those of web pages that may call, besides the server's own.
	Origins []string
}

// maxPreflightAge is for how long browsers need not ask again whether a page may call.
const maxPreflightAge = 2 * time.Hour

// cors tells browsers which pages may call.
func (o WebOptions) cors(next http.Handler) http.Handler {
	if len(o.Origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: o.Origins,
		AllowedMethods: connectcors.AllowedMethods(),
		AllowedHeaders: append(connectcors.AllowedHeaders(), "Authorization", actorKey, reasonKey, reasonBinaryKey, requestIDKey, "Traceparent"),
		ExposedHeaders: append(connectcors.ExposedHeaders(), "RateLimit", "RateLimit-Policy", "Retry-After"),
		MaxAge:         int(maxPreflightAge.Seconds()),
	}).Handler(next)
}

// Web answers a server's services to HTTP clients, on paths such as /toolgrant.v1.QuotaService/ConsumeQuota: gRPC-Web,
// and Connect, whose unary calls are a POST of JSON. Interceptors run as they do for gRPC.
//
// Web pages of other origins are refused, whatever their browser would let them do, but for those of the options: who
// browses the web on this machine, or with a certificate, would lend them his access. While callers are not asked who
// they are, so are requests that came by a name which is not this machine's own: such a page may have had its name
// resolved anew.
func Web(server *grpc.Server, o WebOptions) (http.Handler, error) {
	transcoder, err := vanguardgrpc.NewTranscoder(server,
		vanguard.WithCodec(func(types vanguard.TypeResolver) vanguard.Codec {
			return jsonCodec{vanguard.JSONCodec{
				MarshalOptions: protojson.MarshalOptions{Resolver: types, UseProtoNames: true, EmitDefaultValues: true},
				// Unknown fields are refused: a misspelt cost must not be none.
				UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types},
			}}
		}),
		vanguard.WithDefaultServiceOptions(vanguard.WithMaxMessageBufferBytes(maxMessageBytes)))
	if err != nil {
		return nil, err
	}
	protection := http.NewCrossOriginProtection()
	for _, origin := range o.Origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return o.cors(protection.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.Authenticated && !local(r.Host) {
			http.Error(w, "ask by the name localhost, or by address", http.StatusForbidden)
			return
		}
		r.Header.Set("Connect-Protocol-Version", "1") // without it, JSON would be taken for REST, which there is none of
		transcoder.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), webKey{}, true)))
	}))), nil
}

// jsonCodec says whose fault it is that JSON cannot be read.
type jsonCodec struct{ vanguard.JSONCodec }

// Unmarshal implements vanguard.Codec.
func (c jsonCodec) Unmarshal(data []byte, message proto.Message) error {
	if err := c.JSONCodec.Unmarshal(data, message); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return nil
}

type webKey struct{}

// overHTTP tells whether a call came through Web.
func overHTTP(ctx context.Context) bool { return ctx.Value(webKey{}) != nil }

// local tells whether a request's host is an address, or this machine by name.
func local(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return host == "localhost" || net.ParseIP(gostrings.Trim(host, "[]")) != nil
}
