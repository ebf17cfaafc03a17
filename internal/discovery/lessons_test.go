package discovery

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/toolgrant/toolgrant/internal/id"
)

// What was learned on the public sets, each in a world small enough to be looked at.

// Pairs of characters alone miss what is written with another neighbour: 查票 and 火车票 share only 票.
func TestSingleCharactersOfUnspacedWritingCount(t *testing.T) {
	r := ranker([]Tool{{ID: "a", Name: "a1", Descriptions: []string{"查询火车票"}}, {ID: "b", Name: "b1", Descriptions: []string{"预订酒店房间"}}})
	if matches := r.find("帮忙买票"); len(matches) == 0 || matches[0].Tool != "a" {
		t.Errorf("found %v", found(matches))
	}
}

// Single characters alone find both: 会议 and 议会 have the same ones. Pairs tell them apart.
func TestPairsOfUnspacedWritingCount(t *testing.T) {
	r := ranker([]Tool{{ID: "a", Name: "a1", Descriptions: []string{"地方议会"}}, {ID: "b", Name: "b1", Descriptions: []string{"安排会议"}}})
	if matches := r.find("会议"); len(matches) < 2 || matches[0].Tool != "b" {
		t.Errorf("found %v", found(matches))
	}
}

func TestParametersAreSearched(t *testing.T) {
	tools := office(t)
	r := ranker(tools)
	if matches := r.find("attachments"); len(matches) == 0 || matches[0].Tool != "mail.send" {
		t.Errorf("found %v", found(matches))
	}
	for i := range tools {
		tools[i].Parameters = nil
	}
	if matches := ranker(tools).find("attachments"); len(matches) > 0 && matches[0].Tool == "mail.send" {
		t.Error("found without parameters: this test shows nothing")
	}
}

func TestEndingsDoNotMatter(t *testing.T) {
	r := ranker(office(t))
	for _, text := range []string{"translate", "translating", "translations", "Translated"} {
		if matches := r.find(text); len(matches) == 0 || matches[0].Tool != "translate" {
			t.Errorf("%q found %v", text, found(matches))
		}
	}
}

// "Please show me how I can use the" is in no tool's favour, even if a tool has these words.
func TestStopWordsDoNotCount(t *testing.T) {
	r := ranker([]Tool{{ID: "a", Name: "guide", Descriptions: []string{"Please show me how I can use the thing that you provide"}},
		{ID: "b", Name: "crop", Descriptions: []string{"Cut a picture"}}})
	if matches := r.find("Please show me how I can use the picture that you provide"); len(matches) == 0 || matches[0].Tool != "b" {
		t.Errorf("found %v", found(matches))
	}
}

// Among tools with much history, one without any must be found by its words as before.
func TestAToolWithoutHistoryIsNotBuried(t *testing.T) {
	const text = "crop this picture to a square"
	var past []Request
	for i := range 60 {
		past = append(past, remembered(fmt.Sprintf("paint a picture with a fox in style%c", 'a'+rune(i%26)), "image.make"),
			remembered("translate this to French", "translate"))
	}
	for _, r := range []*Ranker{ranker(office(t), past...), ranker(office(t), past[0], past[1])} {
		matches := r.find(text)
		if at := place(matches, "image.crop"); at != 0 {
			t.Errorf("image.crop is at place %d of %v", at, found(matches))
		}
	}
	// What a history says counts the more, the more requests it rests on.
	few, many := ranker(office(t), past[0]).find(text), ranker(office(t), past...).find(text)
	if a, b := few[place(few, "image.make")].Features.HistoryShare, many[place(many, "image.make")].Features.HistoryShare; !(0 < a && a < b) {
		t.Errorf("history counts %v with one request and %v with sixty", a, b)
	}
}

// Among tools with much history, one that came after it is found by its words, as if it had some; one that was there all the
// time and that nobody chose is not.
func TestANewToolIsToldFromOneThatNobodyWants(t *testing.T) {
	const text = "a frame in style and colour with a fox"
	var past []Request
	for i := range 600 {
		one := remembered(fmt.Sprintf("paint a picture with a fox in style%c and colour%c", 'a'+rune(i%26), 'a'+rune(i/26)), "image.make")
		one.Time = day(i)
		past = append(past, one)
	}
	first := func(created time.Time) id.Tool {
		framer := Tool{ID: "image.frame", Name: "frame_image", Descriptions: []string{"Put a frame of wood around a picture"}, Created: created}
		return ranker(append(office(t), framer), past...).find(text)[0].Tool
	}
	if found := first(day(600)); found != "image.frame" {
		t.Errorf("a new tool: %s is first", found)
	}
	for _, created := range []time.Time{{}, day(0)} {
		if found := first(created); found != "image.make" {
			t.Errorf("a tool that nobody wants: %s is first", found)
		}
	}
}

// A new tool is found by its words until use tells otherwise; a few requests are enough for that.
func TestHistoryTeachesWordsThatNoToolHas(t *testing.T) {
	const text = "what is it like outside"
	if at := place(ranker(office(t)).find(text), "weather.current"); at == 0 {
		t.Fatal("found without history: this test shows nothing")
	}
	var past []Request
	for _, one := range []string{"is it nice outside", "how is it outside today", "outside: cold or warm?", "what's it like outside now"} {
		past = append(past, remembered(one, "weather.current"))
	}
	matches := ranker(office(t), past...).find(text)
	if at := place(matches, "weather.current"); at != 0 {
		t.Errorf("at place %d of %v", at, found(matches))
	}
}

// A fifth of wrong labels changes little.
func TestSomeWrongLabelsDoNotMatter(t *testing.T) {
	tools := office(t)
	var past []Request
	for i := range 40 {
		tool := id.Tool("weather.current")
		if i%5 == 0 {
			tool = tools[i%len(tools)].ID
		}
		past = append(past, remembered(fmt.Sprintf("what is it like outside in town%c", 'a'+rune(i%26)), tool))
	}
	if matches := ranker(tools, past...).find("what is it like outside"); len(matches) == 0 || matches[0].Tool != "weather.current" {
		t.Errorf("found %v", found(matches))
	}
}

// Chinese requests find tools that have Chinese words, in a description or an alias; tools that have English
// ones only they cannot find until use has taught how they are asked for.
func TestChineseRequestsOverEnglishTools(t *testing.T) {
	english := office(t)
	for i := range english {
		english[i].Titles, english[i].Aliases = nil, nil
		var kept []string
		for _, text := range english[i].Descriptions {
			if !strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				kept = append(kept, text)
			}
		}
		english[i].Descriptions = kept
	}
	const text = "换算货币"
	if matches := ranker(english).find(text); place(matches, "money.convert") >= 0 {
		t.Errorf("found by English words: %v", matches)
	}
	if matches := ranker(english, remembered("把美元换成欧元，换算货币", "money.convert")).find(text); place(matches, "money.convert") != 0 {
		t.Errorf("with a past request: %v", found(matches))
	}
	for i := range english {
		if english[i].ID == "money.convert" {
			english[i].Aliases = []string{"货币换算"}
		}
	}
	if matches := ranker(english).find(text); place(matches, "money.convert") != 0 {
		t.Errorf("with an alias: %v", found(matches))
	}
}

// A request of two steps finds the tools of both.
func TestStepsOfARequestAreSearchedEach(t *testing.T) {
	matches := ranker(office(t)).find("Find flights to Oslo in business class between these two airports. Then translate the text.")
	for _, tool := range []id.Tool{"flights.search", "translate"} {
		if at := place(matches, tool); at < 0 || at > 2 {
			t.Errorf("%s is at place %d of %v", tool, at, found(matches))
		}
	}
}
