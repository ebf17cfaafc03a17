package discovery

import (
	"cmp"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// maxTokenRunes bounds a word: what is longer is no word but data (base64, a key), and only its beginning
// counts.
const maxTokenRunes = 40

// numberTerm stands for every number: which one it is seldom says anything of the tool.
const numberTerm = "#"

// A number of so many digits may be a name (the 12306 of railways, a 365 of office suites), and counts as such if a tool
// has it.
const minLiteral, maxLiteral = 3, 8

// token is a word of a text, or one or two characters of a language that writes without spaces.
type token struct {
	term    string // what is compared: normalized, in lower case, stemmed
	key     uint64 // 64 bits for the term
	feature uint64 // what features of requests have of it, of which the word cannot be read off: the key, but for spellings
	surface string // as it was written, but for compatibility forms
	stop    bool   // says nothing of the subject
	unigram bool   // one character of such a language
	literal bool   // a number as it is written, besides that it is one
}

func (t *token) number() bool { return t.term == numberTerm }

var numberKey = xxhash.Sum64String(numberTerm)

// tokenize splits a text into its first so many tokens:
//
//   - Compatibility forms are folded (NFKC): full-width letters are letters.
//   - Identifiers are split where case changes and at whatever is neither letter nor digit, so camelCase,
//     snake_case, kebab-case and HTTPServer are words each.
//   - English endings go (Snowball's English stemmer), so that "converting" finds "convert". Short forms, irregular ones
//     and other spellings are read as the word that they stand for ([spellings]).
//   - Runs of Han, kana and hangul give each character and each pair of neighbours. Pairs alone lose what is
//     written with another second character; characters alone match nearly everything.
//   - A number is a number, whichever; one of three to eight digits is a word besides. Single letters are left out.
func tokenize(text string, limit int) []token {
	return appendTokens(nil, text, limit)
}

// appendTokens appends them to others, until there are so many in all.
func appendTokens(tokens []token, text string, limit int) []token {
	text = norm.NFKC.String(text)
	for len(text) > 0 && len(tokens) < limit {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case unspaced(r):
			length := prefix(text, unspaced)
			tokens = appendUnspaced(tokens, text[:length], limit)
			text = text[length:]
		case unicode.IsDigit(r):
			length := prefix(text, unicode.IsDigit)
			number := text[:length]
			tokens = append(tokens, token{term: numberTerm, key: numberKey, feature: numberKey, surface: number})
			if length >= minLiteral && length <= maxLiteral && len(tokens) < limit {
				tokens = append(tokens, token{term: number, key: xxhash.Sum64String(number), surface: number, literal: true})
			}
			text = text[length:]
		case unicode.IsLetter(r):
			length := wordLength(text)
			if word, ok := wordToken(text[:length]); ok {
				tokens = append(tokens, word)
			}
			text = text[length:]
		default:
			text = text[size:]
		}
	}
	return tokens
}

// prefix is the length of the longest beginning whose characters all are such.
func prefix(text string, such func(rune) bool) int {
	if i := strings.IndexFunc(text, func(r rune) bool { return !such(r) }); i >= 0 {
		return i
	}
	return len(text)
}

// unspaced tells characters of writing without spaces between words.
func unspaced(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// wordLength is the length of the word that a text begins with. A capital ends it if it follows a small
// letter, or if it is followed by one and follows a capital: get|Weather, HTTP|Server.
func wordLength(text string) int {
	var before rune
	for i, r := range text {
		switch {
		case i == 0:
		case 'a' <= r && r <= 'z': // which most are; never ends a word
		case unicode.Is(unicode.Mn, r): // an accent written by itself
			continue
		case !unicode.IsLetter(r) || unspaced(r):
			return i
		case unicode.IsUpper(r) && unicode.IsLower(before):
			return i
		case unicode.IsUpper(r) && unicode.IsUpper(before):
			if next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); unicode.IsLower(next) {
				return i
			}
		}
		before = r
	}
	return len(text)
}

// wordToken makes a token of a word as it is written, unless it is a single letter.
func wordToken(surface string) (t token, ok bool) {
	slot := &knownWords[xxhash.Sum64String(surface)%rememberedWords]
	known := slot.Load()
	if known == nil || known.word != surface {
		known = readWord(surface)
		if len(surface) <= maxTokenRunes {
			slot.Store(known)
		}
	}
	t = known.token
	t.surface = surface
	return t, t.term != ""
}

// knownWord is a word as it is written and the token that it makes, without its surface; the empty token: none.
type knownWord struct {
	word  string
	token token
}

// knownWords remembers words that were read last: stemming takes longer than all else that is done to a word. Each has one
// place, by its hash, and takes it from the one before; so nothing is locked, and memory is bounded.
var knownWords [rememberedWords]atomic.Pointer[knownWord]

const rememberedWords = 32_768

func readWord(surface string) *knownWord {
	known := &knownWord{word: strings.Clone(surface)}
	word := strings.ToLower(surface)
	if utf8.RuneCountInString(word) < 2 {
		return known
	}
	if utf8.RuneCountInString(word) > maxTokenRunes {
		word = string([]rune(word)[:maxTokenRunes])
	}
	spelt := cmp.Or(spellings[word], word)
	stem := strings.Clone(english.Stem(spelt, true))
	known.token = token{term: stem, key: xxhash.Sum64String(stem), stop: stopWords[word]}
	if known.token.feature = known.token.key; spelt != word {
		known.token.feature = xxhash.Sum64String(english.Stem(word, true))
	}
	return known
}

func appendUnspaced(tokens []token, run string, limit int) []token {
	last := 0 // the length of the character before
	for at := 0; at < len(run) && len(tokens) < limit; {
		_, size := utf8.DecodeRuneInString(run[at:])
		one := run[at : at+size]
		if last > 0 {
			pair := run[at-last : at+size]
			key := xxhash.Sum64String(pair)
			tokens = append(tokens, token{term: pair, key: key, feature: key, surface: pair})
		}
		key := xxhash.Sum64String(one)
		tokens = append(tokens, token{term: one, key: key, feature: key, surface: one, unigram: true, stop: stopCharacters[one]})
		at, last = at+size, size
	}
	return tokens
}
