package discovery

import (
	"errors"
	"fmt"
)

// Weights are all that the ranking can be told. The defaults were chosen together on seven public sets of
// tools and requests, one set of weights for all of them; docs/benchmarks.md has what they reach, and
// docs/discovery.md what each is worth.
type Weights struct {
	// Fields weighs the words of each field of a tool.
	Fields FieldWeights
	// LengthNormalization is how much a word counts less in a longer field: from 0, not at all, to 1, in
	// proportion (BM25's b).
	LengthNormalization FieldWeights
	// Saturation is how soon a further occurrence of a word adds little (BM25's k1).
	Saturation float64
	// Repetition is the power of how often a word stands in the request: 0 counts it once, 1 each time. Long
	// requests repeat what they talk about, not what they ask for.
	Repetition float64
	// Number weighs numbers in a request. They tell that a parameter is one, which many are.
	Number float64
	// Synonyms weighs other words for those of the request, beside these.
	Synonyms float64
	// Compounds weighs neighbouring words of the request as one word, and single ones as two.
	Compounds float64
	// NameCoverage raises a tool by how much of its name the request has.
	NameCoverage float64
	// Sentences weighs the best single sentence of a request beside the whole: several sentences are often
	// several steps, each with a tool of its own.
	Sentences float64
	// Grams weighs likeness of character n-grams beside words.
	Grams float64
	// GramLength is the power of the length by which a tool's n-grams are divided: 1 would be the cosine,
	// which prefers short descriptions too much.
	GramLength float64
	// Meaning weighs likeness of meanings, where a model tells them, beside words.
	Meaning float64
	// Learned is what past requests do to the ranking.
	Learned LearnedWeights
	// NewTool is what stands in for past requests of tools that were not there for them.
	NewTool NewToolWeights
	// Confidence makes of features how sure a match is.
	Confidence ConfidenceWeights
	// Tool is what a tool's risk, cost, health and semantic level do to its score.
	Tool ToolWeights
}

// FieldWeights has a number for each field of a tool.
type FieldWeights struct {
	Name, Alias, Keyword, Description, Parameter, Group, ServerDescription, Example float64
}

func (w FieldWeights) of(f field) float64 {
	return [fieldCount]float64{w.Name, w.Alias, w.Keyword, w.Description, w.Parameter, w.Group, w.ServerDescription, w.Example}[f]
}

// LearnedWeights are those of past requests.
type LearnedWeights struct {
	// Log, Centroid and Nearest weigh three ways to compare a request with the past ones: with all words of a
	// tool's requests (BM25), with their mean, and with the single ones that are nearest.
	Log, Centroid, Nearest float64
	// LogSaturation and LogLength are k1 and b of that BM25.
	LogSaturation, LogLength float64
	// Neighbours is how many of the nearest past requests vote.
	Neighbours int
	// Sharpness is the power of a neighbour's likeness: the higher, the less the farther ones count.
	Sharpness float64
	// ToolRarity, from 0 to 1, is how far the weight of a word in a request depends on how many tools it was
	// used for, instead of in how many requests it stood.
	ToolRarity float64
	// Agreement is the power of the share of the neighbours' votes that the first tool gets: what neighbours disagree
	// about counts less.
	Agreement float64
	// TrustPrior is how many past requests of a history have to be asked until how often it is right about them counts
	// as much as what is supposed: that it is the more often right, the nearer the nearest past request is.
	TrustPrior float64
	// GateFrom and GateTo are trust, from 0 to 1: how often history is right about requests like this one, as a share of
	// how often it is right at best. Below the first it is left alone; from the second on it counts in full.
	GateFrom, GateTo float64
	// BackOff is how many past requests a tool needs for its history to count half: n/(n+BackOff). Without it
	// tools with history bury those that have none.
	BackOff float64
	// BackOffAgainst is the same where history speaks against a tool: that few past requests of it are unlike this one says
	// less than that one is like it. It counts if it is more than BackOff.
	BackOffAgainst float64
	// Unproven is the share of its cold score that a tool without history is credited where history counts, in
	// place of the history that it lacks; in part, as its history backs off.
	Unproven float64
	// Share is how much of a tool's own words history may replace at most.
	Share float64
	// Scale is what the best history is worth beside the best words.
	Scale float64
	// Expansion weighs words that the tool and its past requests have together, beside words and history by themselves.
	Expansion float64
	// ExpansionWord is what a word of a past request is worth beside one of the tool's description.
	ExpansionWord float64
	// ExpansionLength is how much it counts less, the longer all past requests of the tool are together: from 0, not at
	// all, to 1, in proportion (BM25's b).
	ExpansionLength float64
}

