package discovery

import "math"

// lexical compares a request with the words of tools: BM25F, after Robertson, Zaragoza and Taylor, “Simple
// BM25 extension to multiple weighted fields” (2004). What a word is worth in its fields is added up before
// it is saturated, so that a word in name and description is not two words. It returns the sum that a tool
// with all words of the request, and nothing else, could reach.
func (r *Ranker) lexical(q *query, s *scratch) (reachable float64) {
	terms := make([]searchedTerm, len(q.terms))
	keys := make([]uint64, len(q.terms))
	for i, t := range q.terms {
		keys[i] = t.hash
	}
	r.index.words.find(keys, func(i int, number uint32) {
		terms[i].list, terms[i].having = r.index.wordLists.of(number), r.index.havingWord(number)
	})
	for i, t := range q.terms {
		terms[i].idf = idf(r.index.all(), terms[i].having)
		terms[i].weight = terms[i].idf * math.Pow(float64(t.count), r.weights.Repetition)
		if t.number() {
			terms[i].idf *= r.weights.Number
			terms[i].weight *= r.weights.Number
		}
		reachable += terms[i].weight * (r.weights.Saturation + 1)
	}
	several := len(q.sentences) > 1 && r.weights.Sentences > 0
	s.worth = s.worth[:0]
	for i := range terms {
		r.addWord(&terms[i], s)
	}
	if several {
		r.sentences(q, terms, s)
	}
	for slot, have := range s.name {
		if have > 0 {
			s.name[slot] = min(have/r.nameIDF[slot], 1)
		}
	}
	return reachable
}

type searchedTerm struct {
	list        []wordPosting
	having      int // tools that have the word
	idf, weight float64
	worth       int // where what it is worth to each tool of the list begins in the scratch
}

// addWord adds what a word is worth to the sums of the tools that have it.
func (r *Ranker) addWord(t *searchedTerm, s *scratch) {
	k := float32(r.weights.Saturation)
	t.worth = len(s.worth)
	for i := range t.list {
		p := &t.list[i]
		normal := &r.normal[p.slot]
		var n float32
		for f, count := range p.count {
			if count > 0 {
				n += float32(count) * normal[f]
			}
		}
		if p.count[fieldName] > 0 {
			s.name[p.slot] += t.idf
		}
		worth := float64(n * (k + 1) / (n + k))
		s.words[p.slot] += t.weight * worth
		s.worth = append(s.worth, worth)
	}
}

// sentences finds for each tool its best single sentence. One word is no sentence.
func (r *Ranker) sentences(q *query, terms []searchedTerm, s *scratch) {
	for _, sentence := range q.sentences {
		if len(sentence) < 2 {
			continue
		}
		for i := 0; i < len(sentence); {
			count := 1
			for i+count < len(sentence) && sentence[i+count] == sentence[i] {
				count++
			}
			t := &terms[sentence[i]]
			weight := t.idf * math.Pow(float64(count), r.weights.Repetition)
			for j, worth := range s.worth[t.worth : t.worth+len(t.list)] {
				s.part[t.list[j].slot] += weight * worth
			}
			i += count
		}
		for slot, sum := range s.part {
			s.sentence[slot] = max(s.sentence[slot], sum)
			s.part[slot] = 0
		}
	}
}

// rareGram is the share of tools beyond which an n-gram is not looked at: it would cost most and tell least.
const rareGram = 10

// likeGrams compares the character n-grams of a request with those of tools.
func (r *Ranker) likeGrams(q *query, s *scratch) {
	if r.weights.Grams == 0 {
		return
	}
	keys := make([]uint64, len(q.grams))
	for i, g := range q.grams {
		keys[i] = g.gram
	}
	most := max(64, r.index.Len()/rareGram)
	r.index.grams.find(keys, func(i int, number uint32) {
		list := r.index.gramLists.of(number)
		if len(list) == 0 || len(list) > most {
			return
		}
		w := math.Log1p(float64(r.index.Len()) / float64(len(list)))
		x := (1 + math.Log(float64(q.grams[i].count))) * w * w
		for _, p := range list {
			s.grams[p.slot] += x * float64(p.weight)
		}
	})
	for slot := range s.grams {
		s.grams[slot] *= r.gramNorm[slot]
	}
}
