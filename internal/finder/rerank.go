package finder

import (
	"cmp"
	"slices"
	"strings"
)

// Reranking asks a model which of the best matches answer a request best.
type Reranking struct {
	// Ask returns the relevance of each text, from 0 to 1; nil: the model did not answer in time, or not well.
	Ask func(texts []string) []float64
	// Candidates is how many matches it is asked about.
	Candidates int
	// Threshold is the relevance that the best match must have; else all stays as it was. Matches that have it fit.
	Threshold float64
}

// maxRerankText bounds what is sent of a tool, in bytes.
const maxRerankText = 2048

// rerank orders shared matches by their relevance. They change places among one another only: a user's own tools are not
// sent, and stay where they are. Scores stay with the places, so that they still order the matches. It tells whether the
// model was missed.
func (v *View) rerank(matches []Match, r *Reranking) (missed bool) {
	var places []int
	var texts []string
	for i := range matches {
		if !matches[i].Own && len(places) < r.Candidates {
			places, texts = append(places, i), append(texts, v.rerankText(matches[i].Number))
		}
	}
	if len(places) == 0 {
		return false
	}
	relevance := r.Ask(texts)
	if len(relevance) != len(places) {
		return true
	}
	if slices.Max(relevance) < r.Threshold {
		return false
	}
	shared := make([]Match, len(places))
	scores := make([]float64, len(places))
	for i, place := range places {
		shared[i], scores[i] = matches[place], matches[place].Score
		shared[i].Relevance = &relevance[i]
		if relevance[i] >= r.Threshold {
			shared[i].Confidence = max(shared[i].Confidence, relevance[i])
		}
	}
	slices.SortStableFunc(shared, func(a, b Match) int { return -cmp.Compare(*a.Relevance, *b.Relevance) })
	for i, place := range places {
		shared[i].Score = scores[i]
		matches[place] = shared[i]
	}
	return false
}

// rerankText is what a model is told of a tool.
func (v *View) rerankText(n uint) string {
	t := v.world.Catalog.Tool(n)
	parts := []string{t.Name}
	if t.Title != "" && t.Title != t.Name {
		parts = append(parts, t.Title)
	}
	if t.Description != "" {
		parts = append(parts, t.Description)
	}
	text := strings.Join(parts, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxRerankText)], "")
}
