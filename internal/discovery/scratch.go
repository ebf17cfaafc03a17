package discovery

// scratch is memory that searches use again.
type scratch struct {
	words, part, sentence, name, grams, score []float64 // by slot
	backOff, against, share, history          []float64 // by slot, of the last level
	best                                      []float64 // by slot: likeness of its nearest neighbour
	credit                                    []float64 // by slot: of new tools, the highest of all levels
	unlike                                    []float64 // by slot: of the last level that has the tool
	expanded                                  []float64 // by slot: words with those of past requests, of the last level; a share of the best
	voters                                    []int32   // by slot: neighbours that vote for it
	meaning                                   []float64 // by slot, in standard deviations; NaN: no vector; empty: not compared
	past                                      []pastSums
	likeness                                  []float32 // by past request
	keys                                      []uint64
	terms                                     []searchedTerm
	searched                                  []searchedWord
	neighbours                                []neighbour
	votes                                     float64   // of all neighbours
	reachable                                 float64   // the sum that a tool with all words of the request could reach
	before                                    []float64 // by new tool: its score before the last level
}

// pastSums are what past requests of a tool say.
type pastSums struct{ log, centroid, nearest float64 }

// raise makes each at least as high as another's.
func (p *pastSums) raise(other *pastSums) {
	if other.log > p.log {
		p.log = other.log
	}
	if other.centroid > p.centroid {
		p.centroid = other.centroid
	}
	if other.nearest > p.nearest {
		p.nearest = other.nearest
	}
}

// reset makes room for so many slots, all zero.
func (s *scratch) reset(slots int) {
	for _, one := range []*[]float64{&s.words, &s.part, &s.sentence, &s.name, &s.grams, &s.score} {
		*one = zeros(*one, slots)
	}
	// Searches that no level answers have none of these, others make them.
	s.backOff, s.share, s.history, s.best, s.voters, s.unlike, s.credit, s.expanded = s.backOff[:0], s.share[:0], s.history[:0], s.best[:0], s.voters[:0], s.unlike[:0], s.credit[:0], s.expanded[:0]
}

// zeros returns so many zeros, in the memory of others if there is enough.
func zeros[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// at is a number by slot; 0 of what was not made.
func at[T any](all []T, slot uint32) (x T) {
	if int(slot) < len(all) {
		return all[slot]
	}
	return x
}
