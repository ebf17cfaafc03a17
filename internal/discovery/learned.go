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

type searchedWord struct {
	word     uint32
	idf      float64
	requests int
}

// learned lays what a level's past requests say over the scores.
func (r *Ranker) learned(l *level, q *query, c *Candidates, s *scratch) (gate float64) {
	w := &r.weights.Learned
	words, length := l.searched(q.features)
	if len(words) == 0 {
		return 0
	}
	clear(s.log)
	clear(s.centroid)
	clear(s.nearest)
	clear(s.history)
	clear(s.backOff)
	s.likeness = zeros(s.likeness, len(l.past))
	left := maxPastPostings
	for _, word := range words {
		x := word.idf / length
		for _, t := range l.byTool[word.word] {
			slot := l.slots[t.tool]
			if slot < 0 {
				continue
			}
			s.centroid[slot] += x * float64(t.centroid)
			tf := float64(t.log) / (1 - w.LogLength + w.LogLength*l.lengths[t.tool]/l.average)
			s.log[slot] += l.logIDF[word.word] * tf * (w.LogSaturation + 1) / (tf + w.LogSaturation)
		}
		if left -= word.requests; left < 0 {
			continue
		}
		x *= word.idf
		for _, i := range l.byWord[word.word] {
			s.likeness[i] += x / l.past[i].length
		}
	}
	nearest := r.vote(l, c, s)
	gate = min(1, max(0, (nearest-w.GateFrom)/(w.GateTo-w.GateFrom)))
	if gate == 0 {
		return 0
	}
	logMax, centroidMax, nearestMax := r.highest(c, s.log), r.highest(c, s.centroid), r.highest(c, s.nearest)
	all := w.Log + w.Centroid + w.Nearest
	if all == 0 {
		return 0
	}
	for i, slot := range l.slots {
		if slot < 0 || !c.has(uint(slot)) {
			continue
		}
		s.history[slot] = (w.Log*part(s.log[slot], logMax) + w.Centroid*part(s.centroid[slot], centroidMax) + w.Nearest*part(s.nearest[slot], nearestMax)) / all
		s.backOff[slot] = l.backOff[i]
	}
	most := gate * l.share * w.Share
	for slot, before := range s.score {
		if before == 0 && s.history[slot] == 0 {
			continue
		}
		// The history of this level, and what stands in for it as far as the tool has none.
		b := s.backOff[slot]
		s.score[slot] = (1-most*b)*before + most*w.Scale*(b*s.history[slot]+(1-b)*w.Unproven*before)
		s.share[slot] = most * b
	}
	return gate
}

// searched finds the words of a request that past ones have, rare ones first, and the length of the request's
// vector.
func (l *level) searched(features Features) (words []searchedWord, length float64) {
	for _, key := range features {
		weight := l.unknown
		if word, ok := l.words[key]; ok {
			weight = l.idf[word]
			words = append(words, searchedWord{word, weight, len(l.byWord[word])})
		}
		length += weight * weight
	}
	slices.SortStableFunc(words, func(a, b searchedWord) int { return cmp.Compare(a.requests, b.requests) })
	return words, math.Sqrt(length)
}

type neighbour struct {
	request  uint32
	likeness float64
}

// vote lets the nearest past requests vote for their tools, and returns the likeness that opens the gate: that of the
// nearest, as far as contributors agree. Those whose tools cannot be found have no vote.
func (r *Ranker) vote(l *level, c *Candidates, s *scratch) float64 {
	w := &r.weights.Learned
	neighbours := make([]neighbour, 0, w.Neighbours+1)
	for i, likeness := range s.likeness {
		if likeness < leastLikeness || len(neighbours) == w.Neighbours && likeness <= neighbours[w.Neighbours-1].likeness {
			continue
		}
		if !slices.ContainsFunc(l.past[i].tools, func(t toolShare) bool { return l.slots[t.tool] >= 0 && c.has(uint(l.slots[t.tool])) }) {
			continue
		}
		at, _ := slices.BinarySearchFunc(neighbours, likeness, func(n neighbour, likeness float64) int {
			if n.likeness >= likeness { // equals keep their order
				return -1
			}
			return 1
		})
		neighbours = l.fewOfEach(slices.Insert(neighbours, at, neighbour{uint32(i), likeness}), uint32(i))
		neighbours = neighbours[:min(len(neighbours), w.Neighbours)]
	}
	l.countAlike(neighbours, w, s.voters)
	opens := l.agree(neighbours, w)
	for _, n := range neighbours {
		for _, t := range l.past[n.request].tools {
			slot := l.slots[t.tool]
			if slot < 0 {
				continue
			}
			s.nearest[slot] += t.weight * math.Pow(n.likeness, w.Sharpness)
			s.best[slot] = max(s.best[slot], n.likeness)
		}
	}
	return opens
}

func part(x, of float64) float64 {
	if of == 0 {
		return 0
	}
	return x / of
}
