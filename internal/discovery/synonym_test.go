package discovery

import (
	"strings"
	"testing"
)

// Of two tools that have nothing else of the request, the one with another word for it is found; one with the word itself
// comes before it.
func TestSynonyms(t *testing.T) {
	tools := []Tool{{ID: "a", Name: "upload_photo"}, {ID: "b", Name: "upload_letter"}, {ID: "c", Name: "post_picture"}}
	for i, filler := range strings.Fields("ant bee cow dog eel fox gnu hen") {
		tools = append(tools, Tool{ID: tools[0].ID + "-" + tools[i%3].ID + "-" + tools[0].ID[:1], Name: filler})
	}
	r := ranker(tools)
	matches := r.find("picture")
	if place(matches, "c") != 0 || place(matches, "a") != 1 || place(matches, "b") >= 0 {
		t.Errorf("found %v", found(matches))
	}
	// Another word says nothing of how sure a match is.
	if result := r.Search(Query{Text: "picture", Limit: 1, Candidates: r.Index().Candidates(found(matches)[1:2])}); result.Matches[0].Features.NameCoverage != 0 {
		t.Errorf("%+v", result.Matches[0])
	}
	w := DefaultWeights()
	w.Synonyms = 0
	if matches := NewRanker(NewIndex(tools), w).find("picture"); place(matches, "a") >= 0 {
		t.Errorf("found %v without synonyms: this test shows nothing", found(matches))
	}
}

// A number that a tool is named after finds it; any other is a number like all.
func TestNumbersThatAreNames(t *testing.T) {
	r := ranker([]Tool{{ID: "rail", Name: "tickets", Server: "12306"}, {ID: "year", Name: "history", Descriptions: []string{"What happened in 1984, 2001 and 2020"}}, {ID: "sum", Name: "add"}})
	if matches := r.find("look it up at 12306"); len(matches) == 0 || matches[0].Tool != "rail" {
		t.Errorf("found %v", found(matches))
	}
	with, without := r.Search(Query{Text: "history of 1984", Limit: 1}).Matches, r.Search(Query{Text: "history of 1985", Limit: 1}).Matches
	if len(with) == 0 || len(without) == 0 || with[0].Score != without[0].Score || with[0].Confidence != without[0].Confidence {
		t.Errorf("%+v\n%+v", with, without)
	}
}
