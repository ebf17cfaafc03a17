package discovery

import (
	"cmp"
	"math"
	"slices"
)

// trust is how often a history is right about its own requests: a sample of them is asked of all others, and it is counted
// whether the tool that these vote for is right, by how strong the vote was. Where requests that are alike need the same
// tool, a likeness of 0.3 is as good as certain; where they need one of ten tools of a server, it says little. No setting
// is right for both.
type trust struct {
	right, asked [trustSteps + 1]float64 // by strength of the vote
	best         float64
	prior        float64 // so many requests stand for what is supposed without any
}

const (
	trustSteps = 10
	// trustSample is how many requests are asked at most; it bounds what a history takes to make.
	trustSample = 500
	// trustWidth is how far a strength tells about others: the deviation of the kernel.
	trustWidth = 0.07
	// leastBest bounds how far trust is raised where labels are wrong: see [trust.in].
	leastBest = 0.3
)

// measure asks the sample. Of requests of one contributor none tells about another: nobody makes his own trusted.
func (h *History) measure(kept []Request, w *LearnedWeights) {
	h.trust.prior = w.TrustPrior
	likeness := make([]float32, len(kept))
	votes := make([]float64, len(h.tools))
	step := 1 + (len(kept)-1)/trustSample
	for one := 0; one < len(kept); one += step {
		h.compare(kept[one].Features, likeness)
		near := nearest(w.Neighbours, likeness, h.inverse, float64(h.inverse[one]), func(i uint32) bool {
			return int(i) != one && (kept[i].Contributor == "" || kept[i].Contributor != kept[one].Contributor)
		})
		clear(votes)
		total, most, tool := 0.0, 0.0, uint32(0)
		for _, n := range near {
			vote := math.Pow(n.likeness, w.Sharpness)
			total += vote
			for _, t := range h.past[n.request].tools {
				if votes[t.tool] += t.weight * vote; votes[t.tool] > most {
					most, tool = votes[t.tool], t.tool
				}
			}
		}
		if total == 0 {
			continue
		}
		step := int(trustSteps*strength(near[0].likeness, most/total, w) + 0.5)
		h.trust.asked[step]++
		if slices.ContainsFunc(h.past[one].tools, func(t toolShare) bool { return t.tool == tool }) {
			h.trust.right[step]++
		}
	}
	h.trust.best = leastBest
	for i := range h.trust.asked {
		h.trust.best = max(h.trust.best, h.trust.at(float64(i)/trustSteps))
	}
}

// strength is that of a vote, from 0 to 1: how near the nearest past request is, less if the near ones disagree.
func strength(likeness, agreement float64, w *LearnedWeights) float64 {
	return min(1, likeness) * math.Pow(min(1, agreement), w.Agreement)
}

// at is how often votes of such a strength are right.
func (t *trust) at(strength float64) float64 {
	right, asked := t.prior*min(1, 1.5*strength), t.prior
	for i := range t.asked {
		if t.asked[i] > 0 {
			d := (strength - float64(i)/trustSteps) / trustWidth
			k := math.Exp(-d * d / 2)
			right += k * t.right[i]
			asked += k * t.asked[i]
		}
	}
	return part(right, asked)
}

// in is how far a vote of such a strength is trusted, from 0 to 1. Labels that are wrong make all votes seem wrong as
// often, so it is measured by the best ones.
func (t *trust) in(strength float64) float64 { return min(1, t.at(strength)/t.best) }

// compare finds how like to a request all past ones are; the lengths of both still have to be divided by.
func (h *History) compare(features Features, likeness []float32) {
	clear(likeness)
	words := make([]uint32, len(features))
	for i, key := range features {
		words[i] = h.words[key]
	}
	slices.SortStableFunc(words, func(a, b uint32) int { return cmp.Compare(len(h.byWord[a]), len(h.byWord[b])) })
	left := maxPastPostings
	for _, word := range words {
		if left -= len(h.byWord[word]); left < 0 {
			return
		}
		like := float32(h.idf[word] * h.idf[word])
		for _, request := range h.byWord[word] {
			likeness[request] += like
		}
	}
}

// neighbour is a past request that is like one.
type neighbour struct {
	request  uint32
	likeness float64
}

// nearest finds the most alike requests, so many of those that may be, the nearest first. Of each, the sum is multiplied
// with its scale and with one for all.
func nearest(limit int, sums, scales []float32, scale float64, may func(request uint32) bool) []neighbour {
	return appendNearest(nil, limit, sums, scales, scale, may, func(found []neighbour, _ uint32) []neighbour { return found })
}

func appendNearest(found []neighbour, limit int, sums, scales []float32, scale float64, may func(request uint32) bool,
	trim func(found []neighbour, added uint32) []neighbour) []neighbour {
	least := float32(leastLikeness / scale) // which nearly none of all past requests reach: the test should be cheap
	scales = scales[:len(sums)]
	for i, sum := range sums {
		like := sum * scales[i]
		if like < least || len(found) == limit && like == least || !may(uint32(i)) {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, float64(like), func(n neighbour, like float64) int {
			if n.likeness >= like { // equals keep their order
				return -1
			}
			return 1
		})
		found = trim(slices.Insert(found, at, neighbour{uint32(i), float64(like)}), uint32(i))
		if len(found) >= limit {
			found = found[:limit]
			least = float32(found[limit-1].likeness)
		}
	}
	for i := range found {
		found[i].likeness *= scale
	}
	return found
}
