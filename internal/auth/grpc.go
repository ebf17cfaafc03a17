package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/toolgrant/toolgrant/internal/caller"
)

// certificateKey is where the server's own MCP endpoint passes the certificate of its client. From nobody else it is taken.
const certificateKey = "toolgrant-client-certificate-bin"

// OfCall tells who makes a call over gRPC, or over HTTP by way of it. It is a grpcserver.Authenticate.
func (a *Authenticator) OfCall(ctx context.Context) (*caller.Identity, error) {
	var authorization string
	switch values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) {
	case 0:
	case 1:
		authorization = values[0]
	default:
		return nil, refuse("there is more than one authorization")
	}
	var connection *tls.ConnectionState
	own := false
	if p, ok := peer.FromContext(ctx); ok {
		switch info := p.AuthInfo.(type) {
		case credentials.TLSInfo:
			connection = &info.State
		case ownInfo:
			own = true
			connection = passedCertificate(ctx)
		}
	}
	who, err := a.Prove(ctx, authorization, connection)
	if err == nil && own {
		forMCP := *who
		forMCP.MCP = true
		who = &forMCP
	}
	return who, err
}

// passedCertificate is the connection of the MCP endpoint's client, as far as it matters: what it proved.
func passedCertificate(ctx context.Context) *tls.ConnectionState {
	values := metadata.ValueFromIncomingContext(ctx, certificateKey)
	if len(values) != 1 {
		return nil
	}
	certificate, err := x509.ParseCertificate([]byte(values[0]))
	if err != nil {
		return nil
	}
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
}
