// Package auth finds out who calls: by an API key, a token of another issuer (JWT), or a client's certificate. It also
// has what the listeners need for that: TLS whose certificates follow their files, and a way for the server to call itself.
//
// A caller passes one thing: an Authorization header, which then must be good, or else the certificate of its connection.
package auth

import (
	"context"
	"crypto/tls"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
)

// Options say what is taken for a proof. What is left out is not.
type Options struct {
	// Keys returns the API keys as they are known here.
	Keys func(context.Context) (*apikey.Ring, error)
	// CatchUp returns when Keys knows of all that was written before. It is called for keys that are not known.
	CatchUp func(context.Context) error
	// Uses is told which keys were used.
	Uses *apikey.Uses
	// AdminKey is the hash of a key of the role admin besides: that of a file, for the first administrator.
	AdminKey *apikey.Hash
	// Tokens are issuers of JWTs.
	Tokens *Tokens
	// Subjects are whom certificates prove.
	Subjects []Subject
}

// Authenticator finds out who calls. It is safe for concurrent use.
type Authenticator struct{ Options }

// New makes an Authenticator.
func New(o Options) *Authenticator { return &Authenticator{o} }

// adminByFile is who has the key of the file.
var adminByFile = &caller.Identity{Actor: "key-file:admin", Role: caller.Admin}

// catchUpInterval is how often unknown keys may make this server ask the database whether they are new.
const catchUpInterval = 100 * time.Millisecond

// Prove tells who calls, by an Authorization header (empty: none) and the connection's TLS (nil: none). Its errors are
// faults, and tell nothing about keys but that they don't do.
func (a *Authenticator) Prove(ctx context.Context, authorization string, connection *tls.ConnectionState) (*caller.Identity, error) {
	if authorization == "" {
		return a.proveBySubject(connection)
	}
	credential, ok := bearer(authorization)
	if !ok {
		return nil, refuse("the authorization must be: Bearer, a space, and an API key or a token")
	}
	hash, isKey := apikey.HashOf(credential)
	switch {
	case isKey && (a.Keys != nil || a.AdminKey != nil):
		return a.proveByKey(ctx, hash)
	case a.Tokens != nil && !isKey:
		return a.Tokens.prove(ctx, credential)
	}
	return nil, refuse("this server does not take such credentials")
}

// bearer returns what follows the scheme.
func bearer(authorization string) (string, bool) {
	const scheme = "Bearer "
	if len(authorization) <= len(scheme) || !strings.EqualFold(authorization[:len(scheme)], scheme) {
		return "", false
	}
	return strings.TrimSpace(authorization[len(scheme):]), true
}

func (a *Authenticator) proveByKey(ctx context.Context, hash apikey.Hash) (*caller.Identity, error) {
	if a.AdminKey != nil && hash == *a.AdminKey {
		return adminByFile, nil
	}
	if a.Keys == nil {
		return nil, errKey
	}
	for again := false; ; again = true {
		ring, err := a.Keys(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if held := ring.Find(hash, now); held != nil {
			a.Uses.Used(held.Key, now)
			return held.Identity, nil
		}
		if again {
			return nil, errKey
		}
		if err := a.catchUp(ctx, now); err != nil { // it may have been made a moment ago, elsewhere
			return nil, err
		}
	}
}

// catchUp waits for news of keys. All who wait begin at the same instants, so the database is asked once for all of them,
// however many keys are tried out.
func (a *Authenticator) catchUp(ctx context.Context, now time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(catchUpInterval - time.Duration(now.UnixNano())%catchUpInterval):
	}
	return a.CatchUp(ctx)
}

var errKey = refuse("the API key is not known, or was revoked, or has expired")

// refuse makes the answer to credentials that are not taken.
func refuse(why string) *fault.Fault {
	return &fault.Fault{Kind: fault.Unauthenticated, Reason: fault.ReasonUnauthenticated, Message: why}
}
