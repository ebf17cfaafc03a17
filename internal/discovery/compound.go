package discovery

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Some write as one word what others write as two: GitHub is git and hub where case splits it, github is not; and there
// are copyEditing and copyediting, to do and todo. So the neighbours of a tool's identifiers also stand there as one word,
// and those of a request are also looked for as one. Two words that meet two words are not counted once more.

// compounded is set apart from the keys of words.
const compounded = 0x9e3779b97f4a7c15

// compound returns the key of two neighbouring words written as one word. That has the stem of the second one, without the
// e at the end that short words keep: a stemmer would take ten times as long, for words most of which nothing has.
func compound(a, b *token) (key uint64, ok bool) {
	if !spaced(a) || !spaced(b) {
		return 0, false
	}
	var space [2 * maxTokenRunes]byte
	word := append(append(space[:0], strings.ToLower(a.surface)...), b.term...)
	return xxhash.Sum64(bytes.TrimSuffix(word, []byte("e"))), true
}

// spaced tells words of writing with spaces.
func spaced(t *token) bool {
	if t.surface == "" || t.number() || t.literal {
		return false
	}
	r, _ := utf8.DecodeRuneInString(t.surface)
	return !unspaced(r)
}

// compounds adds what is also looked for: neighbours as one word, and words as two.
func (q *Text) compounds(tokens []token, numbers map[uint64]int) {
	q.also = slices.Grow(q.also, 2*len(tokens))
	add := func(key uint64) {
		if _, has := numbers[key]; !has {
			numbers[key] = len(q.also)
			q.also = append(q.also, otherTerm{key: key, count: 1, compound: true})
		}
	}
	for i := range tokens {
		if i > 0 {
			if key, ok := compound(&tokens[i-1], &tokens[i]); ok {
				add(key)
			}
		}
		if t := &tokens[i]; !t.stop && spaced(t) {
			add(t.key ^ compounded)
		}
	}
}
