package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// trusted is a running server that asks for credentials, over TLS, with all ways to prove who one is.
type trusted struct {
	t                   *testing.T
	ctx                 context.Context
	grpc, web, toolctl  string
	authority           *testkit.Authority
	certFile, keyFile   string
	adminFile           string
	tokenKey            *ecdsa.PrivateKey
	roots               *x509.CertPool
	log                 *output
	clientCert, clientK string // of the chat server
}

func startTrusted(t *testing.T) *trusted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	s := &trusted{t: t, ctx: ctx, grpc: freeAddress(t), web: freeAddress(t), authority: testkit.NewAuthority(t), log: &output{}}
	s.certFile, s.keyFile = s.authority.Sign(&x509.Certificate{})
	template := &x509.Certificate{}
	template.Subject.CommonName = "chat-1"
	s.clientCert, s.clientK = s.authority.Sign(template)
	var err error
	if s.tokenKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.tokenKey.Public(), KeyID: "k"}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s.adminFile = filepath.Join(dir, "admin.key")
	config := filepath.Join(dir, "server.yaml")
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "jwks.json"), string(keys))
	write(config, fmt.Sprintf(`
grpc_addr: %s
http_addr: %s
database_url: %q
api_keys: true
admin_key_file: %s
jwt_issuers:
  - {issuer: "https://accounts.example.com", name: accounts, jwks_file: %s, audiences: [toolgrant], role: frontend}
mtls_subjects:
  - {common_name: chat-1, role: chat_server}
  - {common_name: "user-*", role: frontend, user: "*"}
tls_cert_file: %s
tls_key_file: %s
tls_client_ca_file: %s
cors_origins: https://app.example.com
mcp_allow_stdio: true
`, s.grpc, s.web, testkit.Database(t), s.adminFile, filepath.Join(dir, "jwks.json"), s.certFile, s.keyFile, s.authority.File))
	ca, err := os.ReadFile(s.authority.File)
	if err != nil {
		t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(ca)
	s.toolctl = filepath.Join(t.TempDir(), "toolctl")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.toolctl, "../toolctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(running, []string{"--config", config}, s.log) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("it ended with: %v\n%s", err, s.log)
		}
	})
	await(t, "ready", func() bool {
		code, _ := s.get("/readyz", nil)
		return code == http.StatusOK
	})
	return s
}

// transport speaks TLS, with a certificate if files are named.
func (s *trusted) transport(certFile, keyFile string) *tls.Config {
	config := &tls.Config{RootCAs: s.roots}
	if certFile != "" {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			s.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config
}

// get asks over HTTPS, and returns the status and the answer's header; 0: nobody answers.
func (s *trusted) get(path string, header http.Header) (int, http.Header) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.transport("", ""), DisableKeepAlives: true}}
	request, err := http.NewRequest(http.MethodGet, "https://"+s.web+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header
}

func (s *trusted) connect(certFile, keyFile string) *grpc.ClientConn {
	s.t.Helper()
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(credentials.NewTLS(s.transport(certFile, keyFile))))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (s *trusted) bearing(token string) context.Context {
	return metadata.AppendToOutgoingContext(s.ctx, "authorization", "Bearer "+token)
}

// do runs toolctl as the administrator of the file.
func (s *trusted) do(args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.ctx, s.toolctl, append([]string{"--addr", s.grpc, "--ca-file", s.authority.File, "--token-file", s.adminFile}, args...)...)
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		s.t.Fatalf("toolctl %v: %v\n%s", args, err, &errors)
	}
	return strings.TrimSpace(string(out))
}

// token is a JWT of a user.
func (s *trusted) token(user string) string {
	s.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.tokenKey}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: "https://accounts.example.com", Subject: user, Audience: jwt.Audience{"toolgrant"},
		Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour))}).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// resolve asks what a user is given.
func (s *trusted) resolve(ctx context.Context, conn *grpc.ClientConn, user string) codes.Code {
	_, err := v1.NewEntitlementServiceClient(conn).ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "desk-" + user, UserId: user, Surface: web})
	return status.Code(err)
}

