package discovery

import (
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Bounds of a request. What is beyond them is not looked at.
const (
	maxRequestBytes  = 4096
	maxRequestTokens = 160
	maxSentences     = 8
	maxRequestGrams  = 512
)

// Features are what is kept of a request instead of its text: 64-bit hashes of its different words, sorted.
// Neither order nor number of words can be told from them; a word that one guesses can be looked for.
type Features []uint64

// FeaturesOf takes the features of a request.
func FeaturesOf(text string) Features { return features(tokenize(bounded(text), maxRequestTokens)) }

func features(tokens []token) Features {
	keys := make(Features, 0, len(tokens))
	for _, t := range tokens {
		// Single characters such as 的 are in most requests; numbers as they are written are in one only.
		if (!t.stop || !t.unigram) && !t.literal {
			keys = append(keys, t.feature)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Has tells whether a request has all words of another, of which there must be some.
func (f Features) Has(all Features) bool {
	for _, key := range all {
		if _, ok := slices.BinarySearch(f, key); !ok {
			return false
		}
	}
	return len(all) > 0
}

// bounded cuts a text to what is looked at, between characters.
func bounded(text string) string {
	if len(text) <= maxRequestBytes {
		return text
	}
	end := maxRequestBytes
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end]
}

// Request is one that was made, and what turned out to be needed for it.
type Request struct {
	Features Features
	Tools    []id.Tool
	// Weight is how much it counts, above 0: 1 for a recent success, less as it ages.
	Weight float64
	// Contributor is who made it: what one contributor tells of one tool is bounded. Requests without one are
	// the operator's, who may tell what he likes.
	Contributor string
	// Time is when it was made. What was not there then was not chosen for that reason; the zero time is before all tools
	// that tell since when they are there.
	Time time.Time
}
