package auth

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"
)

// Own is how the server calls itself, within the process: whoever calls this way is known to be the server, which passes
// on whose behalf.
type Own struct{ *bufconn.Listener }

// NewOwn makes an Own, on which the gRPC server serves.
func NewOwn() *Own { return &Own{bufconn.Listen(256 << 10)} }

// ownConn is a connection of it, which nobody outside can make.
type ownConn struct{ net.Conn }

// Accept implements net.Listener.
func (o *Own) Accept() (net.Conn, error) {
	conn, err := o.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return ownConn{conn}, nil
}

// Dial connects to the server; it is for grpc.WithContextDialer.
func (o *Own) Dial(ctx context.Context, _ string) (net.Conn, error) { return o.DialContext(ctx) }

// ownInfo says that a call comes from this process.
type ownInfo struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (ownInfo) AuthType() string { return "own" }

// Credentials are those of the server: of the process itself they ask nothing, and of others what others does.
func Credentials(others credentials.TransportCredentials) credentials.TransportCredentials {
	return ownOrOthers{others}
}

type ownOrOthers struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c ownOrOthers) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if own, ok := conn.(ownConn); ok {
		return own, ownInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
	}
	return c.TransportCredentials.ServerHandshake(conn)
}

// Clone implements credentials.TransportCredentials.
func (c ownOrOthers) Clone() credentials.TransportCredentials {
	return ownOrOthers{c.TransportCredentials.Clone()}
}
