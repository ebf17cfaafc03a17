package discovery

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// maxTokenRunes bounds a word: what is longer is no word but data (base64, a key), and only its beginning
// counts.
const maxTokenRunes = 40

// numberTerm stands for every number: which one it is says nothing of the tool.
const numberTerm = "#"

// token is a word of a text, or one or two characters of a language that writes without spaces.
type token struct {
	term    string // what is compared: normalized, in lower case, stemmed
	surface string // as it was written, but for compatibility forms
	stop    bool   // says nothing of the subject
	unigram bool   // one character of such a language
}

func (t token) number() bool { return t.term == numberTerm }

// key is the term as features of requests have it: 64 bits of which the word cannot be read off.
func (t token) key() uint64 { return xxhash.Sum64String(t.term) }

// tokenize splits a text into its first so many tokens:
//
//   - Compatibility forms are folded (NFKC): full-width letters are letters.
//   - Identifiers are split where case changes and at whatever is neither letter nor digit, so camelCase,
//     snake_case, kebab-case and HTTPServer are words each.
//   - English endings go (Snowball's English stemmer), so that "converting" finds "convert".
//   - Runs of Han, kana and hangul give each character and each pair of neighbours. Pairs alone lose what is
//     written with another second character; characters alone match nearly everything.
//   - A number is a number, whichever. Single letters are left out.
func tokenize(text string, limit int) []token {
	var tokens []token
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
			tokens = append(tokens, token{term: numberTerm, surface: text[:length]})
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

func wordToken(surface string) (token, bool) {
	word := strings.ToLower(surface)
	if utf8.RuneCountInString(word) < 2 {
		return token{}, false
	}
	if runes := []rune(word); len(runes) > maxTokenRunes {
		word = string(runes[:maxTokenRunes])
	}
	return token{term: stem(word), surface: surface, stop: stopWords[word]}, true
}

// stems remembers the stems of words: stemming takes longer than all else that is done to a word.
var stems = func() *lru.Cache[string, string] {
	cache, err := lru.New[string, string](rememberedStems)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	return cache
}()

const rememberedStems = 32_768

func stem(word string) string {
	if stemmed, ok := stems.Get(word); ok {
		return stemmed
	}
	stemmed := english.Stem(word, true)
	stems.Add(strings.Clone(word), stemmed)
	return stemmed
}

func appendUnspaced(tokens []token, run string, limit int) []token {
	var last string
	for len(run) > 0 && len(tokens) < limit {
		_, size := utf8.DecodeRuneInString(run)
		one := run[:size]
		run = run[size:]
		if last != "" {
			tokens = append(tokens, token{term: last + one, surface: last + one})
		}
		tokens = append(tokens, token{term: one, surface: one, unigram: true, stop: stopCharacters[one]})
		last = one
	}
	return tokens
}
