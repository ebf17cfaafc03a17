package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Prefix begins every secret, so that scanners of sources and logs find those that were let out.
const Prefix = "tgk_"

const (
	randomBytes = 32
	textBytes   = len(Prefix) + 43 // 32 bytes are 43 characters of base64url
)

// Hash is what is kept of a secret.
type Hash [sha256.Size]byte

// NewSecret makes a secret. It is not kept: whoever asked for it is told, once.
func NewSecret() (secret string, h Hash) {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	secret = Prefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, sha256.Sum256([]byte(secret))
}

// HashOf returns the hash of what may be a secret; false: it has not the form of one.
func HashOf(text string) (Hash, bool) {
	if len(text) != textBytes || !strings.HasPrefix(text, Prefix) {
		return Hash{}, false
	}
	return sha256.Sum256([]byte(text)), true
}
