package discovery

import (
	"slices"
	"testing"

	"github.com/kljensen/snowball/english"
)

// What no stemmer knows is found; and as they were written past requests are compared.
func TestSpellings(t *testing.T) {
	r := ranker([]Tool{{ID: "a", Name: "getPolicyInfo"}, {ID: "b", Name: "cancelPolicy"}, {ID: "c", Name: "unitConversion"}, {ID: "d", Name: "colorPicker"}, {ID: "e", Name: "cmd_exec"}})
	for text, want := range map[string]string{"information on my policy": "a", "convert a unit": "c", "pick a colour": "d", "execute a command": "e"} {
		if matches := r.find(text); place(matches, "a") < 0 && want == "a" || len(matches) == 0 || string(matches[0].Tool) != want {
			t.Errorf("%q finds %v, want %s first", text, found(matches), want)
		}
	}
	if slices.Equal(FeaturesOf("info"), FeaturesOf("information")) {
		t.Error("features do not tell info from information")
	}
}

// No word stands for another that stands for a third, or that has the same stem anyhow.
func TestSpellingsStandForWords(t *testing.T) {
	for word, other := range spellings {
		if spellings[other] != "" {
			t.Errorf("%s stands for %s, which stands for %s", word, other, spellings[other])
		}
		if english.Stem(word, true) == english.Stem(other, true) {
			t.Errorf("%s and %s have one stem: the line is not needed", word, other)
		}
		if stopWords[word] || stopWords[other] {
			t.Errorf("%s for %s: one says nothing of the subject", word, other)
		}
	}
}
