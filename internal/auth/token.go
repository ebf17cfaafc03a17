package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// algorithms are those that may be configured: signatures with a public key. With HMAC, or none, whoever knows the public
// key could sign.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// defaultAlgorithms are those of an issuer that names none.
var defaultAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

const (
	maxTokenBytes = 16 << 10
	// provenFor is how long what a token proved is remembered, at most.
	provenFor = time.Minute
	// maxProven is how many tokens are remembered.
	maxProven = 10_000
)

// Tokens proves callers by JWTs of some issuers. It is safe for concurrent use.
type Tokens struct {
	issuers map[string]*issuer
	proven  *expirable.LRU[[sha256.Size]byte, proof]
}

// proof is what a token proved, and until when.
type proof struct {
	who   *caller.Identity
	until time.Time
	keys  *keySet // those that its key was among
	from  *issuer
}

// NewTokens makes a Tokens of some issuers, whose keys Run gets.
func NewTokens(issuers []Issuer, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{issuers: map[string]*issuer{}, proven: expirable.NewLRU[[sha256.Size]byte, proof](maxProven, nil, provenFor)}
	for _, of := range issuers {
		if err := of.Validate(); err != nil {
			return nil, err
		}
		of.setDefaults()
		t.issuers[of.Issuer] = newIssuer(of, log)
	}
	return t, nil
}

// Run keeps the issuers' keys up to date until ctx ends.
func (t *Tokens) Run(ctx context.Context) {
	done := make(chan struct{})
	for _, of := range t.issuers {
		go func() {
			of.run(ctx)
			done <- struct{}{}
		}()
	}
	for range t.issuers {
		<-done
	}
}

func (t *Tokens) prove(ctx context.Context, token string) (*caller.Identity, error) {
	if len(token) > maxTokenBytes {
		return nil, refuse("the token is too large")
	}
	sum := sha256.Sum256([]byte(token))
	if p, ok := t.proven.Get(sum); ok && time.Now().Before(p.until) && p.from.keys.Load() == p.keys {
		return p.who, nil
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, refuse("the token is not a JWT that is signed with a public key")
	}
	var unproven jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&unproven); err != nil {
		return nil, refuse("the token's claims cannot be read")
	}
	of := t.issuers[unproven.Issuer]
	if of == nil {
		return nil, refuse("the token's issuer is not one that this server takes")
	}
	p, err := of.prove(ctx, parsed)
	if err != nil {
		return nil, err
	}
	t.proven.Add(sum, *p)
	return p.who, nil
}

// prove checks a token that claims to be of this issuer.
func (i *issuer) prove(ctx context.Context, token *jwt.JSONWebToken) (*proof, error) {
	header := token.Headers[0]
	if !slices.Contains(i.Algorithms, header.Algorithm) {
		return nil, refuse("the token is signed with " + header.Algorithm + ", which is not configured for its issuer")
	}
	keys, key, err := i.key(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	var claims jwt.Claims
	all := map[string]json.RawMessage{}
	if err := token.Claims(key.Key, &claims, &all); err != nil {
		return nil, refuse("the token's signature is not its issuer's")
	}
	if claims.Expiry == nil {
		return nil, refuse("the token does not expire")
	}
	err = claims.ValidateWithLeeway(jwt.Expected{Issuer: i.Issuer.Issuer, AnyAudience: i.Audiences, Time: time.Now()}, i.ClockSkew)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return nil, refuse("the token has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return nil, refuse("the token is not valid yet")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return nil, refuse("the token is meant for others: its audience is not this server")
	case err != nil:
		return nil, refuse("the token's claims are not good")
	}
	who, err := i.identity(&claims, all)
	if err != nil {
		return nil, err
	}
	return &proof{who: who, until: claims.Expiry.Time().Add(i.ClockSkew), keys: keys, from: i}, nil
}

// identity tells who a token's claims say it is.
func (i *issuer) identity(claims *jwt.Claims, all map[string]json.RawMessage) (*caller.Identity, error) {
	subject := claims.Subject
	if i.UserClaim != "sub" {
		subject = textOf(all[i.UserClaim])
	}
	if subject == "" {
		return nil, refuse("the token does not say whose it is: it has no " + i.UserClaim)
	}
	who := &caller.Identity{Actor: "jwt:" + i.Name + "/" + printable(subject), Groups: textsOf(all[i.GroupsClaim])}
	who.Role = i.role(who.Groups, textOf(all[i.RoleClaim]))
	switch who.Role {
	case "":
		return nil, &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonRoleNotAllowed, Message: who.Actor + " has no role here"}
	case caller.Frontend:
		if !id.Valid(subject) {
			return nil, refuse("the token's " + i.UserClaim + " is no user's id")
		}
		who.User = id.User(subject)
	}
	return who, nil
}

// role is that of the role's claim, or else the strongest of the groups, or else that of all tokens of the issuer.
func (i *issuer) role(groups []string, claimed string) caller.Role {
	if claimed != "" {
		if role := caller.Role(strings.ToUpper(claimed)); slices.Contains(caller.Roles, role) {
			return role
		}
		return ""
	}
	for _, role := range caller.Roles { // the strongest first
		for _, group := range groups {
			if i.RoleByGroup[group] == role {
				return role
			}
		}
	}
	return i.Role
}

// printable is a text as the audit log has it: identifiers as they are, others quoted.
func printable(text string) string {
	if id.Valid(text) {
		return text
	}
	return fmt.Sprintf("%q", truncate(text))
}

func truncate(text string) string {
	const most = 256
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// textOf is a claim that is a text or a whole number; empty: it is not.
func textOf(claim json.RawMessage) string {
	var text string
	if json.Unmarshal(claim, &text) == nil {
		return text
	}
	var number int64
	if json.Unmarshal(claim, &number) == nil {
		return strconv.FormatInt(number, 10)
	}
	return ""
}

// textsOf is a claim that is a list of texts, or a text.
func textsOf(claim json.RawMessage) []string {
	var texts []string
	if json.Unmarshal(claim, &texts) == nil {
		return texts
	}
	if text := textOf(claim); text != "" {
		return []string{text}
	}
	return nil
}
