package discovery

import (
	"regexp"
	"slices"
)

// query is a request made ready to be compared.
type query struct {
	tokens    []token
	terms     []queryTerm // different ones, in the order in which they come first
	sentences [][]int     // of each sentence, its terms, each as often as it is there
	features  Features
	grams     []gramCount
}

type queryTerm struct {
	token
	hash  uint64
	count int
}

type gramCount struct {
	gram  uint64
	count int
}

// sentenceEnd also ends where a further step is joined on.
var sentenceEnd = regexp.MustCompile(`[.?!;]\s|[。？！；\n]|, and |，`)

func parse(text string) *query {
	q := &query{}
	numbers := map[uint64]int{}
	text = bounded(text)
	for len(text) > 0 && len(q.tokens) < maxRequestTokens {
		sentence := text
		text = ""
		if len(q.sentences) < maxSentences-1 { // the last one takes the rest
			if end := sentenceEnd.FindStringIndex(sentence); end != nil {
				sentence, text = sentence[:end[0]], sentence[end[1]:]
			}
		}
		tokens := tokenize(sentence, maxRequestTokens-len(q.tokens))
		q.tokens = append(q.tokens, tokens...)
		var terms []int
		for _, t := range tokens {
			if t.stop {
				continue
			}
			key := t.key()
			n, ok := numbers[key]
			if !ok {
				n = len(q.terms)
				numbers[key] = n
				q.terms = append(q.terms, queryTerm{token: t, hash: key})
			}
			q.terms[n].count++
			terms = append(terms, n)
		}
		if len(terms) > 0 {
			slices.Sort(terms)
			q.sentences = append(q.sentences, terms)
		}
	}
	q.features = features(q.tokens)
	q.grams = gramsOf(q.terms)
	return q
}

func gramsOf(terms []queryTerm) []gramCount {
	numbers := map[uint64]int{}
	var grams []gramCount
	for _, t := range terms {
		if len(grams) >= maxRequestGrams {
			break
		}
		eachGram(t.token, func(gram uint64) {
			n, ok := numbers[gram]
			if !ok {
				n = len(grams)
				numbers[gram] = n
				grams = append(grams, gramCount{gram: gram})
			}
			grams[n].count += t.count
		})
	}
	return grams
}
