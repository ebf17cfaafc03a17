package discovery

import (
	"fmt"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Of a request, one tool has some words in its description and others in past requests; a second has more in its
// description, and a third more in past requests. Together the first has most.
func TestWordsAndPastRequestsTellTogether(t *testing.T) {
	const text = "fetch invoice parcel customs ferry island boat"
	tools := []Tool{{ID: "both", Name: "a1", Descriptions: []string{"fetch an invoice of a parcel"}},
		{ID: "words", Name: "b1", Descriptions: []string{"fetch an invoice of a parcel from customs"}},
		{ID: "past", Name: "c1", Descriptions: []string{"something else"}}}
	var past []Request
	for i := range 30 { // so that there are frequent and rare words
		one := fmt.Sprintf("thing%c%c", 'a'+i/6, 'a'+i%6)
		tools = append(tools, Tool{ID: id.Tool(one), Name: one})
		past = append(past, remembered("the "+one, id.Tool(one)))
	}
	for range 4 {
		past = append(past, remembered("a ferry to the island", "both"), remembered("a ferry to the island is a boat", "past"))
	}
	scores := func(expansion float64) (both, words, taught Match) {
		w := DefaultWeights()
		w.Learned.Expansion = expansion
		found := NewRanker(NewIndex(tools), w, Level{NewHistory(past, &w.Learned, DefaultHistoryLimits()), 1}).find(text)
		return found[place(found, "both")], found[place(found, "words")], found[place(found, "past")]
	}
	both, words, taught := scores(DefaultWeights().Learned.Expansion)
	if b, w, p := both.Features.Expansion, words.Features.Expansion, taught.Features.Expansion; !(b == 1 && 0 < p && p < w && w < 1) {
		t.Errorf("together: both %v, words %v, past %v", b, w, p)
	}
	apartBoth, apartWords, apartTaught := scores(0)
	if with, without := both.Score/words.Score, apartBoth.Score/apartWords.Score; with <= without {
		t.Errorf("beside the tool with more words it has %v of the score, without expansion %v", with, without)
	}
	if with, without := both.Score/taught.Score, apartBoth.Score/apartTaught.Score; with <= without {
		t.Errorf("beside the tool with more past requests it has %v of the score, without expansion %v", with, without)
	}
}

// What a word of past requests adds depends on the word in the tools, also where requests write two words alike: "exec" is
// read as "execute", and "execs" is a word of its own with the stem that "exec" would have.
func TestWhatPastRequestsAddIsOfOneWord(t *testing.T) {
	tools := []Tool{{ID: "a", Name: "advertisement"}, {ID: "b", Name: "exec"}, {ID: "c", Name: "execs"}}
	past := []Request{remembered("exec of it", "a"), remembered("ads", "b"), remembered("execute", "c")}
	texts := []string{"exec", "execs", "execute", "ads", "advertisement"}
	alone := map[string][]Match{}
	for _, text := range texts {
		alone[text] = ranker(tools, past...).find(text)
	}
	r := ranker(tools, past...)
	for range 2 {
		for _, text := range texts {
			for i, m := range r.find(text) {
				if want := alone[text][i]; m.Tool != want.Tool || m.Score != want.Score {
					t.Errorf("%q after others: %s %v; alone: %s %v", text, m.Tool, m.Score, want.Tool, want.Score)
				}
			}
		}
	}
}
