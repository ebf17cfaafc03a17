package discovery

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// document is a tool as the index has it. It never changes.
type document struct {
	tool    Tool
	lengths [fieldCount]uint16 // tokens in each field
	terms   []documentTerm     // each once, by number
	name    []uint32           // the different words of the name
	grams   []documentGram     // each once, by number
	// gramLength is the length of the vector of n-grams.
	gramLength float64
	// words of its texts, made when they are first told of.
	told atomic.Pointer[[fieldCount][]toldText]
}

type documentTerm struct {
	term  uint32
	count counts
}

// counts is how often a term stands in each field.
type counts [fieldCount]uint8

type documentGram struct {
	gram   uint32
	weight float32 // 1 + ln of how often it occurs
}

// literalField tells the fields of names: in them a number may be one, which elsewhere is a year or an example, and words
// are joined.
var literalField = [fieldCount]bool{fieldName: true, fieldAlias: true, fieldKeyword: true, fieldGroup: true}

// analyze makes a document of a tool.
func analyze(tool Tool, words, grams *vocabulary) *document {
	d := &document{tool: tool}
	counted := map[uint64]*counts{}
	var name []uint64
	gramCounts := map[uint64]int{}
	for f := range fieldCount {
		left := maxFieldTokens
		for _, text := range tool.texts(f) {
			var before token
			for _, token := range tokenize(text, left) {
				left--
				if literalField[f] {
					if both, ok := compound(&before, &token); ok {
						both ^= compounded
						if counted[both] == nil {
							counted[both] = &counts{}
						}
						counted[both][f] = 1
					}
					before = token
				}
				// A name is short, and all of it counts: "get" tells it from "set".
				if token.stop && f != fieldName || token.literal && !literalField[f] {
					continue
				}
				key := token.key
				if counted[key] == nil {
					counted[key] = &counts{}
				}
				if n := &counted[key][f]; *n < math.MaxUint8 {
					*n++
				}
				d.lengths[f]++
				if f == fieldName {
					name = append(name, key)
				}
				if gramField[f] && !token.literal && len(gramCounts) < maxToolGrams {
					eachGram(token.term, func(gram uint64) { gramCounts[gram]++ })
				}
			}
		}
	}
	d.terms = make([]documentTerm, 0, len(counted))
	numbers := words.add(slices.Collect(maps.Keys(counted)))
	for key, count := range counted {
		d.terms = append(d.terms, documentTerm{numbers[key], *count})
	}
	slices.SortFunc(d.terms, func(a, b documentTerm) int { return cmp.Compare(a.term, b.term) })
	slices.Sort(name) // by key, not by number: numbers depend on which tools came before
	for _, key := range slices.Compact(name) {
		d.name = append(d.name, numbers[key])
	}

	numbers = grams.add(slices.Collect(maps.Keys(gramCounts)))
	d.grams = make([]documentGram, 0, len(gramCounts))
	for key, count := range gramCounts {
		d.grams = append(d.grams, documentGram{numbers[key], float32(1 + math.Log(float64(count)))})
	}
	slices.SortFunc(d.grams, func(a, b documentGram) int { return cmp.Compare(a.gram, b.gram) })
	// By weight: a sum depends on the order, and the order of numbers on which tools came before.
	weights := make([]float32, len(d.grams))
	for i, g := range d.grams {
		weights[i] = g.weight
	}
	slices.Sort(weights)
	for _, w := range weights {
		d.gramLength += float64(w) * float64(w)
	}
	d.gramLength = math.Sqrt(d.gramLength)
	return d
}
