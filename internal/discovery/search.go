package discovery

import (
	"cmp"
	"math"
	"slices"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Query asks for tools.
type Query struct {
	// Text is the request. Its first 4,096 bytes and 160 words are looked at.
	Text string
	// Candidates are the tools that may be found; nil: all of the index. They must be of the ranker's index.
	Candidates *Candidates
	// Limit is how many are returned at most.
	Limit int
	// Reasons asks why each one matched.
	Reasons bool
}

// Result is what a search found.
type Result struct {
	Matches []Match // the best first; of equals, the smaller id first
	// Steps is how many sentences the request has, which often are steps.
	Steps int
	// Fits tells whether the best match is above the threshold. If not, it is better to say that nothing fits
	// than to offer the matches.
	Fits bool
}

// Match is a tool that a search found.
type Match struct {
	Tool id.Tool
	// Score orders the matches of one search. Those of different searches cannot be compared.
	Score float64
	// Confidence, from 0 to 1, is how likely it is what was asked for, and can be compared between searches
	// and indexes.
	Confidence float64
	Features   MatchFeatures
	Reasons    []Reason // if they were asked for, the strongest first
}

// MatchFeatures are what a match's score is made of.
type MatchFeatures struct {
	Words        float64 // the request's words in the tool's fields, as a share of the best tool's
	Sentence     float64 // of the best single sentence of the request, likewise
	NameCoverage float64 // the share of the name that the request has, by weight
	Grams        float64 // likeness of character n-grams, as a share of the best tool's
	Cold         float64 // what these come to, as a share of the best tool's: the score of a search without history
	Coverage     float64 // the share of the request's words that the tool has, by weight
	Strength     float64 // how much these weigh at all, in words as rare as can be: x/(x+1)
	History      float64 // what past requests say, as a share of the best tool's
	HistoryShare float64 // how much of the score past requests make: the gate times the back-off
	Nearest      float64 // the likeness (cosine) of the tool's nearest past request
	Similar      int     // past requests of the tool that are much like this one, in the level that has most of them
}

// strengthHalf is how many words, as rare as can be, make [MatchFeatures.Strength] a half.
const strengthHalf = 1

// Search finds the tools that a request needs. The same ranker gives the same answer.
func (r *Ranker) Search(search Query) Result {
	q := parse(search.Text)
	c := search.Candidates
	if c == nil {
		c = &Candidates{index: r.index}
	} else if c.index != r.index {
		// Slots of another index are other tools: better none than tools that nobody may see.
		return Result{}
	}
	if search.Limit <= 0 || len(q.tokens) == 0 {
		return Result{}
	}
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	s.reset(r.index.Slots())

	reachable := r.lexical(q, s)
	r.likeGrams(q, s)
	scale := r.cold(s)
	for i := range r.levels {
		r.learned(&r.levels[i], q, c, s)
	}
	top := r.top(c, s.score, search.Limit)
	matches := make([]Match, len(top))
	for i, slot := range top {
		matches[i] = r.match(slot, reachable, scale, s)
		if search.Reasons {
			matches[i].Reasons = reasons(q, r.index.documents[slot], &matches[i].Features)
		}
	}
	return Result{Matches: matches, Steps: len(q.sentences), Fits: len(matches) > 0 && matches[0].Confidence >= r.weights.Confidence.Threshold}
}

// scales are the highest sums over all tools, by which those of a tool are divided.
type scales struct{ words, sentence, grams, cold float64 }

// Explain fills in the reasons of matches that this ranker found for a text.
func (r *Ranker) Explain(text string, matches []Match) {
	q := parse(text)
	for i := range matches {
		if slot, ok := r.index.Slot(matches[i].Tool); ok {
			matches[i].Reasons = reasons(q, r.index.documents[slot], &matches[i].Features)
		}
	}
}

// cold puts together what needs no history. Sums are divided by the highest of all tools, not of those that
// may be found: what a user may not use does not change the order of what he may.
func (r *Ranker) cold(s *scratch) scales {
	m := scales{words: highest(s.words), sentence: highest(s.sentence), grams: highest(s.grams)}
	for slot := range s.score {
		if s.words[slot] > 0 || s.grams[slot] > 0 {
			f := r.coldFeatures(uint32(slot), m, s)
			s.score[slot] = r.mix(&f, m)
		}
	}
	if m.cold = highest(s.score); m.cold > 0 {
		for slot := range s.score {
			s.score[slot] /= m.cold
		}
	}
	return m
}

// coldFeatures are those that make the cold score.
func (r *Ranker) coldFeatures(slot uint32, m scales, s *scratch) MatchFeatures {
	return MatchFeatures{
		Words:        part(s.words[slot], m.words),
		Sentence:     part(s.sentence[slot], m.sentence),
		NameCoverage: s.name[slot],
		Grams:        part(s.grams[slot], m.grams),
	}
}

// mix is what these features come to.
func (r *Ranker) mix(f *MatchFeatures, m scales) float64 {
	words := f.Words
	if m.sentence > 0 {
		words = (words + r.weights.Sentences*f.Sentence) / (1 + r.weights.Sentences)
	}
	return words*(1+r.weights.NameCoverage*f.NameCoverage) + r.weights.Grams*f.Grams
}

// match tells of a tool what its score is made of.
func (r *Ranker) match(slot uint32, reachable float64, scale scales, s *scratch) Match {
	f := r.coldFeatures(slot, scale, s)
	f.Coverage = part(s.words[slot], reachable)
	rarest := idf(r.index.all(), 0) * (r.weights.Saturation + 1)
	f.Strength = s.words[slot] / (s.words[slot] + strengthHalf*rarest)
	f.History, f.HistoryShare = s.history[slot], s.share[slot]
	f.Nearest, f.Similar = s.best[slot], int(s.voters[slot])
	f.Cold = part(r.mix(&f, scale), scale.cold)
	return Match{Tool: r.index.documents[slot].tool.ID, Score: s.score[slot], Confidence: r.weights.Confidence.of(&f), Features: f}
}

func (w *ConfidenceWeights) of(f *MatchFeatures) float64 {
	x := w.Constant + w.Coverage*f.Coverage + w.Strength*f.Strength + w.Nearest*f.Nearest + w.Name*f.NameCoverage
	return 1 / (1 + math.Exp(-x))
}

// top returns the slots with the highest scores above 0 among candidates.
func (r *Ranker) top(c *Candidates, scores []float64, limit int) []uint32 {
	limit = min(limit, len(scores))
	top := make([]uint32, 0, limit+1)
	before := func(a, b uint32) int {
		if order := -cmp.Compare(scores[a], scores[b]); order != 0 {
			return order
		}
		return cmp.Compare(r.index.documents[a].tool.ID, r.index.documents[b].tool.ID)
	}
	for i, score := range scores {
		slot := uint32(i)
		if score <= 0 || !c.has(uint(i)) || len(top) == limit && before(slot, top[limit-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, slot, before)
		top = slices.Insert(top, at, slot)
		top = top[:min(len(top), limit)]
	}
	return top
}

// has tells whether a slot may be found.
func (c *Candidates) has(slot uint) bool { return c.slots == nil || c.slots.Test(slot) }

func highest(xs []float64) float64 {
	most := 0.0
	for _, x := range xs {
		most = max(most, x)
	}
	return most
}

// highest is that of the candidates.
func (r *Ranker) highest(c *Candidates, xs []float64) float64 {
	most := 0.0
	for slot, x := range xs {
		if x > most && c.has(uint(slot)) {
			most = x
		}
	}
	return most
}