// NewToolWeights are those of a logistic function that tells what past requests would say of a tool that was not there for
// them, from 0 to 1: 1/(1+exp(-x)), x the sum below. It takes the place of Unproven, the more, the less is known of the tool.
type NewToolWeights struct {
	Constant float64
	// Coverage is for how much more of the request's words, by weight, it has than the tool that is first without it; a share.
	Coverage float64
	// Name is for how much more of its name the request has, likewise.
	Name float64
	// Unlike is for how much less the request is like those of the tool that is first without it than these are like one
	// another (cosine).
	Unlike float64
	// KnownAfter is how many past requests have to be made since a tool is there until it counts half as unknown.
	KnownAfter float64
}

// ConfidenceWeights are those of a logistic function: 1/(1+exp(-x)), x the sum below.
type ConfidenceWeights struct {
	Constant float64
	// Coverage is for the share of the request's words, by weight, that the tool has.
	Coverage float64
	// Strength is for how much the tool's words weigh at all: a single rare word of five beats five frequent
	// ones.
	Strength float64
	// Nearest is for the likeness of the tool's nearest past request.
	Nearest float64
	// History is for what past requests say of the tool, times how much they count.
	History float64
	// Unlike is for how much less the request is like the tool's past ones than these are like one another.
	Unlike float64
	// Name is for the share of the tool's name that the request has.
	Name float64
	// Meaning is for each standard deviation beyond 3 by which the likeness of meanings is above that of all tools.
	Meaning float64
	// Size is for the logarithm of how many tools there are.
	Size float64
	// Threshold is the confidence below which a tool is said not to fit.
	Threshold float64
}

// ToolWeights are shares of a score that are taken off, or added. They decide between tools that fit about as well; they
// are judged, since no public set has risks, costs or health.
type ToolWeights struct {
	// RiskMedium and RiskHigh are taken off for risk: of two tools that would do, the less harmful one.
	RiskMedium, RiskHigh float64
	// CostMedium and CostHigh are taken off for cost.
	CostMedium, CostHigh float64
	// Failing is taken off a tool of which no recent call went well, in proportion to those that did not.
	Failing float64
	// Unhealthy is taken off a tool whose breaker, or whose MCP server's, is open: a call would be refused now.
	Unhealthy float64
	// Several is added to a tool that does a task or several steps at once, if the request has several sentences.
	Several float64
}

// DefaultWeights returns the weights that were chosen.
func DefaultWeights() Weights {
	return Weights{
		Fields:              FieldWeights{Name: 1.5, Alias: 2, Keyword: 1.6, Description: 1, Parameter: 0.8, Group: 1.6, ServerDescription: 0.5, Example: 1},
		LengthNormalization: FieldWeights{Name: 0.4, Alias: 0.4, Keyword: 0.4, Description: 0.6, Parameter: 0.75, Group: 0.3, ServerDescription: 0.75, Example: 0.5},
		Saturation:          1.2,
		Repetition:          0.2,
		Number:              0.2,
		Synonyms:            0.3,
		Compounds:           0.5,
		NameCoverage:        0.3,
		Sentences:           0.8,
		Grams:               0.24,
		GramLength:          0.9,
		Meaning:             0.6,
		Learned: LearnedWeights{
			Log: 0.7, Centroid: 0.5, Nearest: 0.3,
			LogSaturation: 1.5, LogLength: 0.8,
			Neighbours: 10, Sharpness: 5, ToolRarity: 0.6,
			Agreement: 0.2, TrustPrior: 5, GateFrom: 0, GateTo: 0.8, BackOff: 1.5, BackOffAgainst: 6, Unproven: 0.25, Share: 0.9, Scale: 2.5,
			Expansion: 1.4, ExpansionWord: 2, ExpansionLength: 1,
		},
		NewTool:    NewToolWeights{Constant: 0, Coverage: 7, Name: 0.5, Unlike: 1.5, KnownAfter: 1000},
		Confidence: ConfidenceWeights{Constant: -2.3, Coverage: 1.5, Strength: 11.2, Nearest: 3, History: 5.3, Unlike: -3, Name: 1.8, Meaning: 3.5, Size: -0.51, Threshold: 0.3},
		Tool:       ToolWeights{RiskMedium: 0.01, RiskHigh: 0.03, CostMedium: 0.01, CostHigh: 0.03, Failing: 0.1, Unhealthy: 0.5, Several: 0.02},
	}
}

// Weight is a weight by its name, as settings have it.
type Weight struct {
	Name      string
	Low, High float64 // what it may be
	float     *float64
	whole     *int
}

// Value returns what it is.
func (w *Weight) Value() float64 {
	if w.whole != nil {
		return float64(*w.whole)
	}
	return *w.float
}

// Set sets it, whether it may be that or not: [Weights.Validate] tells.
func (w *Weight) Set(value float64) {
	if w.whole != nil {
		*w.whole = int(value)
	} else {
		*w.float = value
	}
}

