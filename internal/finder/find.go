package finder

import (
	"cmp"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Settings are an operator's.
type Settings struct {
	// JITThreshold is how many tools are told without a choice.
	JITThreshold int
	// TopKSystem and TopKUser are how many shared and private tools a query keeps of a larger effective set.
	TopKSystem, TopKUser int
	// FastPathThreshold is the confidence from which a tool may be called at once.
	FastPathThreshold float64
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{JITThreshold: 15, TopKSystem: 3, TopKUser: 5, FastPathThreshold: 0.8}
}

// Facts is what an answer rests on besides the indexes.
type Facts struct {
	*call.Facts
	World *effective.World
	// Score is the share of a subject's recent calls that went well; nil: all did.
	Score func(health.Subject) float64
}

// Request is the question what a request in words needs.
type Request struct {
	Text string
	TopK int
	// Read is the text, if it was read already; then Text need not be given.
	Read *discovery.Text
	// Model is what is known of the model: capabilities and provider.
	Model call.Request
	// Reranking asks another model for the order; nil: none.
	Reranking *Reranking
}

// Result is what was found.
type Result struct {
	Matches []Match
	Related []Related
	// All tells that the matches are all candidates.
	All bool
	// Fits tells whether what is best fits at all.
	Fits       bool
	Candidates int
	FastPath   *FastPath
	// Found are the tools of the matches that were found, and not only told.
	Found []id.Tool
	// Missed are models that were to help, and were away, too slow or wrong.
	Missed []Model
}

// Model is one that makes searches better, if there is one.
type Model string

// The models.
const (
	ModelEmbedding Model = "EMBEDDING" // compares meanings
	ModelReranker  Model = "RERANKER"  // orders the best matches anew
)

// Match is a tool that was found.
type Match struct {
	discovery.Match
	Number     uint
	Ranking    float64  // its score before Adjustment
	Adjustment float64  // what risk, cost, health and semantic level leave of it
	Relevance  *float64 // what a re-ranker says, from 0 to 1; nil: it did not count
	Own        bool
	Enabled    bool
	Unhealthy  bool
}

// Related is a tool that is often needed together with a match.
type Related struct {
	Number  uint
	To      id.Tool
	Enabled bool
}

// FastPath is a tool that may be called at once, and the task that it is there for.
type FastPath struct {
	Number uint
	Task   string
}

const maxRelated = 10

// Find finds tools for a request.
func (v *View) Find(f *Facts, s *Settings, r *Request) Result {
	text := r.Read
	if text == nil {
		text = discovery.Read(r.Text)
	}
	candidates := v.candidates(f)
	candidates.InPlaceDifference(f.Unready(&r.Model))
	result := Result{Candidates: int(candidates.Count())}
	result.All = result.Candidates <= s.JITThreshold
	wanted := r.TopK
	if result.All {
		wanted = result.Candidates
	}
	if again := r.Reranking; again != nil && !result.All { // of all candidates there is nothing to choose
		result.Matches = v.rank(f, candidates, text, max(wanted, again.Candidates))
		if v.rerank(result.Matches, again) {
			result.Missed = append(result.Missed, ModelReranker)
		}
		result.Matches = result.Matches[:min(len(result.Matches), wanted)]
	} else {
		result.Matches = v.rank(f, candidates, text, wanted)
	}
	v.explain(text, result.Matches)
	result.Fits = slices.ContainsFunc(result.Matches, v.fits)
	if !result.Fits && !result.All { // of all candidates the order still helps
		result.Matches = nil
	}
	result.FastPath = fastPath(f, s, result.Matches, text)
	for _, m := range result.Matches {
		result.Found = append(result.Found, m.Tool)
	}
	if result.All {
		result.Matches = v.rest(f, candidates, result.Matches)
	}
	result.Related = related(f, candidates, result.Matches)
	return result
}

func (v *View) fits(m Match) bool { return m.Confidence >= v.weights.Confidence.Threshold }

// candidates are the tools that may be found: what is available, one of each name. The user's own come before shared
// ones, then what the model is given, then what it would be given.
func (v *View) candidates(f *Facts) *catalog.Set {
	a, tools := f.Answer, v.world.Catalog
	set := a.Availability.Available.Clone()
	best := map[string]uint{}
	for n := range set.Intersection(tools.Namesakes()).EachSet() {
		name := tools.Tool(n).Name
		other, taken := best[name]
		switch {
		case !taken:
			best[name] = n
		case v.before(a, n, other):
			best[name] = n
			set.Clear(other)
		default:
			set.Clear(n)
		}
	}
	return set
}

func (v *View) before(a *effective.Answer, n, other uint) bool {
	tools := v.world.Catalog
	if own := tools.Tool(n).Owner != ""; own != (tools.Tool(other).Owner != "") {
		return own
	}
	if given := a.Effective.Test(n); given != a.Effective.Test(other) {
		return given
	}
	return effective.Beats(tools, n, other)
}

// rank finds the best candidates, private and shared ones together.
func (v *View) rank(f *Facts, candidates *catalog.Set, text *discovery.Text, wanted int) []Match {
	// What comes after the first few may come before them for its lower risk or cost.
	limit := wanted + wanted/2 + 5
	matches := v.search(f, v.shelf, v.sharedCandidates(candidates), text, limit)
	if v.own != nil {
		matches = append(matches, v.search(f, v.own, v.ownCandidates(candidates), text, limit)...)
	}
	slices.SortFunc(matches, func(a, b Match) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), cmp.Compare(a.Tool, b.Tool))
	})
	return matches[:min(len(matches), wanted)]
}

