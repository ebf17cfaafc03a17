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
	// Read is the text, if it was read already; then Text need not be given.
	Read *Text
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
	Meaning      float64 // likeness of meanings, if a model tells them, as a share of the best tool's
	Outstanding  float64 // by how many standard deviations it is above that of all tools
	Cold         float64 // what these come to, as a share of the best tool's: the score of a search without history
	Coverage     float64 // the share of the request's words that the tool has, by weight
	Strength     float64 // how much these weigh at all, in words as rare as can be: x/(x+1)
	History      float64 // what past requests say, as a share of the best tool's
	HistoryShare float64 // how much of the score past requests make: the gate times the back-off
	Nearest      float64 // the likeness (cosine) of the tool's nearest past request
	Unlike       float64 // how much less the request is like its past ones than these are like one another (cosine), the more, the more there are; below 0: more
	Expansion    float64 // the request's words in the tool and in its past requests together, as a share of the best tool's
	NewCredit    float64 // what stands in for past requests of a tool that was not there for them, beyond Unproven
	Similar      int     // past requests of the tool that are much like this one, in the level that has most of them
}

// strengthHalf is how many words, as rare as can be, make [MatchFeatures.Strength] a half.
const strengthHalf = 1

// Search finds the tools that a request needs. The same ranker gives the same answer.
func (r *Ranker) Search(search Query) Result {
	q := search.Read
	if q == nil {
		q = Read(search.Text)
	}
	c := search.Candidates
	if c == nil {
		c = &Candidates{index: r.index}
	} else if c.index != r.index {
		// Slots of another index are other tools: better none than tools that nobody may see.
		return Result{}
	}
	if search.Limit <= 0 || q.empty() {
		return Result{}
	}
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	s.reset(r.index.Slots())

	reachable := r.lexical(q, s)
	r.likeGrams(q, s)
	r.means(q, s)
	scale := r.cold(s)
	s.reachable = reachable
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

// Explain fills in the reasons of matches that this ranker found for a text.
func (r *Ranker) Explain(q *Text, matches ...*Match) {
	for i := range matches {
		if slot, ok := r.index.Slot(matches[i].Tool); ok {
			matches[i].Reasons = reasons(q, r.index.documents[slot], &matches[i].Features)
		}
	}
}

// match tells of a tool what its score is made of.
func (r *Ranker) match(slot uint32, reachable float64, scale scales, s *scratch) Match {
	f := r.coldFeatures(slot, &scale, s)
	f.Coverage = part(s.words[slot], reachable)
	rarest := idf(r.index.all(), 1) * (r.weights.Saturation + 1)
	f.Strength = s.words[slot] / (s.words[slot] + strengthHalf*rarest)
	f.History, f.HistoryShare = at(s.history, slot), at(s.share, slot)
	f.Unlike, f.NewCredit, f.Expansion = at(s.unlike, slot), at(s.credit, slot), at(s.expanded, slot)
	f.Nearest, f.Similar = at(s.best, slot), int(at(s.voters, slot))
	if z := at(s.meaning, slot); z > 0 { // NaN is not
		f.Outstanding = z
	}
	f.Cold = part(r.mix(&f, &scale), scale.cold)
	return Match{Tool: r.index.documents[slot].tool.ID, Score: s.score[slot], Confidence: r.weights.Confidence.of(&f, r.index.all()), Features: f}
}

// of is how sure a match among so many tools is. The more there are, the more of them have words of any request, so that
// the best of many has to be better than the best of few.
func (w *ConfidenceWeights) of(f *MatchFeatures, tools int) float64 {
	x := w.Constant + w.Size*math.Log(float64(max(tools, 1))) + w.Coverage*f.Coverage + w.Strength*f.Strength + w.Nearest*f.Nearest + w.History*f.History*f.HistoryShare + w.Unlike*f.Unlike + w.Name*f.NameCoverage + w.Meaning*max(0, f.Outstanding-nearMeaning)
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
	least := 0.0
	for i, score := range scores {
		slot := uint32(i)
		if score <= 0 || score < least || !c.has(uint(i)) || len(top) == limit && before(slot, top[limit-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, slot, before)
		top = slices.Insert(top, at, slot)
		if len(top) >= limit {
			top = top[:limit]
			least = scores[top[limit-1]]
		}
	}
	return top
}

// has tells whether a slot may be found.
func (c *Candidates) has(slot uint) bool { return c.slots == nil || c.slots.Test(slot) }
