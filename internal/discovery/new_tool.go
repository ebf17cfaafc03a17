package discovery

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A tool without past requests is one that nobody wants, or one that nobody could have asked for. What tells them apart is
// not its age but how many requests were made since it is there.

// madeAt is when a past request was made, and what it and all later ones weigh.
type madeAt struct {
	at    time.Time
	since float64
}

// date orders past requests by when they were made.
func (h *History) date(kept []Request) {
	h.made = make([]madeAt, len(kept))
	for i, r := range kept {
		h.made[i] = madeAt{r.Time, r.Weight}
	}
	// By weight, too: a sum depends on the order.
	slices.SortFunc(h.made, func(a, b madeAt) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.since, b.since)) })
	for i := len(h.made) - 2; i >= 0; i-- {
		h.made[i].since += h.made[i+1].since
	}
}

// since is what past requests weigh that were made at an instant or later.
func (h *History) since(instant time.Time) float64 {
	i, _ := slices.BinarySearchFunc(h.made, instant, func(m madeAt, instant time.Time) int { return m.at.Compare(instant) })
	if i == len(h.made) {
		return 0
	}
	return h.made[i].since
}

// newness is how far a tool is unknown, from 0 to 1: the share of past requests that it was not there for, the less, the more
// it was there for.
func (h *History) newness(created time.Time, w *NewToolWeights) float64 {
	if created.IsZero() || len(h.made) == 0 || !created.After(h.made[0].at) {
		return 0
	}
	all, since := h.made[0].since, h.since(created)
	return (1 - since/all) * w.KnownAfter / (w.KnownAfter + since)
}

// compareOwn finds how like the past requests of each tool are to one another: the mean likeness (cosine) of one to the mean
// of the others, which is what a request that is for the tool can be expected to have. Square is, by tool, the square of the
// length of the sum of its requests' vectors.
func (h *History) compareOwn(square []float64) {
	squares := make([]float64, len(h.tools)) // of weights
	for i := range h.past {
		for _, share := range h.past[i].tools {
			squares[share.tool] += share.weight * share.weight
		}
	}
	h.own = make([]float64, len(h.tools))
	for tool, all := range h.weight {
		one := squares[tool] / all // the weight of one
		if others := square[tool] - 2*square[tool]*one/all + one*one; others > 0 {
			h.own[tool] = min(1, max(0, (square[tool]-squares[tool])/all/math.Sqrt(others)))
		}
	}
}

// newTool is a tool that was not there for all past requests of a level.
type newTool struct {
	slot    uint32
	newness float64 // from 0 to 1
}

// newTools finds them, by slot.
func (l *level) newTools(x *Index, w *NewToolWeights) (list []newTool) {
	for slot, d := range x.documents {
		if d == nil {
			continue
		}
		if newness := l.newness(d.tool.Created, w); newness > 0 {
			list = append(list, newTool{uint32(slot), newness})
		}
	}
	return list
}

// beforeNew keeps the scores that new tools have before a level is laid over them.
func (l *level) beforeNew(s *scratch) {
	s.before = s.before[:0]
	for _, one := range l.new {
		s.before = append(s.before, s.score[one.slot])
	}
}

// creditNew gives new tools, where it is more than the credit of a tool that nobody asked for, what past requests can be
// expected to say of them, had they been there: the more, the more they have of the request than the tool that is first
// without them, and the less the request is like those that were for that one. Counts is how much the level counts.
func (r *Ranker) creditNew(l *level, c *Candidates, counts float64, s *scratch) {
	if len(l.new) == 0 {
		return
	}
	first, ok := l.firstKnown(c, s)
	if !ok {
		return
	}
	w, learned := &r.weights.NewTool, &r.weights.Learned
	coverage, name := r.has(first, s)
	unlike := -s.past[first].centroid
	if tool := slices.Index(l.slots, int32(first)); tool >= 0 {
		unlike += l.own[tool]
	}
	if len(s.credit) == 0 {
		s.credit = zeros(s.credit, len(s.score))
	}
	for i, one := range l.new {
		before, history := s.before[i], s.history[one.slot]
		if before == 0 {
			continue
		}
		itsCoverage, itsName := r.has(one.slot, s)
		x := w.Constant + w.Coverage*(itsCoverage-coverage) + w.Name*(itsName-name) + w.Unlike*unlike
		more := one.newness * max(0, 1/(1+math.Exp(-x))-learned.Unproven)
		s.credit[one.slot] = max(s.credit[one.slot], more)
		credit := before * (learned.Unproven + more)
		b := s.backOff[one.slot]
		if learned.Scale*(history-credit) < before { // history speaks against it
			b = s.against[one.slot] * (1 - one.newness) // a first few past requests say less than what is expected
		}
		s.score[one.slot] = (1-counts*b)*before + counts*learned.Scale*(b*history+(1-b)*credit)
	}
}

// firstKnown is the tool with the highest score of those that are not new, or have past requests all the same.
func (l *level) firstKnown(c *Candidates, s *scratch) (first uint32, ok bool) {
	most, next := 0.0, 0
	for i, score := range s.score {
		slot := uint32(i)
		if next < len(l.new) && l.new[next].slot == slot {
			if next++; s.backOff[slot] == 0 {
				continue
			}
		}
		if score > most && c.has(uint(slot)) {
			first, most, ok = slot, score, true
		}
	}
	return first, ok
}

// has is the share of the request's words that a tool has, and of its name that the request has.
func (r *Ranker) has(slot uint32, s *scratch) (coverage, name float64) {
	return part(s.words[slot], s.reachable), min(part(s.name[slot], r.nameIDF[slot]), 1)
}
