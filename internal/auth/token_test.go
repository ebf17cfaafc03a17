package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// accounts is an issuer of tokens, with a real HTTP server for its keys.
type accounts struct {
	t     *testing.T
	url   string
	keys  atomic.Pointer[jose.JSONWebKeySet]
	asked atomic.Int64
	down  atomic.Bool
}

func newAccounts(t *testing.T) *accounts {
	a := &accounts{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		if a.down.Load() {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(a.keys.Load())
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// publish has the issuer tell these keys.
func (a *accounts) publish(keys ...jose.JSONWebKey) { a.keys.Store(&jose.JSONWebKeySet{Keys: keys}) }

func newRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(name string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: name}
}

// claimsOf are good claims, with changes.
func (a *accounts) claims(changes map[string]any) map[string]any {
	c := map[string]any{"iss": a.url, "sub": "ann", "aud": "toolgrant", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range changes {
		if value == nil {
			delete(c, name)
			continue
		}
		c[name] = value
	}
	return c
}

func sign(t *testing.T, name string, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if name != "" {
		options = options.WithHeader("kid", name)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (a *accounts) tokens(change func(*Issuer)) *Authenticator {
	a.t.Helper()
	issuer := Issuer{Issuer: a.url, Name: "accounts", JWKSURL: a.url, Audiences: []string{"toolgrant", "toolgrant-test"}, Role: caller.Frontend}
	if change != nil {
		change(&issuer)
	}
	tokens, err := NewTokens([]Issuer{issuer}, slog.New(slog.DiscardHandler))
	if err != nil {
		a.t.Fatal(err)
	}
	return New(Options{Tokens: tokens})
}

func prove(a *Authenticator, token string) (*caller.Identity, error) {
	return a.Prove(context.Background(), "Bearer "+token, nil)
}

// refused checks that a token is refused, and why.
func refused(t *testing.T, a *Authenticator, token, why string) {
	t.Helper()
	who, err := prove(a, token)
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Unauthenticated || !strings.Contains(f.Message, why) {
		t.Errorf("got %+v %v, want a refusal: %s", who, err, why)
	}
	if strings.Contains(err.Error(), token) {
		t.Errorf("the answer has the token in it: %v", err)
	}
}

func TestTokensProveWhatTheirIssuerSays(t *testing.T) {
	a := newAccounts(t)
	key := newRSA(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.publish(public("k1", key), public("k2", curve))
	auth := a.tokens(nil)
	good := func(claims map[string]any) string { return sign(t, "k1", jose.RS256, key, a.claims(claims)) }

	who, err := prove(auth, good(nil))
	if err != nil || who.Actor != "jwt:accounts/ann" || who.User != "ann" || who.Role != caller.Frontend {
		t.Fatalf("got %+v %v", who, err)
	}
	if again, err := prove(auth, good(nil)); err != nil || again.User != "ann" {
		t.Error(err)
	}
	for what, token := range map[string]string{
		"another key and algorithm": sign(t, "k2", jose.ES256, curve, a.claims(nil)),
		"the other audience":        good(map[string]any{"aud": []string{"x", "toolgrant-test"}}),
		"a clock that is ahead":     good(map[string]any{"nbf": time.Now().Add(20 * time.Second).Unix(), "iat": time.Now().Add(20 * time.Second).Unix()}),
		"a clock that is behind":    good(map[string]any{"exp": time.Now().Add(-20 * time.Second).Unix()}),
	} {
		if _, err := prove(auth, token); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	refused(t, auth, good(map[string]any{"aud": "another"}), "audience")
	refused(t, auth, good(map[string]any{"aud": nil}), "audience")
	refused(t, auth, good(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "expired")
	refused(t, auth, good(map[string]any{"exp": nil}), "does not expire")
	refused(t, auth, good(map[string]any{"nbf": time.Now().Add(time.Minute).Unix()}), "not valid yet")
	refused(t, auth, good(map[string]any{"iat": time.Now().Add(time.Minute).Unix()}), "not valid yet")
	refused(t, auth, good(map[string]any{"iss": "https://evil.example"}), "issuer")
	refused(t, auth, good(map[string]any{"iss": nil}), "issuer")
	refused(t, auth, good(map[string]any{"sub": nil}), "sub")
	refused(t, auth, good(map[string]any{"sub": "no spaces"}), "no user's id")
	refused(t, auth, sign(t, "k1", jose.RS256, newRSA(t), a.claims(nil)), "signature")
	refused(t, auth, sign(t, "k2", jose.RS256, key, a.claims(nil)), "signature")
	refused(t, auth, sign(t, "k1", jose.PS256, key, a.claims(nil)), "PS256")
	refused(t, auth, sign(t, "", jose.RS256, key, a.claims(nil)), "does not have")
	token := good(nil)
	refused(t, auth, token[:len(token)-4]+"AAAA", "signature")
	refused(t, auth, strings.Repeat("x", 20<<10), "too large")
	refused(t, auth, "a.b.c", "not a JWT")

	// Without a signature, or with the public key as a secret that everybody knows.
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	unsigned := encode(map[string]string{"alg": "none", "kid": "k1"}) + "." + encode(a.claims(nil)) + "."
	refused(t, auth, unsigned, "not a JWT that is signed with a public key")
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})} {
		refused(t, auth, sign(t, "k1", jose.HS256, secret, a.claims(nil)), "not a JWT that is signed with a public key")
	}
}

func TestKeysOfAnIssuerChange(t *testing.T) {
	a := newAccounts(t)
	first, second := newRSA(t), newRSA(t)
	a.publish(public("k1", first))
	auth := a.tokens(nil)
	i := auth.Tokens.issuers[a.url]
	old := sign(t, "k1", jose.RS256, first, a.claims(nil))
	if _, err := prove(auth, old); err != nil {
		t.Fatal(err)
	}
	a.publish(public("k2", second))
	fresh := sign(t, "k2", jose.RS256, second, a.claims(nil))
	i.fetched = time.Now().Add(-time.Minute) // it was a while ago
	if _, err := prove(auth, fresh); err != nil {
		t.Errorf("a new key is looked for: %v", err)
	}
	refused(t, auth, old, "does not have") // though it was proven before
	asked := a.asked.Load()
	for range 20 {
		refused(t, auth, sign(t, "k3", jose.RS256, second, a.claims(nil)), "does not have")
	}
	if a.asked.Load() > asked+1 {
		t.Errorf("unknown keys made it ask %d times", a.asked.Load()-asked)
	}

	a.down.Store(true)
	if err := i.refresh(context.Background(), 0); err == nil {
		t.Error("the issuer is down")
	}
	if _, err := prove(auth, sign(t, "k2", jose.RS256, second, a.claims(map[string]any{"jti": "another"}))); err != nil {
		t.Errorf("while the issuer is down the keys that are known go on: %v", err)
	}
	for _, useless := range []jose.JSONWebKey{{Key: []byte("a symmetric key, which everybody who checks could sign with"), KeyID: "k4"}, {Key: second.Public(), KeyID: "k4", Use: "enc"}} {
		a.down.Store(false)
		a.publish(useless)
		if err := i.refresh(context.Background(), 0); err == nil {
			t.Errorf("%v was taken for a key", useless)
		}
	}
}

func TestAnIssuerThatWasNeverThereIsNoRefusal(t *testing.T) {
	a := newAccounts(t)
	a.down.Store(true)
	_, err := prove(a.tokens(nil), sign(t, "k1", jose.RS256, newRSA(t), a.claims(nil)))
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestRolesOfTokens(t *testing.T) {
	a := newAccounts(t)
	key := newRSA(t)
	a.publish(public("", key)) // the only one: tokens need not name it
	auth := a.tokens(func(i *Issuer) {
		i.RoleClaim, i.Role, i.UserClaim = "https://example.com/role", "", "uid"
		i.RoleByGroup = map[string]caller.Role{"staff": caller.Viewer, "platform": caller.Operator}
	})
	for _, test := range []struct {
		claims map[string]any
		want   caller.Role
	}{
		{map[string]any{"uid": 17, "https://example.com/role": "chat_server"}, caller.ChatServer},
		{map[string]any{"uid": "u", "groups": []string{"staff", "platform", "x"}}, caller.Operator},
		{map[string]any{"uid": "u", "groups": "staff"}, caller.Viewer},
		{map[string]any{"uid": "u", "https://example.com/role": "viewer", "groups": []string{"platform"}}, caller.Viewer},
		{map[string]any{"uid": "u", "https://example.com/role": "king", "groups": []string{"platform"}}, ""},
		{map[string]any{"uid": "u"}, ""},
	} {
		who, err := prove(auth, sign(t, "", jose.RS256, key, a.claims(test.claims)))
		if test.want == "" {
			if f, ok := fault.As(err); !ok || f.Kind != fault.PermissionDenied {
				t.Errorf("%v: got %v %v", test.claims, who, err)
			}
			continue
		}
		if err != nil || who.Role != test.want || who.User != "" {
			t.Errorf("%v: got %+v %v", test.claims, who, err)
		}
	}
}

func TestIssuersThatCannotBe(t *testing.T) {
	good := Issuer{Issuer: "https://accounts.example.com", JWKSURL: "https://accounts.example.com/keys", Audiences: []string{"toolgrant"}, Role: caller.Frontend}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Issuer){
		"issuer":        func(i *Issuer) { i.Issuer = "" },
		"jwks_url":      func(i *Issuer) { i.JWKSURL = "" },
		"jwks_file":     func(i *Issuer) { i.JWKSFile = "x" },
		"must be https": func(i *Issuer) { i.JWKSURL = "http://accounts.example.com/keys" },
		"audiences":     func(i *Issuer) { i.Audiences = nil },
		"HS256":         func(i *Issuer) { i.Algorithms = []string{"RS256", "HS256"} },
		`"none"`:        func(i *Issuer) { i.Algorithms = []string{"none"} },
		"clock_skew":    func(i *Issuer) { i.ClockSkew = time.Hour },
		"role":          func(i *Issuer) { i.Role = "" },
		`"king"`:        func(i *Issuer) { i.Role = "KING" },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
