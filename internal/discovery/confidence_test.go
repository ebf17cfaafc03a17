package discovery

import (
	"fmt"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// A short request for what one tool does fits, among few tools and among many; one that no tool has words for does not.
func TestConfidenceDoesNotDependOnHowManyToolsThereAre(t *testing.T) {
	for _, size := range []int{5, 20, 100, 1000, 4000} {
		invented, _, _ := world(size, 0)
		tools := append([]Tool{{ID: "weather", Name: "get_weather", Descriptions: []string{"Current weather and forecast of a town"}},
			{ID: "mail", Name: "send_mail", Descriptions: []string{"Send a message to somebody"}}}, invented...)
		r := ranker(tools)
		for text, tool := range map[string]id.Tool{"weather": "weather", "what's the weather like in Lisbon": "weather", "mail": "mail", "send a mail to Ann": "mail"} {
			if result := r.Search(Query{Text: text, Limit: 1}); !result.Fits || result.Matches[0].Tool != tool {
				t.Errorf("%d tools, %q: %+v", size, text, result)
			}
		}
		for _, text := range []string{"I miss my grandmother", "quantum chromodynamics", "你好吗"} {
			if result := r.Search(Query{Text: text, Limit: 1}); result.Fits {
				t.Errorf("%d tools, %q fits %+v", size, text, result.Matches)
			}
		}
	}
}

// The same match among more tools is not surer.
func TestConfidenceFallsWithSize(t *testing.T) {
	w, f := DefaultWeights().Confidence, MatchFeatures{Coverage: 0.3, Strength: 0.4, NameCoverage: 0.5}
	last := 1.0
	for _, tools := range []int{0, 1, 10, 1000, 100_000} {
		now := w.of(&f, tools)
		if now > last || fmt.Sprint(now) == "NaN" {
			t.Errorf("%v among %d tools, %v among fewer", now, tools, last)
		}
		last = now
	}
}

// Talk has some words of the requests that a tool is used for. That it is much less like them than they are like one another
// makes it less sure that the tool is meant, and a request that is as like them is sure all the same.
func TestWhatIsUnlikeIsLessSure(t *testing.T) {
	var past []Request
	for i := range 40 {
		past = append(past, remembered(fmt.Sprintf("how warm is it outside this evening in town%c", 'a'+rune(i%26)), "weather.current"))
	}
	confidence := func(text string, unlike float64) (float64, float64) {
		w := DefaultWeights()
		w.Confidence.Unlike = unlike
		h := NewHistory(past, &w.Learned, DefaultHistoryLimits())
		matches := NewRanker(NewIndex(office(t)), w, Level{h, 1}).find(text)
		m := matches[place(matches, "weather.current")]
		return m.Confidence, m.Features.Unlike
	}
	weight := DefaultWeights().Confidence.Unlike
	const talk, alike = "how is your evening", "how warm is it outside this evening in townc"
	without, _ := confidence(talk, 0)
	if with, unlike := confidence(talk, weight); with > without-0.05 || unlike < 0.1 {
		t.Errorf("talk: %v, without %v, unlike by %v", with, without, unlike)
	}
	without, _ = confidence(alike, 0)
	if with, unlike := confidence(alike, weight); with < without-0.01 || unlike > 0.1 {
		t.Errorf("a request as usual: %v, without %v, unlike by %v", with, without, unlike)
	}
}
