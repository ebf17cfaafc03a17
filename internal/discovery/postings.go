package discovery

import "github.com/bits-and-blooms/bitset"

// listsPerPage is how many lists are copied with one that changes. A list's header takes 24 bytes.
const listsPerPage = 64

// postings has a list for each term: the tools that have it, by slot. It never changes; [postings.edit] makes
// another that shares with it every page and every list but those that changed.
type postings[P any] struct {
	pages []*[listsPerPage][]P
}

// of returns the list of a term.
func (p *postings[P]) of(term uint32) []P {
	page := int(term / listsPerPage)
	if page >= len(p.pages) || p.pages[page] == nil {
		return nil
	}
	return p.pages[page][term%listsPerPage]
}

// terms is more than the number of any term that has a list.
func (p *postings[P]) terms() int { return len(p.pages) * listsPerPage }

// postingsEdit is postings on their way to be others. It copies a list when it is first changed.
type postingsEdit[P any] struct {
	postings[P]
	ownPages, ownLists *bitset.BitSet
	slot               func(P) uint32
}

func (p *postings[P]) edit(slot func(P) uint32) *postingsEdit[P] {
	return &postingsEdit[P]{postings: postings[P]{append([]*[listsPerPage][]P(nil), p.pages...)},
		ownPages: &bitset.BitSet{}, ownLists: &bitset.BitSet{}, slot: slot}
}

// own returns a term's list, to be changed.
func (e *postingsEdit[P]) own(term uint32) *[]P {
	page := uint(term / listsPerPage)
	for int(page) >= len(e.pages) {
		e.pages = append(e.pages, nil)
	}
	if !e.ownPages.Test(page) {
		e.ownPages.Set(page)
		fresh := &[listsPerPage][]P{}
		if old := e.pages[page]; old != nil {
			*fresh = *old
		}
		e.pages[page] = fresh
	}
	list := &e.pages[page][term%listsPerPage]
	if !e.ownLists.Test(uint(term)) {
		e.ownLists.Set(uint(term))
		*list = append(make([]P, 0, len(*list)+1), *list...)
	}
	return list
}

// place is where a slot stands in a list, or would.
func (e *postingsEdit[P]) place(list []P, slot uint32) int {
	low, high := 0, len(list)
	if high > 0 && e.slot(list[high-1]) < slot { // the most frequent case: a new tool
		return high
	}
	for low < high {
		middle := (low + high) / 2
		if e.slot(list[middle]) < slot {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (e *postingsEdit[P]) add(term uint32, posting P) {
	list := e.own(term)
	i := e.place(*list, e.slot(posting))
	*list = append(*list, posting)
	copy((*list)[i+1:], (*list)[i:])
	(*list)[i] = posting
}

func (e *postingsEdit[P]) remove(term, slot uint32) {
	list := e.own(term)
	i := e.place(*list, slot)
	*list = append((*list)[:i], (*list)[i+1:]...)
}

// done returns the new postings, with no memory to spare: most lists will not change again.
func (e *postingsEdit[P]) done() postings[P] {
	for term, ok := e.ownLists.NextSet(0); ok; term, ok = e.ownLists.NextSet(term + 1) {
		list := &e.pages[term/listsPerPage][term%listsPerPage]
		if len(*list) == 0 {
			*list = nil
		} else if cap(*list) > len(*list)+len(*list)/8 {
			*list = append(make([]P, 0, len(*list)), *list...)
		}
	}
	return e.postings
}
