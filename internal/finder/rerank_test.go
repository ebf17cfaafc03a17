package finder_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/id"
)

// lampDesk has six lamps that match alike, and one of Ann's own.
func lampDesk(t *testing.T) *desk {
	d := openDesk(t)
	for i := range 6 {
		d.add(fmt.Sprintf("lamp%d", i), fmt.Sprintf("lamp_%c", 'a'+rune(i)), "Switches a lamp on")
	}
	d.add("ann.lamp", "my_lamp", "Switches the bedside lamp on", of("ann"))
	return d
}

// judge is a model that likes the tool of a name best.
func judge(name string, sent *[]string) func(texts []string) []float64 {
	return func(texts []string) []float64 {
		*sent = texts
		scores := make([]float64, len(texts))
		for i, text := range texts {
			if strings.HasPrefix(text, name+"\n") {
				scores[i] = 0.9
			}
		}
		return scores
	}
}

func again(ask func([]string) []float64) func(*finder.Request) {
	return func(r *finder.Request) {
		r.Reranking = &finder.Reranking{Ask: ask, Candidates: 10, Threshold: 0.3}
	}
}

// What a model likes best comes first, also from beyond those that would have been told.
func TestRerankingOrders(t *testing.T) {
	d := lampDesk(t)
	var sent []string
	before := tools(d.find("bob", "switch the lamp on"))
	if slices.Contains(before, "lamp5") {
		t.Fatalf("%v: this test shows nothing", before)
	}
	r := d.find("bob", "switch the lamp on", again(judge("lamp_f", &sent)))
	if got := tools(r); len(got) != 3 || got[0] != "lamp5" || got[1] != before[0] || got[2] != before[1] {
		t.Errorf("%v, before %v", got, before)
	}
	if m := r.Matches[0]; m.Relevance == nil || *m.Relevance != 0.9 || m.Confidence < 0.9 || len(m.Reasons) == 0 {
		t.Errorf("%+v", m)
	}
	for i := 1; i < len(r.Matches); i++ {
		if r.Matches[i-1].Score < r.Matches[i].Score {
			t.Errorf("scores do not order: %v", r.Matches)
		}
	}
}

// A user's own tools are not sent, and stay where they stand.
func TestRerankingDoesNotSendOwnTools(t *testing.T) {
	d := lampDesk(t)
	var sent []string
	before := tools(d.find("ann", "switch the bedside lamp on"))
	at := slices.Index(before, id.Tool("ann.lamp"))
	if at < 0 {
		t.Fatalf("%v: this test shows nothing", before)
	}
	after := tools(d.find("ann", "switch the bedside lamp on", again(judge("lamp_f", &sent))))
	if slices.Index(after, id.Tool("ann.lamp")) != at || !slices.Contains(after, "lamp5") {
		t.Errorf("%v, before %v", after, before)
	}
	for _, text := range sent {
		if strings.Contains(text, "my_lamp") {
			t.Errorf("sent %q", text)
		}
	}
}

// A model that does not answer, or is not sure, changes nothing.
func TestRerankingThatTellsNothing(t *testing.T) {
	d := lampDesk(t)
	want := d.find("bob", "switch the lamp on")
	for name, ask := range map[string]func([]string) []float64{
		"no answer": func([]string) []float64 { return nil }, "too few": func([]string) []float64 { return []float64{1} },
		"not sure": func(texts []string) []float64 { s := make([]float64, len(texts)); s[len(s)-1] = 0.29; return s },
	} {
		got := d.find("bob", "switch the lamp on", again(ask))
		if !slices.Equal(tools(got), tools(want)) || got.Matches[0].Relevance != nil || got.Matches[0].Confidence != want.Matches[0].Confidence {
			t.Errorf("%s: %v, want %v", name, tools(got), tools(want))
		}
	}
}

// Where nothing would fit by words, what a model is sure of does.
func TestRerankingMakesFit(t *testing.T) {
	d := lampDesk(t)
	d.add("chat", "companion", "Talks to a person who feels low")
	const text = "companionship" // parts of a word
	var sent []string
	if before := d.find("bob", text); before.Fits {
		t.Fatalf("words suffice, and this test shows nothing: %+v", before.Matches[0])
	}
	if r := d.find("bob", text, again(judge("companion", &sent))); !r.Fits || r.Matches[0].Tool != "chat" {
		t.Errorf("%v, sent %v", tools(r), sent)
	}
}

// All candidates are told as they are: there is nothing to choose.
func TestRerankingIsNotAskedWhereAllAreTold(t *testing.T) {
	d := openDesk(t)
	d.tools, d.world = d.tools[:5], nil
	d.find("bob", "picture", again(func([]string) []float64 { t.Error("asked"); return nil }))
}
