package grpcserver

import (
	"context"
	"net"
	"net/http"
	gostrings "strings"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"connectrpc.com/vanguard/vanguardgrpc"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Web answers a server's services to HTTP clients, on paths such as /toolgrant.v1.QuotaService/ConsumeQuota: gRPC-Web,
// and Connect, whose unary calls are a POST of JSON. Interceptors run as they do for gRPC.
//
// Web pages of other origins are refused, whatever their browser would let them do: there is no authentication, and
// who browses the web on this machine would lend them his access. So are requests that came by a name which is not
// this machine's own: such a page may have had its name resolved anew.
func Web(server *grpc.Server) (http.Handler, error) {
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
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) {
			http.Error(w, "ask by the name localhost, or by address", http.StatusForbidden)
			return
		}
		r.Header.Set("Connect-Protocol-Version", "1") // without it, JSON would be taken for REST, which there is none of
		transcoder.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), webKey{}, true)))
	})), nil
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
