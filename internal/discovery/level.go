package discovery

import "sync/atomic"

// Level is a history and how much of its word counts: those of all users, of a group and of one user are laid
// over one another in this order.
type Level struct {
	History *History
	Share   float64 // from 0 to 1
}

// level is a history, put together with an index.
type level struct {
	*History
	share   float64
	slots   []int32   // by number of a tool; -1: the index does not have it
	backOff []float64 // by number of a tool: how much of its history counts
	against []float64 // the same where it speaks against the tool
	// only is, by past request, the slot of its one tool; -1: the index does not have it, severalTools: it needed several.
	only []int32
	new  []newTool
	// impacts is, by word, what it is worth to the tools of the index; made when it is first searched for.
	impacts []atomic.Pointer[[]pastImpact]
	added   []atomic.Pointer[addedWord] // by word, likewise
}

const severalTools = -2

// pastImpact is what a word is worth to a tool whose past requests have it.
type pastImpact struct {
	slot          uint32
	log, centroid float32
}

func (r *Ranker) level(one Level) level {
	h := one.History
	l := level{History: h, share: one.Share, slots: make([]int32, len(h.tools)), backOff: make([]float64, len(h.tools)), against: make([]float64, len(h.tools)),
		impacts: make([]atomic.Pointer[[]pastImpact], len(h.byTool)), added: make([]atomic.Pointer[addedWord], len(h.byTool))}
	for i, tool := range h.tools {
		l.slots[i] = -1
		if slot, ok := r.index.Slot(tool); ok {
			l.slots[i] = int32(slot)
		}
		w := &r.weights.Learned
		l.backOff[i] = h.weight[i] / (h.weight[i] + w.BackOff)
		l.against[i] = h.weight[i] / (h.weight[i] + max(w.BackOff, w.BackOffAgainst))
	}
	l.new = l.newTools(r.index, &r.weights.NewTool)
	l.only = make([]int32, len(h.past))
	for i := range h.past {
		if tools := h.past[i].tools; len(tools) == 1 {
			l.only[i] = l.slots[tools[0].tool]
		} else {
			l.only[i] = severalTools
		}
	}
	return l
}

// impactsOf returns what a word is worth to the tools of the index.
func (l *level) impactsOf(word uint32, w *LearnedWeights) []pastImpact {
	cell := &l.impacts[word]
	if known := cell.Load(); known != nil {
		return *known
	}
	list := make([]pastImpact, 0, len(l.byTool[word]))
	for _, t := range l.byTool[word] {
		if slot := l.slots[t.tool]; slot >= 0 {
			tf := float64(t.log) / (1 - w.LogLength + w.LogLength*l.lengths[t.tool]/l.average)
			list = append(list, pastImpact{uint32(slot), float32(l.logIDF[word] * tf * (w.LogSaturation + 1) / (tf + w.LogSaturation)), t.centroid})
		}
	}
	cell.Store(&list)
	return list
}

// canBeFound tells whether any tool of a past request may be.
func (l *level) canBeFound(request uint32, c *Candidates) bool {
	if slot := l.only[request]; slot != severalTools {
		return slot >= 0 && c.has(uint(slot))
	}
	for _, t := range l.past[request].tools {
		if slot := l.slots[t.tool]; slot >= 0 && c.has(uint(slot)) {
			return true
		}
	}
	return false
}
