package discovery

import (
	"cmp"
	"math"
	"slices"
)

// maxPastPostings bounds how many occurrences of words in past requests one search looks at, rare words
// first.
const maxPastPostings = 60_000

// leastLikeness is that of a neighbour at least.
const leastLikeness = 0.05

// similar is the likeness of past requests that people are told of.
const similar = 0.37

type searchedWord struct {
	word     uint32
	idf      float64
	requests int
}

// learned lays what a level's past requests say over the scores.
func (r *Ranker) learned(l *level, q *Text, c *Candidates, s *scratch) (gate float64) {
	w := &r.weights.Learned
	words, length := l.searched(q.features, s)
	if len(words) == 0 {
		return 0
	}
	s.past = zeros(s.past, len(s.score))
	s.likeness = zeros(s.likeness, len(l.past))
	left := maxPastPostings
	for i := range words {
		word := &words[i]
		x := word.idf / length
		for _, one := range l.impactsOf(word.word, w) {
			sums := &s.past[one.slot]
			sums.centroid += x * float64(one.centroid)
			sums.log += float64(one.log)
		}
		if left -= word.requests; left < 0 {
			continue
		}
		like := float32(x * word.idf)
		for _, request := range l.byWord[word.word] {
			s.likeness[request] += like
		}
	}
	if len(s.best) == 0 { // of several levels, the nearest counts
		s.best, s.voters = zeros(s.best, len(s.score)), zeros(s.voters, len(s.score))
	}
	agreed, nearest := r.vote(l, c, s)
	all := w.Log + w.Centroid + w.Nearest
	if nearest == 0 || all == 0 {
		return 0
	}
	var most pastSums
	for _, slot := range l.slots {
		if slot >= 0 && c.has(uint(slot)) {
			sums := &s.past[slot]
			most.raise(sums)
		}
	}
	opens := func(likeness float64) float64 {
		return min(1, max(0, (l.trust.in(strength(likeness, most.nearest/s.votes, w))-w.GateFrom)/(w.GateTo-w.GateFrom)))
	}
	gate = opens(nearest) / ((1 + w.BackOff) * max(1, w.Scale+w.Expansion)) // what one contributor alone tells
	if agreed > 0 {
		gate = max(gate, opens(agreed))
	}
	if gate == 0 {
		return 0
	}
	if len(s.share) == 0 {
		s.share, s.unlike = zeros(s.share, len(s.score)), zeros(s.unlike, len(s.score))
	}
	s.history, s.backOff, s.against = zeros(s.history, len(s.score)), zeros(s.backOff, len(s.score)), zeros(s.against, len(s.score))
	for i, slot := range l.slots {
		if slot < 0 || !c.has(uint(slot)) {
			continue
		}
		sums := &s.past[slot]
		s.history[slot] = (w.Log*part(sums.log, most.log) + w.Centroid*part(sums.centroid, most.centroid) + w.Nearest*part(sums.nearest, most.nearest)) / all
		s.backOff[slot], s.against[slot] = l.backOff[i], l.against[i]
		s.unlike[slot] = l.backOff[i] * (l.own[i] - sums.centroid)
	}
	counts := gate * l.share * w.Share
	l.beforeNew(s)
	for slot, before := range s.score {
		if before == 0 && s.history[slot] == 0 {
			continue
		}
		// The history of this level, and what stands in for it as far as the tool has none.
		b := s.backOff[slot]
		if w.Scale*(s.history[slot]-w.Unproven*before) < before { // the more of it counts, the lower the score
			b = s.against[slot]
		}
		s.score[slot] = (1-counts*b)*before + counts*w.Scale*(b*s.history[slot]+(1-b)*w.Unproven*before)
		s.share[slot] = 1 - (1-s.share[slot])*(1-counts*b) // of all levels so far
	}
	best := highest(s.score)
	r.creditNew(l, c, counts, s)
	r.expand(l, q, c, counts, best, s)
	return gate
}

// searched finds the words of a request that past ones have, rare ones first, and the length of the request's
// vector.
func (l *level) searched(features Features, s *scratch) (words []searchedWord, length float64) {
	words = s.searched[:0]
	for _, key := range features {
		weight := l.unknown
		if word, ok := l.words[key]; ok {
			weight = l.idf[word]
			words = append(words, searchedWord{word, weight, len(l.byWord[word])})
		}
		length += weight * weight
	}
	slices.SortStableFunc(words, func(a, b searchedWord) int { return cmp.Compare(a.requests, b.requests) })
	s.searched = words
	return words, math.Sqrt(length)
}

// vote lets the nearest past requests vote for their tools. It returns the likeness on which contributors agree (0: one is
// alone), and that of the nearest. Those whose tools cannot be found have no vote.
func (r *Ranker) vote(l *level, c *Candidates, s *scratch) (agreed, nearest float64) {
	w := &r.weights.Learned
	s.neighbours = appendNearest(s.neighbours[:0], w.Neighbours, s.likeness, l.inverse, 1, func(request uint32) bool { return l.canBeFound(request, c) }, l.fewOfEach)
	s.votes = 0
	if len(s.neighbours) == 0 {
		return 0, 0
	}
	l.countAlike(s.neighbours, s.voters)
	nearest = s.neighbours[0].likeness
	agreed = l.agree(s.neighbours)
	for _, n := range s.neighbours {
		vote := math.Pow(n.likeness, w.Sharpness)
		s.votes += vote
		for _, t := range l.past[n.request].tools {
			slot := l.slots[t.tool]
			if slot < 0 {
				continue
			}
			s.past[slot].nearest += t.weight * vote
			s.best[slot] = max(s.best[slot], n.likeness)
		}
	}
	return agreed, nearest
}

func part(x, of float64) float64 {
	if of == 0 {
		return 0
	}
	return x / of
}
