package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// MaxArguments is how many bytes of a call's arguments are kept to be shown.
const MaxArguments = 4 << 10

// Ask is the question that a call needs answered within some time.
func Ask(c Call, now time.Time, wait time.Duration) Request {
	r := Request{ID: id.Approval(rand.Text()), Call: c, Digest: c.Digest(), Create: now, Expire: now.Add(wait)}
	r.Arguments = cut(c.Arguments, MaxArguments)
	return r
}

// Digest is a fingerprint of the call's arguments; nil if they were not sent.
func (c *Call) Digest() []byte {
	if len(c.Arguments) == 0 {
		return nil
	}
	sum := sha256.Sum256(c.Arguments)
	return sum[:]
}

// Again returns a fault if the approval was asked for by another call of the same id.
func (a *Approval) Again(c *Call) error {
	if a.For(c) {
		return nil
	}
	return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused,
		Message: fmt.Sprintf("call_id %q was used before, for another call", c.ID)}
}

// cut shortens a text without cutting a character.
func cut(text []byte, atMost int) []byte {
	if len(text) <= atMost {
		return text
	}
	for atMost > 0 && !utf8.RuneStart(text[atMost]) {
		atMost--
	}
	return text[:atMost]
}
