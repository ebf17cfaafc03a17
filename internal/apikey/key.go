// Package apikey has API keys: what they are, their secrets, and the ring that tells whose a secret is. It does no I/O.
//
// A secret is 256 random bits, shown once and kept as its SHA-256. A slow hash, or one with a key of the server's, would
// protect what can be guessed, and such a secret cannot be.
package apikey

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Key is an API key: who calls with it, and until when.
type Key struct {
	ID    id.APIKey
	Title string
	Role  caller.Role
	User  id.User // of a Frontend
	// Create, Expire and Revoke are when; zero: never.
	Create, Expire, Revoke time.Time
	// Used is when a call was made with it last, to the minute; zero: never.
	Used time.Time
	// Secrets are those that it has or had, the newest last.
	Secrets []Secret
}

// Secret is a secret of a key as it is kept.
type Secret struct {
	Hash Hash
	// RequestID names the request that made it, among its key's.
	RequestID      string
	Create, Expire time.Time // Expire is zero for the newest: it ends with the key
}

// Validate returns what of a key that is to be created breaks rules, and nothing if nothing does.
func (k *Key) Validate(now time.Time) error {
	var faults []fault.Violation
	switch {
	case k.Role == caller.Frontend && k.User == "":
		faults = append(faults, fault.Violation{Field: "api_key.user_id", Description: "is required: a frontend reaches one user's data"})
	case k.Role != caller.Frontend && k.User != "":
		faults = append(faults, fault.Violation{Field: "api_key.user_id", Description: "must be empty: only a frontend is bound to a user"})
	}
	if !k.Expire.IsZero() && !k.Expire.After(now) {
		faults = append(faults, fault.Violation{Field: "api_key.expire_time", Description: "must be in the future"})
	}
	if len(faults) > 0 {
		return fault.Invalid(faults...)
	}
	return nil
}

// Same tells whether another is the same but for when it was made and what became of it.
func (k *Key) Same(other *Key) bool {
	return k.ID == other.ID && k.Title == other.Title && k.Role == other.Role && k.User == other.User && k.Expire.Equal(other.Expire)
}

// MadeBy tells whether a request made one of its secrets.
func (k *Key) MadeBy(request string) bool {
	for i := range k.Secrets {
		if k.Secrets[i].RequestID == request {
			return true
		}
	}
	return false
}

// MaxOverlap is how long a secret may go on after the next was made.
const MaxOverlap = 30 * 24 * time.Hour

// Rotate gives a key another secret; those that it has end after the overlap.
func (k *Key) Rotate(h Hash, request string, overlap time.Duration, now time.Time) error {
	if err := k.alive(now); err != nil {
		return err
	}
	for i := range k.Secrets {
		if end := now.Add(overlap); k.Secrets[i].Expire.IsZero() || k.Secrets[i].Expire.After(end) {
			k.Secrets[i].Expire = end
		}
	}
	k.Secrets = append(k.Secrets, Secret{Hash: h, RequestID: request, Create: now})
	return nil
}

// alive refuses a key of which nothing can become any more.
func (k *Key) alive(now time.Time) error {
	switch {
	case !k.Revoke.IsZero():
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonAPIKeyEnded, Message: "the API key was revoked"}
	case !k.Expire.IsZero() && !k.Expire.After(now):
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonAPIKeyEnded, Message: "the API key has expired"}
	}
	return nil
}

// until is when a secret of the key ends; zero: never.
func (k *Key) until(s *Secret) time.Time {
	switch end := s.Expire; {
	case end.IsZero() || !k.Expire.IsZero() && k.Expire.Before(end):
		return k.Expire
	default:
		return end
	}
}

// Usable tells whether a secret of the key may be used at an instant.
func (k *Key) Usable(s *Secret, now time.Time) bool {
	end := k.until(s)
	return k.Revoke.IsZero() && (end.IsZero() || now.Before(end))
}