// explain fills in why they match.
func (v *View) explain(text *discovery.Text, matches []Match) {
	for i := range matches {
		ranker := v.shelf
		if matches[i].Own {
			ranker = v.own
		}
		ranker.Explain(text, &matches[i].Match)
	}
}

func (v *View) sharedCandidates(candidates *catalog.Set) *discovery.Candidates {
	slots := bitset.New(uint(len(v.numbers)))
	for n := range candidates.EachSet() {
		if slot := v.slots[n]; slot >= 0 {
			slots.Set(uint(slot))
		}
	}
	return v.common.ranker.Index().CandidatesOf(slots)
}

func (v *View) ownCandidates(candidates *catalog.Set) *discovery.Candidates {
	var own []id.Tool
	for n := range candidates.Intersection(v.world.Catalog.Private()).EachSet() {
		own = append(own, v.world.Catalog.Tool(n).ID)
	}
	return v.own.Index().Candidates(own)
}

// search finds the best of one index. Scores of one index are shares of its best tool's, which is not comparable with
// those of another; confidence is. So each is multiplied with the highest confidence in the index.
func (v *View) search(f *Facts, ranker *discovery.Ranker, candidates *discovery.Candidates, text *discovery.Text, limit int) []Match {
	found := ranker.Search(discovery.Query{Read: text, Candidates: candidates, Limit: limit})
	matches := make([]Match, len(found.Matches))
	most := 0.0
	for _, m := range found.Matches {
		most = max(most, m.Confidence)
	}
	for i, m := range found.Matches {
		n, _ := v.world.Catalog.Number(m.Tool)
		one := Match{Match: m, Number: n, Own: v.world.Catalog.Tool(n).Owner != "", Enabled: f.Answer.Enable.Enabled.Test(n), Unhealthy: f.PutAside(n)}
		one.Ranking = m.Score / found.Matches[0].Score * most
		one.Adjustment = v.adjustment(f, n, one.Unhealthy, found.Steps)
		if threshold := v.weights.Confidence.Threshold; one.Confidence < threshold {
			// Rankings are shares of the best tool's. Where that is hardly like the request, a tool that few past requests
			// needed ranks lower, though it is sure.
			one.Adjustment *= one.Confidence / threshold
		}
		one.Score = one.Ranking * one.Adjustment
		matches[i] = one
	}
	return matches
}

// adjustment is what risk, cost, health and semantic level leave of a score.
func (v *View) adjustment(f *Facts, n uint, unhealthy bool, steps int) float64 {
	w, t := &v.weights.Tool, v.world.Catalog.Tool(n)
	left := 1.0
	switch t.Risk {
	case catalog.RiskMedium:
		left *= 1 - w.RiskMedium
	case catalog.RiskHigh:
		left *= 1 - w.RiskHigh
	}
	switch t.Capability.CostClass {
	case catalog.CostMedium:
		left *= 1 - w.CostMedium
	case catalog.CostHigh:
		left *= 1 - w.CostHigh
	}
	if f.Score != nil {
		left *= 1 - w.Failing*(1-f.Score(health.Subject{Tool: t.ID}))
	}
	if unhealthy {
		left *= 1 - w.Unhealthy
	}
	if level := t.Capability.SemanticLevel; steps > 1 && (level == catalog.LevelComposite || level == catalog.LevelTask) {
		left *= 1 + w.Several
	}
	return left
}

// rest adds the candidates that were not found, by id.
func (v *View) rest(f *Facts, candidates *catalog.Set, matches []Match) []Match {
	left := candidates.Clone()
	for _, m := range matches {
		left.Clear(m.Number)
	}
	found := len(matches)
	for n := range left.EachSet() {
		t := v.world.Catalog.Tool(n)
		matches = append(matches, Match{Match: discovery.Match{Tool: t.ID}, Number: n, Own: t.Owner != "", Enabled: f.Answer.Enable.Enabled.Test(n),
			Unhealthy: f.PutAside(n), Adjustment: 1})
	}
	slices.SortFunc(matches[found:], func(a, b Match) int { return cmp.Compare(a.Tool, b.Tool) })
	return matches
}

// related are the candidates that matches name as needed together with them, in the order of the matches.
func related(f *Facts, candidates *catalog.Set, matches []Match) []Related {
	var list []Related
	tools := f.World.Catalog
	left := candidates.Clone()
	for _, m := range matches {
		left.Clear(m.Number)
	}
	for _, m := range matches {
		for _, other := range tools.Tool(m.Number).Related {
			n, ok := tools.Number(other)
			if !ok || !left.Test(n) || len(list) == maxRelated {
				continue
			}
			left.Clear(n)
			list = append(list, Related{n, m.Tool, f.Answer.Enable.Enabled.Test(n)})
		}
	}
	return list
}

// fastPath is the best match that may be called at once.
func fastPath(f *Facts, s *Settings, matches []Match, text *discovery.Text) *FastPath {
	for _, m := range matches {
		t := f.World.Catalog.Tool(m.Number)
		if len(t.Capability.DeterministicFor) == 0 || m.Confidence < s.FastPathThreshold || m.Unhealthy ||
			!f.Answer.Effective.Test(m.Number) || t.Risk != catalog.RiskLow || !f.Index.Harmless(m.Number) {
			continue
		}
		for _, task := range t.Capability.DeterministicFor {
			if text.Features().Has(discovery.FeaturesOf(task)) {
				return &FastPath{m.Number, task}
			}
		}
	}
	return nil
}
