package discovery

import "math"

// lexical compares a request with the words of tools: BM25F, after Robertson, Zaragoza and Taylor, “Simple
// BM25 extension to multiple weighted fields” (2004). What a word is worth in its fields is added up before
// it is saturated, so that a word in name and description is not two words. It returns the sum that a tool
// with all words of the request, and nothing else, could reach.
func (r *Ranker) lexical(q *Text, s *scratch) (reachable float64) {
	terms := s.terms[:0]
	for range q.terms {
		terms = append(terms, searchedTerm{impacts: &wordImpacts{}})
	}
	s.terms = terms
	s.keys = s.keys[:0]
	for i := range q.terms {
		s.keys = append(s.keys, q.terms[i].key)
	}
	r.index.words.find(s.keys, func(i int, number uint32) {
		terms[i].impacts, terms[i].having = r.impactsOf(number), r.index.havingWord(number)
	})
	for i := range q.terms {
		t := &terms[i]
		t.idf = idf(r.index.all(), t.having)
		switch {
		case q.terms[i].number():
			t.idf *= r.weights.Number
		case q.terms[i].literal && t.having == 0:
			t.idf = 0 // it is no name
		}
		t.weight = t.idf * r.repeated(q.terms[i].count)
		reachable += t.weight * (r.weights.Saturation + 1)
		for _, one := range t.impacts.tools {
			s.words[one.slot] += t.weight * float64(one.worth)
		}
		for _, slot := range t.impacts.named {
			s.name[slot] += t.idf
		}
	}
	r.others(q, s)
	if len(q.sentences) > 1 && r.weights.Sentences > 0 {
		r.sentences(q, s)
	}
	return reachable
}

// others adds what other words for those of the request are worth. They say less of a tool than its own words, and
// nothing of how sure a match is.
func (r *Ranker) others(q *Text, s *scratch) {
	s.keys = s.keys[:0]
	for i := range q.also {
		s.keys = append(s.keys, q.also[i].key)
	}
	r.index.words.find(s.keys, func(i int, number uint32) {
		worth := r.weights.Synonyms
		if q.also[i].compound {
			worth = r.weights.Compounds
		}
		if worth == 0 {
			return
		}
		weight := worth * idf(r.index.all(), r.index.havingWord(number)) * r.repeated(q.also[i].count)
		for _, one := range r.impactsOf(number).tools {
			s.words[one.slot] += weight * float64(one.worth)
		}
	})
}

// repeated is what a word counts that stands in a request so often.
func (r *Ranker) repeated(count int) float64 {
	if count == 1 {
		return 1
	}
	return math.Pow(float64(count), r.weights.Repetition)
}

type searchedTerm struct {
	impacts     *wordImpacts
	having      int // tools that have the word
	idf, weight float64
}

// sentences finds for each tool its best single sentence. One word is no sentence.
func (r *Ranker) sentences(q *Text, s *scratch) {
	for _, sentence := range q.sentences {
		if len(sentence) < 2 {
			continue
		}
		for i := 0; i < len(sentence); {
			count := 1
			for i+count < len(sentence) && sentence[i+count] == sentence[i] {
				count++
			}
			t := &s.terms[sentence[i]]
			weight := t.idf * r.repeated(count)
			for _, one := range t.impacts.tools {
				s.part[one.slot] += weight * float64(one.worth)
			}
			i += count
		}
		for slot, sum := range s.part {
			if sum > s.sentence[slot] {
				s.sentence[slot] = sum
			}
		}
		clear(s.part)
	}
}

// rareGram is the share of tools beyond which an n-gram is not looked at: it would cost most and tell least.
const rareGram = 10

// likeGrams compares the character n-grams of a request with those of tools.
func (r *Ranker) likeGrams(q *Text, s *scratch) {
	if r.weights.Grams == 0 {
		return
	}
	s.keys = s.keys[:0]
	for _, g := range q.grams {
		s.keys = append(s.keys, g.gram)
	}
	most := max(64, r.index.Len()/rareGram)
	r.index.grams.find(s.keys, func(i int, number uint32) {
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
