package discovery

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bits-and-blooms/bitset"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Ranker is an index, past requests and weights, put together. It never changes, and any number of searches
// may use it at a time.
type Ranker struct {
	index   *Index
	weights Weights
	// normal is, by slot, what one occurrence of a word in each field is worth: the field's weight, less for
	// long fields.
	normal   [][fieldCount]float32
	nameIDF  []float64 // by slot, of the words of the name together
	gramNorm []float64 // by slot, what its sum over n-grams is multiplied with
	impacts  *impacts
	levels   []level
	vectors  [][]float32 // by slot; nil: there are none
	beside   [][]float32 // of other tools
	scratch  *sync.Pool
}

// NewRanker puts them together. It takes some microseconds per thousand tools.
func NewRanker(index *Index, weights Weights, levels ...Level) *Ranker {
	r := &Ranker{index: index, weights: weights, scratch: &sync.Pool{New: func() any { return &scratch{} }}, impacts: &impacts{}}
	r.impacts.words = make([]atomic.Pointer[wordImpacts], index.wordLists.terms())
	n := index.Slots()
	r.normal = make([][fieldCount]float32, n)
	r.nameIDF = make([]float64, n)
	r.gramNorm = make([]float64, n)
	for slot, d := range index.documents {
		if d == nil {
			continue
		}
		for f := range fieldCount {
			b := weights.LengthNormalization.of(f)
			r.normal[slot][f] = float32(weights.Fields.of(f) / (1 - b + b*float64(d.lengths[f])/index.averageLength(f)))
		}
		for _, word := range d.name {
			r.nameIDF[slot] += idf(index.all(), index.havingWord(word))
		}
		if d.gramLength > 0 {
			r.gramNorm[slot] = math.Pow(d.gramLength, -weights.GramLength)
		}
	}
	for _, one := range levels {
		if one.History != nil && one.History.Len() > 0 && one.Share > 0 {
			r.levels = append(r.levels, r.level(one))
		}
	}
	return r
}

// Over returns a ranker with more levels laid over those that there are.
func (r *Ranker) Over(levels ...Level) *Ranker {
	over := *r
	over.levels = slices.Clip(r.levels)
	for _, one := range levels {
		if one.History != nil && one.History.Len() > 0 && one.Share > 0 {
			over.levels = append(over.levels, r.level(one))
		}
	}
	return &over
}

// Index returns the index that is searched.
func (r *Ranker) Index() *Index { return r.index }

// Candidates is a set of tools that a search may find, for one index.
type Candidates struct {
	index *Index
	slots *bitset.BitSet
}

// Candidates makes a set of tools; those that the index lacks are left out. It is worth keeping for as long
// as index and tools stay the same.
func (x *Index) Candidates(tools []id.Tool) *Candidates {
	c := &Candidates{index: x, slots: bitset.New(uint(x.Slots()))}
	for _, tool := range tools {
		if slot, ok := x.Slot(tool); ok {
			c.slots.Set(slot)
		}
	}
	return c
}

// CandidatesOf makes a set of tools of their slots. The set must not be changed any more.
func (x *Index) CandidatesOf(slots *bitset.BitSet) *Candidates {
	return &Candidates{index: x, slots: slots}
}

// Len is how many there are.
func (c *Candidates) Len() int { return int(c.slots.Count()) }
