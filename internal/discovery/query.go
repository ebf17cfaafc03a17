package discovery

import (
	"slices"
	"sync"
)

// Text is a request that was read: made ready to be compared with tools and with past requests. It never changes, and
// any number of searches may be asked with it.
type Text struct {
	terms     []queryTerm // different ones, in the order in which they come first
	also      []otherTerm // what stands for them in tools, and is not among them
	sentences [][]int     // of each sentence, its terms, each as often as it is there
	features  Features
	grams     []gramCount
	vector    []float32 // of what it means; nil: not known
}

type queryTerm struct {
	token
	count int
}

// otherTerm is a synonym, or words joined or split.
type otherTerm struct {
	key      uint64
	count    int
	compound bool
}

type gramCount struct {
	gram  uint64
	count int
}

// reader is memory that readings use again.
type reader struct {
	tokens  []token
	numbers map[uint64]int
}

var readers = sync.Pool{New: func() any { return &reader{numbers: map[uint64]int{}} }}

// Read reads a request. Its first 4,096 bytes and 160 words are looked at.
func Read(text string) *Text {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.tokens = r.tokens[:0]
	clear(r.numbers)
	q := &Text{}
	text = bounded(text)
	for len(text) > 0 && len(r.tokens) < maxRequestTokens {
		sentence := text
		text = ""
		if len(q.sentences) < maxSentences-1 { // the last one takes the rest
			if end, next := sentenceEnd(sentence); end >= 0 {
				sentence, text = sentence[:end], sentence[next:]
			}
		}
		from := len(r.tokens)
		r.tokens = appendTokens(r.tokens, sentence, maxRequestTokens)
		var terms []int
		for i := range r.tokens[from:] {
			t := &r.tokens[from+i]
			if t.stop {
				continue
			}
			n, ok := r.numbers[t.key]
			if !ok {
				n = len(q.terms)
				r.numbers[t.key] = n
				q.terms = append(q.terms, queryTerm{token: *t})
			}
			q.terms[n].count++
			terms = append(terms, n)
		}
		if len(terms) > 0 {
			slices.Sort(terms)
			q.sentences = append(q.sentences, terms)
		}
	}
	q.features = features(r.tokens)
	for i := range q.terms {
		for _, synonym := range synonyms[q.terms[i].key] {
			if _, has := r.numbers[synonym.key]; !has {
				r.numbers[synonym.key] = len(q.also)
				q.also = append(q.also, otherTerm{key: synonym.key, count: q.terms[i].count})
			}
		}
	}
	q.compounds(r.tokens, r.numbers)
	clear(r.numbers)
	q.countGrams(r.numbers)
	clear(r.tokens) // they hold on to the text
	return q
}

// Features are those of the request.
func (q *Text) Features() Features { return q.features }

// empty tells that there are no words to look for.
func (q *Text) empty() bool { return len(q.terms) == 0 && len(q.features) == 0 }

// countGrams counts the n-grams of the words; numbers is empty.
func (q *Text) countGrams(numbers map[uint64]int) {
	q.grams = make([]gramCount, 0, min(len(q.terms)*16, maxRequestGrams))
	for i := range q.terms {
		t := &q.terms[i]
		if len(q.grams) >= maxRequestGrams {
			break
		}
		if t.literal {
			continue
		}
		eachGram(t.term, func(gram uint64) {
			n, ok := numbers[gram]
			if !ok {
				n = len(q.grams)
				numbers[gram] = n
				q.grams = append(q.grams, gramCount{gram: gram})
			}
			q.grams[n].count += t.count
		})
	}
}
