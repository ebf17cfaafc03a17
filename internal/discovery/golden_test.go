package discovery

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

var updateGolden = flag.Bool("update-golden", false, "write testdata/golden.json anew, with the default weights: only if the ranking is meant to change")

// golden is what some searches found, with the weights of then: how a score is computed may change, what it comes to may
// not.
type golden struct {
	Weights  map[string]float64 `json:"weights"`
	Searches []goldenSearch     `json:"searches"`
}

type goldenSearch struct {
	Text  string       `json:"text"`
	Found []goldenTool `json:"found"`
}

type goldenTool struct {
	Tool       id.Tool `json:"tool"`
	Score      float64 `json:"score"`
	Confidence float64 `json:"confidence"`
}

// goldenSearches asks an invented world and the small office, each cold and with use.
func goldenSearches(t *testing.T, w Weights) []goldenSearch {
	var all []goldenSearch
	ask := func(tools []Tool, past []Request, texts []string) {
		index := NewIndex(tools)
		history := NewHistory(past, &w.Learned, DefaultHistoryLimits())
		own := NewHistory(past[:len(past)/10], &w.Learned, DefaultHistoryLimits())
		for _, r := range []*Ranker{NewRanker(index, w), NewRanker(index, w, Level{history, 1}), NewRanker(index, w, Level{history, 1}).Over(Level{own, 0.5})} {
			for _, text := range texts {
				one := goldenSearch{Text: text}
				for _, m := range r.Search(Query{Text: text, Limit: 5}).Matches {
					one.Found = append(one.Found, goldenTool{m.Tool, m.Score, m.Confidence})
				}
				all = append(all, one)
			}
		}
	}
	tools, past, queries := world(300, 900)
	ask(tools, past, queries[:40])
	var texts []string
	past = nil
	for i, q := range lines[asked](t, "queries.jsonl") {
		texts = append(texts, q.Text)
		if i%2 == 0 {
			past = append(past, remembered(q.Text+" now", q.Tool))
		}
	}
	ask(office(t), past, texts)
	return all
}

func TestTheRankingIsTheSame(t *testing.T) {
	path := filepath.Join("testdata", "golden.json")
	w := DefaultWeights()
	if *updateGolden {
		g := golden{Weights: map[string]float64{}, Searches: goldenSearches(t, w)}
		for _, one := range w.All() {
			g.Weights[one.Name] = one.Value()
		}
		content, err := json.MarshalIndent(g, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(content, &g); err != nil {
		t.Fatal(err)
	}
	for _, one := range w.All() {
		value, ok := g.Weights[one.Name]
		if !ok {
			t.Errorf("%s has no weight %s", path, one.Name)
		}
		one.Set(value)
	}
	const near = 1e-5 // sums of other orders differ by less
	got := goldenSearches(t, w)
	if len(got) != len(g.Searches) {
		t.Fatalf("%d searches, want %d", len(got), len(g.Searches))
	}
	for i, want := range g.Searches {
		if len(got[i].Found) != len(want.Found) {
			t.Errorf("search %d, %q: found %v, want %v", i, want.Text, got[i].Found, want.Found)
			continue
		}
		for j, one := range got[i].Found {
			other := want.Found[j]
			if one.Tool != other.Tool || math.Abs(one.Score-other.Score) > near || math.Abs(one.Confidence-other.Confidence) > near {
				t.Errorf("search %d, %q, place %d: %+v, want %+v", i, want.Text, j, one, other)
			}
		}
	}
}
