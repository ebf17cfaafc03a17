package discovery

import "sync/atomic"

// impact is what a word is worth to a tool that has it.
type impact struct {
	slot  uint32
	worth float32
}

// wordImpacts is what a word is worth to all tools that have it.
type wordImpacts struct {
	tools []impact // by slot
	named []uint32 // slots of those that have it in their name
}

// impacts are those of all words for one ranker, each made when it is first searched for: what a word is worth depends on
// weights and on the mean length of fields, so a change of a tool changes all of them a little, and most are not asked for
// before the next change.
type impacts struct {
	words []atomic.Pointer[wordImpacts]
}

// impactsOf returns those of a word.
func (r *Ranker) impactsOf(word uint32) *wordImpacts {
	if word >= uint32(len(r.impacts.words)) {
		return &wordImpacts{} // the index is older than the word
	}
	cell := &r.impacts.words[word]
	if known := cell.Load(); known != nil {
		return known
	}
	list := r.index.wordLists.of(word)
	made := &wordImpacts{tools: make([]impact, len(list))}
	k := float32(r.weights.Saturation)
	for i := range list {
		p := &list[i]
		normal := &r.normal[p.slot]
		var n float32
		for f, count := range p.count {
			if count > 0 {
				n += float32(count) * normal[f]
			}
		}
		made.tools[i] = impact{p.slot, n * (k + 1) / (n + k)}
		if p.count[fieldName] > 0 {
			made.named = append(made.named, p.slot)
		}
	}
	cell.Store(made) // two searches may both make it; they make the same
	return made
}