// All returns all weights by their names.
func (w *Weights) All() []Weight {
	l, n, c, t := &w.Learned, &w.NewTool, &w.Confidence, &w.Tool
	all := append(w.Fields.all("fields", 100), w.LengthNormalization.all("length_normalization", 1)...)
	return append(all, []Weight{
		{"saturation", 0.01, 100, &w.Saturation, nil},
		{"repetition", 0, 1, &w.Repetition, nil},
		{"number", 0, 10, &w.Number, nil},
		{"synonyms", 0, 1, &w.Synonyms, nil},
		{"compounds", 0, 1, &w.Compounds, nil},
		{"name_coverage", 0, 100, &w.NameCoverage, nil},
		{"sentences", 0, 100, &w.Sentences, nil},
		{"grams", 0, 100, &w.Grams, nil},
		{"gram_length", 0, 1, &w.GramLength, nil},
		{"meaning", 0, 100, &w.Meaning, nil},
		{"learned.log", 0, 100, &l.Log, nil},
		{"learned.centroid", 0, 100, &l.Centroid, nil},
		{"learned.nearest", 0, 100, &l.Nearest, nil},
		{"learned.log_saturation", 0.01, 100, &l.LogSaturation, nil},
		{"learned.log_length", 0, 1, &l.LogLength, nil},
		{"learned.neighbours", 1, 1000, nil, &l.Neighbours},
		{"learned.sharpness", 0, 20, &l.Sharpness, nil},
		{"learned.tool_rarity", 0, 1, &l.ToolRarity, nil},
		{"learned.agreement", 0, 10, &l.Agreement, nil},
		{"learned.trust_prior", 0.01, 10_000, &l.TrustPrior, nil},
		{"learned.gate_from", 0, 1, &l.GateFrom, nil},
		{"learned.gate_to", 0, 1, &l.GateTo, nil},
		{"learned.back_off", 0.01, 10_000, &l.BackOff, nil},
		{"learned.back_off_against", 0.01, 10_000, &l.BackOffAgainst, nil},
		{"learned.unproven", 0, 2, &l.Unproven, nil},
		{"learned.share", 0, 1, &l.Share, nil},
		{"learned.scale", 0, 100, &l.Scale, nil},
		{"learned.expansion", 0, 100, &l.Expansion, nil},
		{"learned.expansion_word", 0, 100, &l.ExpansionWord, nil},
		{"learned.expansion_length", 0, 1, &l.ExpansionLength, nil},
		{"new_tool.constant", -100, 100, &n.Constant, nil},
		{"new_tool.coverage", -100, 100, &n.Coverage, nil},
		{"new_tool.name", -100, 100, &n.Name, nil},
		{"new_tool.unlike", -100, 100, &n.Unlike, nil},
		{"new_tool.known_after", 0.01, 1_000_000, &n.KnownAfter, nil},
		{"confidence.constant", -100, 100, &c.Constant, nil},
		{"confidence.coverage", -100, 100, &c.Coverage, nil},
		{"confidence.strength", -100, 100, &c.Strength, nil},
		{"confidence.nearest", -100, 100, &c.Nearest, nil},
		{"confidence.history", -100, 100, &c.History, nil},
		{"confidence.unlike", -100, 100, &c.Unlike, nil},
		{"confidence.name", -100, 100, &c.Name, nil},
		{"confidence.meaning", -100, 100, &c.Meaning, nil},
		{"confidence.size", -100, 100, &c.Size, nil},
		{"confidence.threshold", 0, 1, &c.Threshold, nil},
		{"tool.risk_medium", 0, 1, &t.RiskMedium, nil},
		{"tool.risk_high", 0, 1, &t.RiskHigh, nil},
		{"tool.cost_medium", 0, 1, &t.CostMedium, nil},
		{"tool.cost_high", 0, 1, &t.CostHigh, nil},
		{"tool.failing", 0, 1, &t.Failing, nil},
		{"tool.unhealthy", 0, 1, &t.Unhealthy, nil},
		{"tool.several", 0, 1, &t.Several, nil},
	}...)
}

func (w *FieldWeights) all(prefix string, high float64) []Weight {
	var all []Weight
	for f, value := range [fieldCount]*float64{&w.Name, &w.Alias, &w.Keyword, &w.Description, &w.Parameter, &w.Group, &w.ServerDescription, &w.Example} {
		all = append(all, Weight{prefix + "." + field(f).String(), 0, high, value, nil})
	}
	return all
}

// Validate names every weight that breaks its rule.
func (w *Weights) Validate() error {
	var faults []error
	for _, one := range w.All() {
		if value := one.Value(); !(value >= one.Low && value <= one.High) { // NaN is not
			faults = append(faults, fmt.Errorf("%s: must be from %v to %v, not %v", one.Name, one.Low, one.High, value))
		}
	}
	if l := &w.Learned; l.GateTo <= l.GateFrom {
		faults = append(faults, fmt.Errorf("learned.gate_to: must be more than learned.gate_from, %v, not %v", l.GateFrom, l.GateTo))
	}
	return errors.Join(faults...)
}
