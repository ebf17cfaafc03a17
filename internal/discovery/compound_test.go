package discovery

import (
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// One word finds what was written as two, and two what was written as one.
func TestCompounds(t *testing.T) {
	tools := []Tool{{ID: "edit", Name: "performCopyEditing"}, {ID: "manual", Name: "printManual"}, {ID: "hub", Name: "star", Server: "github"}, {ID: "moon", Name: "moonPhase"},
		{ID: "todo", Name: "todo"}, {ID: "done", Name: "finished"}, {ID: "tube", Name: "YouTube.play"}}
	without := DefaultWeights()
	without.Compounds, without.Grams = 0, 0
	with := without
	with.Compounds = DefaultWeights().Compounds
	for text, want := range map[string]id.Tool{"copyediting": "edit", "GitHub": "hub", "what is to do": "todo", "on youtube": "tube"} {
		if matches := NewRanker(NewIndex(tools), with).find(text); len(matches) == 0 || matches[0].Tool != want {
			t.Errorf("%q finds %v, want %s", text, found(matches), want)
		}
		if matches := NewRanker(NewIndex(tools), without).find(text); len(matches) > 0 && matches[0].Tool == want {
			t.Errorf("%q finds %v without compounds: this test shows nothing", text, found(matches))
		}
	}
}

// Two words that meet two words are worth no more for standing side by side.
func TestCompoundsAreNotPhrases(t *testing.T) {
	r := ranker([]Tool{{ID: "a", Name: "train ticket"}, {ID: "b", Name: "ticket train"}, {ID: "c", Name: "weather"}})
	matches := r.find("train ticket")
	if len(matches) < 2 || matches[0].Score != matches[1].Score {
		t.Errorf("%+v", matches)
	}
}
