package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// greet accepts TLS connections until the test ends.
func greet(t *testing.T, c *Certificates) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", c.Config("h2"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// serial connects and returns whose certificate the server has.
func serial(t *testing.T, address string, authority *testkit.Authority) string {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, &tls.Config{RootCAs: pool(t, authority), NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func pool(t *testing.T, authority *testkit.Authority) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(authority.File)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	return roots
}

func TestCertificatesFollowTheirFiles(t *testing.T) {
	authority := testkit.NewAuthority(t)
	cert, key := authority.Sign(&x509.Certificate{})
	var log bytes.Buffer
	c, err := LoadCertificates(cert, key, "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address := greet(t, c)
	first := serial(t, address, authority)
	c.reload()
	if log.Len() > 0 || serial(t, address, authority) != first {
		t.Errorf("nothing changed: %s", log.String())
	}

	good, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := authority.Sign(&x509.Certificate{})
	otherContent, _ := os.ReadFile(other)
	expired, expiredKey := authority.Sign(&x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	expiredContent, _ := os.ReadFile(expired)
	for what, content := range map[string][]byte{"nothing": {}, "no PEM": []byte("x"), "another key's": otherContent, "half of it": good[:len(good)/2], "expired": expiredContent} {
		log.Reset()
		if err := os.WriteFile(cert, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if what == "expired" {
			if content, err = os.ReadFile(expiredKey); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(key, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.reload()
		c.reload()
		if serial(t, address, authority) != first || strings.Count(log.String(), "cannot be used") != 1 {
			t.Errorf("%s: %s", what, log.String())
		}
	}
	log.Reset()
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	c.reload()
	c.reload()
	if serial(t, address, authority) != first || strings.Count(log.String(), "cannot be used") != 1 {
		t.Errorf("no file: %s", log.String())
	}

	authority.SignTo(&x509.Certificate{}, cert, key)
	c.reload()
	if serial(t, address, authority) == first || !strings.Contains(log.String(), "another certificate") {
		t.Errorf("the new one: %s", log.String())
	}
}

func TestCertificatesOfClientsProveTheirSubjects(t *testing.T) {
	authority, stranger := testkit.NewAuthority(t), testkit.NewAuthority(t)
	cert, key := authority.Sign(&x509.Certificate{})
	c, err := LoadCertificates(cert, key, authority.File, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	auth := New(Options{Subjects: []Subject{
		{URI: "spiffe://example.com/chat", Role: caller.ChatServer},
		{URI: "spiffe://example.com/user/*", Role: caller.Frontend, User: "*"},
		{DNS: "ops.example.com", Role: caller.Operator},
		{CommonName: "grafana", Role: caller.Viewer},
	}})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", c.Config("h2"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// state connects with a certificate and returns the server's side of the connection.
	state := func(signer *testkit.Authority, template *x509.Certificate) (*tls.ConnectionState, error) {
		t.Helper()
		config := &tls.Config{RootCAs: pool(t, authority), NextProtos: []string{"h2"}}
		if template != nil {
			certFile, keyFile := signer.Sign(template)
			certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
		}
		dialed := make(chan struct{})
		go func() {
			defer close(dialed)
			if conn, err := tls.Dial("tcp", listener.Addr().String(), config); err == nil {
				_ = conn.Handshake()
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
		}()
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		err = conn.(*tls.Conn).Handshake()
		of := conn.(*tls.Conn).ConnectionState()
		_ = conn.Close()
		<-dialed
		return &of, err
	}
	for _, test := range []struct {
		template *x509.Certificate
		want     caller.Identity
	}{
		{&x509.Certificate{URIs: uris(t, "spiffe://example.com/chat")}, caller.Identity{Actor: "mtls:spiffe://example.com/chat", Role: caller.ChatServer}},
		{&x509.Certificate{URIs: uris(t, "spiffe://example.com/user/ann")}, caller.Identity{Actor: "mtls:spiffe://example.com/user/ann", Role: caller.Frontend, User: "ann"}},
		{&x509.Certificate{DNSNames: []string{"x", "ops.example.com"}}, caller.Identity{Actor: "mtls:ops.example.com", Role: caller.Operator}},
		{&x509.Certificate{Subject: pkix.Name{CommonName: "grafana"}}, caller.Identity{Actor: "mtls:grafana", Role: caller.Viewer}},
		{&x509.Certificate{URIs: uris(t, "spiffe://example.com/user/")}, caller.Identity{}},
		{&x509.Certificate{URIs: uris(t, "spiffe://example.com/chat/x")}, caller.Identity{}},
		{&x509.Certificate{Subject: pkix.Name{CommonName: "ops.example.com"}}, caller.Identity{}},
		{nil, caller.Identity{}},
	} {
		connection, err := state(authority, test.template)
		if err != nil {
			t.Fatal(err)
		}
		who, err := auth.Prove(t.Context(), "", connection)
		if test.want.Role == "" {
			if err == nil {
				t.Errorf("%v proves %+v", test.template, who)
			}
			continue
		}
		if err != nil || who.Actor != test.want.Actor || who.Role != test.want.Role || who.User != test.want.User {
			t.Errorf("got %+v %v, want %+v", who, err, test.want)
		}
	}
	if _, err := state(stranger, &x509.Certificate{URIs: uris(t, "spiffe://example.com/chat")}); err == nil {
		t.Error("a certificate of an unknown authority is taken")
	}
	if _, err := state(authority, &x509.Certificate{URIs: uris(t, "spiffe://example.com/chat"), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}); err == nil {
		t.Error("an expired certificate is taken")
	}
}

func TestSubjectsThatCannotBe(t *testing.T) {
	for why, s := range map[string]Subject{
		"one of":     {Role: caller.Viewer},
		"at the end": {CommonName: "a*b", Role: caller.Viewer},
		"more than":  {DNS: "*", Role: caller.Viewer},
		"has none":   {DNS: "a", Role: caller.Frontend, User: "*"},
		"a user":     {DNS: "a", Role: caller.Frontend},
		"be empty":   {DNS: "a", Role: caller.Viewer, User: "ann"},
		"no role":    {DNS: "a", Role: "KING"},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: got %v", s, err)
		}
	}
}

func uris(t *testing.T, text string) []*url.URL { return []*url.URL{testkit.URI(t, text)} }
