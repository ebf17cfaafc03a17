package discovery

import "math"

// Expansion of documents: words of a tool's past requests count among its own, as one more field of its (BM25F), after
// Scholer and Williams, “Query association for effective retrieval” (2002). What log, centroid and nearest say of past
// requests stands beside what the tool's words say; here both tell of one word together, so that a request finds a tool of
// which it has some words in the description and the others in past requests.

// expand lays what words and past requests are worth together over the scores, beside what they are worth by themselves.
// Counts is how much the level counts, best the best score before new tools are credited: these change nobody else's.
func (r *Ranker) expand(l *level, q *Text, c *Candidates, counts, best float64, s *scratch) {
	w := counts * r.weights.Learned.Expansion
	if w == 0 {
		return
	}
	s.expanded = append(s.expanded[:0], s.words...)
	for i := range q.terms {
		t := &q.terms[i]
		word, ok := l.words[t.feature]
		if !ok || t.literal {
			continue
		}
		repeated := r.repeated(t.count)
		for _, one := range r.addedBy(l, word, t.key, &s.terms[i]) {
			if c.has(uint(one.slot)) {
				s.expanded[one.slot] += repeated * float64(one.worth)
			}
		}
	}
	most := highest(s.expanded)
	if most == 0 {
		return
	}
	for _, one := range l.new {
		s.expanded[one.slot] += most * at(s.credit, one.slot) // what past requests would add
	}
	inverse, of, all := 1/most, w*best, 1/(1+w)
	for slot := range s.score {
		s.expanded[slot] *= inverse
		s.score[slot] = (s.score[slot] + of*s.expanded[slot]) * all
	}
}

// addedBy is what past requests add to what a word is worth to tools: as much as it is worth to both together beyond what it
// is worth to the tool's own words, as far as the tool's history counts. A word that requests for most tools have says
// little, whatever few tools have it.
func (r *Ranker) addedBy(l *level, word uint32, key uint64, term *searchedTerm) []impact {
	cell := &l.added[word]
	if known := cell.Load(); known != nil && known.key == key {
		return known.worth
	}
	w, k := &r.weights.Learned, r.weights.Saturation
	saturated := func(x float64) float64 { return x * (k + 1) / (x + k) }
	own := make(map[uint32]float64, len(term.impacts.tools)) // what fields have of the word, before it is saturated
	for _, one := range term.impacts.tools {
		own[one.slot] = float64(one.worth) * k / (k + 1 - float64(one.worth))
	}
	// Among tools that have past requests a word may tell more than among all, or less.
	among := math.Sqrt(float64(r.index.all()) * float64(len(l.tools)))
	worth := max(0, min(term.idf, idf(among, l.choice[word])))
	added := make([]impact, 0, len(l.byTool[word]))
	for _, t := range l.byTool[word] {
		slot := l.slots[t.tool]
		if slot < 0 {
			continue
		}
		x := own[uint32(slot)]
		past := w.ExpansionWord * float64(t.log) / (1 - w.ExpansionLength + w.ExpansionLength*l.lengths[t.tool]/l.average)
		added = append(added, impact{uint32(slot), float32(worth * l.backOff[t.tool] * (saturated(x+past) - saturated(x)))})
	}
	cell.Store(&addedWord{key, added}) // two searches may both make it; they make the same
	return added
}

// addedWord is what past requests add to a word, by the word's key in the index: a short form and another word may be the
// same feature of requests.
type addedWord struct {
	key   uint64
	worth []impact
}