func TestCallersProveWhoTheyAreInEveryWay(t *testing.T) {
	t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.json"))
	s := startTrusted(t)
	s.do("mcp", "import", "--stdio", testkit.MCPServer(t, "memory"), "--server", "memory", "--from-env", "MEMORY_FILE_PATH=MEMORY_FILE_PATH")
	s.do("apply", "-f", "../../examples/mcp/company.yaml")
	world, err := v1.NewAdminServiceClient(s.connect("", "")).ApplyManifest(s.bearing(readFile(t, s.adminFile)), &v1.ApplyManifestRequest{
		Manifest: &v1.Manifest{Users: []*v1.User{{UserId: "bob"}}}})
	if err != nil {
		t.Fatal(world, err)
	}
	key := s.do("keys", "create", "ann-browser", "--role", "frontend", "--user", "ann")
	anonymous, chat := s.connect("", ""), s.connect(s.clientCert, s.clientK)

	for _, test := range []struct {
		how  string
		ctx  context.Context
		conn *grpc.ClientConn
		user string
		want codes.Code
	}{
		{"nothing", s.ctx, anonymous, "ann", codes.Unauthenticated},
		{"her key", s.bearing(key), anonymous, "ann", codes.OK},
		{"her key", s.bearing(key), anonymous, "bob", codes.PermissionDenied},
		{"her token", s.bearing(s.token("ann")), anonymous, "ann", codes.OK},
		{"her token", s.bearing(s.token("ann")), anonymous, "bob", codes.PermissionDenied},
		{"a chat server's certificate", s.ctx, chat, "ann", codes.OK},
		{"a chat server's certificate", s.ctx, chat, "bob", codes.OK},
		{"her key, by a chat server", s.bearing(key), chat, "bob", codes.PermissionDenied},
		{"a bad key, by a chat server", s.bearing(key + "x"), chat, "bob", codes.Unauthenticated},
		{"a certificate in the metadata", metadata.AppendToOutgoingContext(s.ctx, "toolgrant-client-certificate-bin", "x"), anonymous, "ann", codes.Unauthenticated},
	} {
		if got := s.resolve(test.ctx, test.conn, test.user); got != test.want {
			t.Errorf("%s asks about %s: got %v, want %v", test.how, test.user, got, test.want)
		}
	}
	if _, err := v1.NewCallServiceClient(anonymous).AuthorizeCall(s.bearing(key), &v1.AuthorizeCallRequest{CallId: "c", ChatId: "desk", UserId: "ann",
		Surface: web, Function: "f"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a frontend may not authorize calls itself: %v", err)
	}
	if _, err := healthv1.NewHealthClient(anonymous).Check(s.ctx, &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("load balancers have no credentials: %v", err)
	}
	reflect, err := reflectionv1.NewServerReflectionClient(anonymous).ServerReflectionInfo(s.ctx)
	if err == nil {
		_, err = reflect.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection without credentials: %v", err)
	}

	t.Run("over HTTP", func(t *testing.T) { s.overHTTP(t, key) })
	t.Run("over MCP", func(t *testing.T) { s.overMCP(t, key) })

	s.do("keys", "revoke", "ann-browser")
	if got := s.resolve(s.bearing(key), anonymous, "ann"); got != codes.Unauthenticated {
		t.Errorf("a revoked key: %v", got)
	}
	for _, secret := range []string{key, readFile(t, s.adminFile), s.token("ann")[:40]} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
	if info, err := os.Stat(s.adminFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v %v", info, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func (s *trusted) overHTTP(t *testing.T, key string) {
	viewer := s.do("keys", "create", "prometheus", "--role", "viewer")
	for _, test := range []struct {
		path, key string
		want      int
	}{
		{"/healthz", "", http.StatusOK}, {"/readyz", "", http.StatusOK},
		{"/metrics", "", http.StatusUnauthorized}, {"/metrics", key, http.StatusForbidden}, {"/metrics", viewer, http.StatusOK},
		{"/debug/pprof/", "", http.StatusUnauthorized}, {"/debug/pprof/", key, http.StatusForbidden}, {"/debug/pprof/", viewer, http.StatusOK},
		{"/mcp", "", http.StatusUnauthorized},
	} {
		header := http.Header{}
		if test.key != "" {
			header.Set("Authorization", "Bearer "+test.key)
		}
		if got, answered := s.get(test.path, header); got != test.want || (got == http.StatusUnauthorized) != (answered.Get("WWW-Authenticate") != "") {
			t.Errorf("%s with %.8s: got %d %v, want %d", test.path, test.key, got, answered, test.want)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.transport("", ""), ForceAttemptHTTP2: true}}
	ask := func(method string, header http.Header, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(s.ctx, method, "https://"+s.web+"/toolgrant.v1.EntitlementService/ResolveTools", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	const about = `{"chat_id": "new", "user_id": "ann", "surface": {"web": {}}}`
	bearing := func(origin string) http.Header {
		return http.Header{"Authorization": {"Bearer " + key}, "Origin": {origin}}
	}
	if r := ask(http.MethodPost, bearing("https://app.example.com"), about); r.StatusCode != http.StatusOK || r.ProtoMajor != 2 ||
		r.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("a page that may: %v %v", r.Status, r.Header)
	}
	if r := ask(http.MethodPost, bearing("https://evil.example"), about); r.StatusCode != http.StatusForbidden || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a page that may not: %v %v", r.Status, r.Header)
	}
	if r := ask(http.MethodPost, http.Header{}, about); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without credentials: %v", r.Status)
	}
	for origin, want := range map[string]string{"https://app.example.com": "https://app.example.com", "https://evil.example": "", "https://app.example.com.evil.example": ""} {
		r := ask(http.MethodOptions, http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,connect-protocol-version,content-type"}}, "")
		if got := r.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("a preflight of %s: got %q %v", origin, got, r.Header)
		}
	}
}

// overMCP speaks MCP with a frontend's credentials, which say who the user is.
func (s *trusted) overMCP(t *testing.T, key string) {
	template := &x509.Certificate{}
	template.Subject.CommonName = "user-ann"
	certFile, keyFile := s.authority.Sign(template)
	connect := func(add headers) (*sdk.ClientSession, error) {
		config := s.transport("", "")
		if add["certificate"] != "" {
			config = s.transport(certFile, keyFile)
		}
		transport := &http.Transport{TLSClientConfig: config}
		return sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(s.ctx, &sdk.StreamableClientTransport{
			Endpoint: "https://" + s.web + "/mcp", HTTPClient: &http.Client{Transport: over{add, transport}}, MaxRetries: -1}, nil)
	}
	for _, bad := range []headers{
		{"toolgrant-chat": "desk"},
		{"toolgrant-chat": "desk", "toolgrant-user": "ann"},
		{"toolgrant-chat": "desk", "authorization": "Bearer " + key + "x"},
		{"toolgrant-chat": "desk", "authorization": "Bearer " + key, "toolgrant-user": "bob"},
		{"toolgrant-chat": "desk", "certificate": "hers", "toolgrant-user": "bob"},
		{"toolgrant-chat": "desk", "toolgrant-user": "ann", "toolgrant-client-certificate": ownCertificate(t, certFile)},
	} {
		if session, err := connect(bad); err == nil {
			t.Errorf("%v: connected", bad)
			_ = session.Close()
		}
	}
	for how, proof := range map[string][2]string{"key": {"authorization", "Bearer " + key}, "token": {"authorization", "Bearer " + s.token("ann")}, "certificate": {"certificate", "hers"}} {
		session, err := connect(headers{"toolgrant-chat": "desk", proof[0]: proof[1]})
		if err != nil {
			t.Fatal(how, err)
		}
		var names []string
		for tool, err := range session.Tools(s.ctx, nil) {
			if err != nil {
				t.Fatal(how, err)
			}
			names = append(names, tool.Name)
		}
		if !slices.Contains(names, "memory__read_graph") {
			t.Errorf("%s: given %v", how, names)
		}
		result, err := session.CallTool(s.ctx, &sdk.CallToolParams{Name: "memory__read_graph", Arguments: map[string]any{}})
		if err != nil || result.IsError {
			t.Errorf("%s: %v %v", how, result, err)
		}
		_ = session.Close()
	}
}

// ownCertificate is a certificate as the server passes it on to itself.
func ownCertificate(t *testing.T, file string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(readFile(t, file)))
	return base64.StdEncoding.EncodeToString(block.Bytes)
}

// over sends headers over a transport.
type over struct {
	headers
	transport http.RoundTripper
}

func (o over) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range o.headers {
		r.Header.Set(name, value)
	}
	return o.transport.RoundTrip(r)
}

func TestWithoutTLSOthersAreNotServed(t *testing.T) {
	t.Setenv("TOOLGRANT_API_KEYS", "true")
	err := run(t.Context(), []string{"--grpc-addr", "0.0.0.0:1"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "tls_cert_file") || !strings.Contains(err.Error(), "allow_plaintext") {
		t.Errorf("got %v", err)
	}
}
