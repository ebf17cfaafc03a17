package discovery

import (
	"fmt"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// among is that of a word, in a history of requests that have the word or another.
func amongOf(t *testing.T, word string, requests ...Request) float64 {
	t.Helper()
	w := DefaultWeights()
	h := NewHistory(requests, &w.Learned, DefaultHistoryLimits())
	number, ok := h.words[FeaturesOf(word)[0]]
	if !ok {
		t.Fatalf("no request has %q", word)
	}
	return h.among()(h.byWord[number])
}

// A word leaves the choice among fewer tools, the more the requests with it differ from all.
func TestAmong(t *testing.T) {
	var spread, single, mislabelled, usual []Request
	add := func(list *[]Request, text string, tool int) {
		*list = append(*list, remembered(text, id.Tool(fmt.Sprint("tool-", tool))))
	}
	for i := range 40 {
		add(&spread, "rain", i%10)
		add(&single, "rain", 0)
		add(&single, "else", 1+i%9)
		tool := 0
		if i%5 == 0 { // a fifth has another label
			tool = 1 + i%9
		}
		add(&mislabelled, "rain", tool)
		add(&mislabelled, "else", 1+i%9)
		// Most requests need the first tool, with the word or without it.
		add(&usual, []string{"rain", "else"}[i/20], max(0, i%20-10))
	}
	if got := amongOf(t, "rain", spread...); got < 9.99 || got > 10.01 {
		t.Errorf("a word of all tools alike leaves %v of 10", got)
	}
	one, wrong := amongOf(t, "rain", single...), amongOf(t, "rain", mislabelled...)
	if one > 6 || wrong < one || wrong > 8 {
		t.Errorf("a word of one tool leaves %v of 10, and where a fifth of its labels is wrong %v", one, wrong)
	}
	if got := amongOf(t, "rain", usual...); got < 9.99 {
		t.Errorf("a word that goes with what is asked for anyhow leaves %v of 10", got)
	}
}

// A few past requests that are unlike this one speak less against a tool than as many that are like it speak for it.
func TestFewRequestsSpeakLittleAgainstATool(t *testing.T) {
	tools := []Tool{{ID: "a", Name: "draw_circle"}, {ID: "b", Name: "draw_square"}, {ID: "c", Name: "send_letter"}, {ID: "d", Name: "play_song"}}
	history := []Request{remembered("a ring around the number of this house", "a"), remembered("mail this to Ann today", "c"), remembered("mail this to Bob today", "c")}
	score := func(against float64) float64 {
		w := DefaultWeights()
		w.Learned.BackOffAgainst = against
		h := NewHistory(history, &w.Learned, DefaultHistoryLimits())
		for _, m := range NewRanker(NewIndex(tools), w, Level{History: h, Share: 1}).find("mail a circle to Ann today") {
			if m.Tool == "a" {
				return m.Score
			}
		}
		t.Fatal("not found")
		return 0
	}
	w := DefaultWeights()
	if alike, less := score(w.Learned.BackOff), score(w.Learned.BackOffAgainst); less <= alike {
		t.Errorf("scores %v, and %v if what speaks against it counts as much as what speaks for it", less, alike)
	}
	if below, same := score(0.01), score(w.Learned.BackOff); below != same {
		t.Errorf("scores %v and %v: never less than what speaks for it", below, same)
	}
}
