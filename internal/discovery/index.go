package discovery

import (
	"cmp"
	"slices"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Index has the words and the character n-grams of tools. It never changes, and any number of searches may
// use it at a time; [Index.With] makes another.
type Index struct {
	words, grams *vocabulary
	documents    []*document // by slot; nil: a free slot
	free         []uint32
	ids          []slotOf // by id
	wordLists    postings[wordPosting]
	gramLists    postings[gramPosting]
	// Sums over all tools, whole numbers, so that they come out the same in whatever order tools came.
	total  [fieldCount]int // tokens
	having [fieldCount]int // tools that have the field
	// gone counts documents that were removed since words were numbered.
	gone int
	// beside is what words are common or rare in, besides this index; nil: nothing.
	beside *Index
}

type slotOf struct {
	id   id.Tool
	slot uint32
}

type wordPosting struct {
	slot  uint32
	count counts
}

type gramPosting struct {
	slot   uint32
	weight float32
}

// NewIndex indexes tools. Of two with one id the later counts.
func NewIndex(tools []Tool) *Index {
	return (&Index{words: newVocabulary(), grams: newVocabulary()}).With(tools, nil)
}

// Beside makes an index of a few tools next to this one: what its words are worth depends on how many tools of both
// have them, so that what few tools are found by is comparable with what many are. Searches of it find its own tools
// only, and of those of the other nothing but these counts shows.
func (x *Index) Beside(tools []Tool) *Index {
	return (&Index{words: x.words, grams: x.grams, beside: x}).With(tools, nil)
}

// all is how many tools words are counted in.
func (x *Index) all() int {
	if x.beside != nil {
		return len(x.ids) + len(x.beside.ids)
	}
	return len(x.ids)
}

// havingWord is how many of those have a word.
func (x *Index) havingWord(word uint32) int {
	n := len(x.wordLists.of(word))
	if x.beside != nil {
		n += len(x.beside.wordLists.of(word))
	}
	return n
}

// With returns an index in which tools are put, in place of those of their ids, and others removed. It finds
// what an index made of its tools anew would find, with the same scores. What it takes grows with the number
// of tools that change and hardly with that of all others.
func (x *Index) With(put []Tool, remove []id.Tool) *Index {
	if x.gone > 1000+len(x.ids) {
		return x.rebuilt().With(put, remove)
	}
	next := *x
	e := &indexEdit{Index: &next, words: x.wordLists.edit(func(p wordPosting) uint32 { return p.slot }),
		grams: x.gramLists.edit(func(p gramPosting) uint32 { return p.slot })}
	next.documents = slices.Clone(x.documents)
	next.free = slices.Clone(x.free)

	changes := map[id.Tool]*document{}
	for _, one := range remove {
		changes[one] = nil
	}
	for _, tool := range put {
		changes[tool.ID] = analyze(tool, x.words, x.grams)
	}
	ids := make([]slotOf, 0, len(x.ids)+len(put))
	for _, one := range x.ids {
		if _, ok := changes[one.id]; ok {
			e.remove(one.slot)
		} else {
			ids = append(ids, one)
		}
	}
	// In the order of ids, so that slots do not depend on the order of a map.
	fresh := make([]slotOf, 0, len(put))
	for tool, d := range changes {
		if d != nil {
			fresh = append(fresh, slotOf{id: tool})
		}
	}
	slices.SortFunc(fresh, bySlotID)
	for i := range fresh {
		fresh[i].slot = e.add(changes[fresh[i].id])
	}
	next.ids = append(ids, fresh...)
	slices.SortFunc(next.ids, bySlotID)
	next.wordLists, next.gramLists = e.words.done(), e.grams.done()
	return &next
}

func bySlotID(a, b slotOf) int { return cmp.Compare(a.id, b.id) }

// rebuilt numbers the words anew: those of tools that are gone go.
func (x *Index) rebuilt() *Index {
	tools := make([]Tool, 0, len(x.ids))
	for _, one := range x.ids {
		tools = append(tools, x.documents[one.slot].tool)
	}
	if x.beside != nil {
		return x.beside.Beside(tools)
	}
	return NewIndex(tools)
}

// Len is how many tools there are.
func (x *Index) Len() int { return len(x.ids) }

// Slots is more than any slot.
func (x *Index) Slots() int { return len(x.documents) }

// Slot returns the number by which this index knows a tool. Another index may number it otherwise.
func (x *Index) Slot(tool id.Tool) (slot uint, ok bool) {
	i, ok := slices.BinarySearchFunc(x.ids, tool, func(one slotOf, tool id.Tool) int { return cmp.Compare(one.id, tool) })
	if !ok {
		return 0, false
	}
	return uint(x.ids[i].slot), true
}

// averageLength is that of a field, of the tools that have it.
func (x *Index) averageLength(f field) float64 {
	return float64(max(x.total[f], 1)) / float64(max(x.having[f], 1))
}

// indexEdit is an index on its way to be another.
type indexEdit struct {
	*Index
	words *postingsEdit[wordPosting]
	grams *postingsEdit[gramPosting]
}

func (e *indexEdit) add(d *document) (slot uint32) {
	if n := len(e.free); n > 0 {
		slot, e.free = e.free[n-1], e.free[:n-1]
		e.documents[slot] = d
	} else {
		slot = uint32(len(e.documents))
		e.documents = append(e.documents, d)
	}
	for _, t := range d.terms {
		e.words.add(t.term, wordPosting{slot, t.count})
	}
	for _, g := range d.grams {
		e.grams.add(g.gram, gramPosting{slot, g.weight})
	}
	e.count(d, 1)
	return slot
}

func (e *indexEdit) remove(slot uint32) {
	d := e.documents[slot]
	for _, t := range d.terms {
		e.words.remove(t.term, slot)
	}
	for _, g := range d.grams {
		e.grams.remove(g.gram, slot)
	}
	e.count(d, -1)
	e.documents[slot] = nil
	e.free = append(e.free, slot)
	e.gone++
}

func (e *indexEdit) count(d *document, sign int) {
	for f, length := range d.lengths {
		e.total[f] += sign * int(length)
		if length > 0 {
			e.having[f] += sign
		}
	}
}
