package meaning

import (
	"context"
	"crypto/sha256"
	"math"
	"strconv"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Fingerprint tells by which model what text was embedded: equal ones mean the same vector. Of a private tool, it also tells
// whose and which.
type Fingerprint [sha256.Size]byte

// Stored is a vector that is stored, or is to be.
type Stored struct {
	Fingerprint Fingerprint
	// Tool is the private tool that it is of; of shared tools none is told.
	Tool   id.Tool
	Vector []float32
}

// Store has vectors where servers share them and restarts do not forget them. Its methods return soon when ctx ends.
type Store interface {
	// SharedVectors are those of shared tools.
	SharedVectors() Vault
	// PrivateVectors are those of one user's private tools: none but his are read, and written.
	PrivateVectors(owner id.User) Vault
	// ClaimVectors takes, for a while, the task to ask for vectors, and returns which of them it got: others have the rest.
	// A claimant gets what it has already.
	ClaimVectors(ctx context.Context, claimant string, wanted []Fingerprint, lease time.Duration) ([]Fingerprint, error)
	// ReleaseVectors gives back what a claimant took.
	ReleaseVectors(ctx context.Context, claimant string, claimed []Fingerprint) error
}

// Vault has either the vectors of shared tools or those of one user.
type Vault interface {
	// Read returns those that there are, in as many dimensions as there are, whatever their numbers.
	Read(ctx context.Context, wanted []Fingerprint) ([]Stored, error)
	// Add adds those that are missing, and in the same transaction gives back what the claimant took of them. It may be
	// repeated. Those of tools that are gone are left out.
	Add(ctx context.Context, claimant, model string, vectors []Stored) error
	// Drop deletes what cannot be used.
	Drop(ctx context.Context, broken []Stored) error
	// Need notes that tools have these texts: what is not needed for long is deleted.
	Need(ctx context.Context, needed []Fingerprint) error
}

// fingerprint is that of a text for the keeper's model. What comes before the text tells its own length, so that nothing
// can pass for another thing.
func (o *Options) fingerprint(text string, of ...string) Fingerprint {
	model := o.Model
	if model == "" {
		model = o.Address
	}
	h := sha256.New()
	for _, part := range append([]string{"1", model, strconv.Itoa(o.Dimensions)}, of...) {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	h.Write([]byte(text))
	return Fingerprint(h.Sum(nil))
}

// usable tells whether a vector that was stored is one of length 1. (NaN is not.)
func usable(vector []float32) bool {
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	return math.Abs(sum-1) < 1e-3
}
