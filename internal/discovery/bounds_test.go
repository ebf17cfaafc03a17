package discovery

import (
	"strings"
	"testing"
)

// However long a request is and whatever it is made of, what is looked at of it is bounded, and with it what a search costs.
func TestRequestsAreBounded(t *testing.T) {
	all := strings.Fields(synonymsOfAll())
	for name, text := range map[string]string{
		"words": strings.Repeat("weather ", 100_000), "different words": strings.Join(all, " ") + strings.Repeat(" "+strings.Join(all, " "), 50),
		"one word": strings.Repeat("x", 1<<20), "characters": strings.Repeat("天气预报查询", 50_000), "sentences": strings.Repeat("go on. ", 50_000),
		"numbers": strings.Repeat("12345 ", 50_000), "marks": strings.Repeat("、。，", 50_000), "accents": "e" + strings.Repeat("\u0301", 100_000),
		"ligatures": strings.Repeat("ﷺ", 50_000), "bytes": strings.Repeat("\xff", 1<<20), "camel": strings.Repeat("aA", 1<<19),
	} {
		q := Read(text)
		longest := 3 * (maxTokenRunes + 2) // n-grams of one word
		if len(q.terms) > maxRequestTokens || len(q.features) > maxRequestTokens || len(q.sentences) > maxSentences ||
			len(q.grams) > maxRequestGrams+longest || len(q.also) > 8*maxRequestTokens {
			t.Errorf("%s: %d words, %d features, %d sentences, %d n-grams, %d synonyms", name, len(q.terms), len(q.features), len(q.sentences), len(q.grams), len(q.also))
		}
		for _, term := range q.terms {
			if len([]rune(term.term)) > maxTokenRunes+10 {
				t.Errorf("%s: a word of %d characters", name, len([]rune(term.term)))
			}
		}
	}
}

// synonymsOfAll are all words that have synonyms.
func synonymsOfAll() string {
	var words []string
	for _, group := range synonyms {
		for _, t := range group {
			words = append(words, t.surface)
		}
	}
	return strings.Join(words, " ")
}
