package discovery

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/id"
)

var someWords = strings.Fields("weather forecast send mail read write file image crop calendar event 天气 邮件 文件 convert money list get delete city date")

func genText(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(someWords), 0, most).Draw(t, "words"), rapid.SampledFrom([]string{" ", "_", ". "}).Draw(t, "joined by"))
	})
}

// genTime draws a day, or none.
func genTime() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.IntRange(0, 9), func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return day(n)
	})
}

func genTool() *rapid.Generator[Tool] {
	return rapid.Custom(func(t *rapid.T) Tool {
		return Tool{
			ID: id.Tool(fmt.Sprintf("t%d", rapid.IntRange(0, 12).Draw(t, "id"))), Name: genText(3).Draw(t, "name"),
			Descriptions: rapid.SliceOfN(genText(8), 0, 2).Draw(t, "descriptions"),
			Parameters:   []Parameter{{genText(2).Draw(t, "parameter"), genText(3).Draw(t, "about")}},
			Keywords:     rapid.SliceOfN(genText(1), 0, 2).Draw(t, "keywords"), Aliases: rapid.SliceOfN(genText(2), 0, 2).Draw(t, "aliases"),
			Category: genText(1).Draw(t, "category"), Created: genTime().Draw(t, "created"),
		}
	})
}

func genRequest() *rapid.Generator[Request] {
	return rapid.Custom(func(t *rapid.T) Request {
		return Request{Features: FeaturesOf(genText(6).Draw(t, "text")), Weight: rapid.Float64Range(0.1, 1).Draw(t, "weight"),
			Tools:       rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 12), func(n int) id.Tool { return id.Tool(fmt.Sprintf("t%d", n)) }), 1, 2).Draw(t, "tools"),
			Contributor: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "contributor"), Time: genTime().Draw(t, "time")}
	})
}

func withHistory(index *Index, requests []Request) *Ranker {
	w := DefaultWeights()
	return NewRanker(index, w, Level{NewHistory(requests, &w.Learned, DefaultHistoryLimits()), 1})
}

// An index that tools were put into and removed from, one after another, finds what one made at once finds,
// with the same scores to the last bit; and the one from before a change still finds what it found.
func TestIncrementalIsRebuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.SliceOfN(genRequest(), 0, 10).Draw(t, "requests")
		query := Query{Text: genText(6).Draw(t, "query"), Limit: 20, Reasons: true}
		index := NewIndex(nil)
		now := map[id.Tool]Tool{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			before := withHistory(index, requests).Search(query)
			old := index
			put := rapid.SliceOfN(genTool(), 0, 4).Draw(t, "put")
			var remove []id.Tool
			for range rapid.IntRange(0, 3).Draw(t, "removed") {
				remove = append(remove, genTool().Draw(t, "removed").ID)
			}
			index = index.With(put, remove)
			for _, tool := range remove {
				delete(now, tool)
			}
			for _, tool := range put {
				now[tool.ID] = tool
			}
			if after := withHistory(old, requests).Search(query); !reflect.DeepEqual(before, after) {
				t.Fatalf("a change changed the index from before:\n%+v\n%+v", before, after)
			}
		}
		var tools []Tool
		for _, tool := range now {
			tools = append(tools, tool)
		}
		rebuilt := NewIndex(tools)
		if index.Len() != len(now) || rebuilt.Len() != len(now) {
			t.Fatalf("%d and %d tools, want %d", index.Len(), rebuilt.Len(), len(now))
		}
		got, want := withHistory(index, requests).Search(query), withHistory(rebuilt, requests).Search(query)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("incremental:\n%+v\nrebuilt:\n%+v", got, want)
		}
	})
}

// Neither the order of tools nor that of past requests changes an answer.
func TestOrderOfInputsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SliceOfNDistinct(genTool(), 0, 10, func(tool Tool) id.Tool { return tool.ID }).Draw(t, "tools")
		requests := rapid.SliceOfN(genRequest(), 0, 20).Draw(t, "requests")
		query := Query{Text: genText(6).Draw(t, "query"), Limit: 20}
		want := withHistory(NewIndex(tools), requests).Search(query)
		got := withHistory(NewIndex(rapid.Permutation(tools).Draw(t, "permuted")), rapid.Permutation(requests).Draw(t, "permuted")).Search(query)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
		for i := 1; i < len(got.Matches); i++ {
			a, b := got.Matches[i-1], got.Matches[i]
			if a.Score < b.Score || a.Score == b.Score && a.Tool >= b.Tool {
				t.Fatalf("%s (%v) stands before %s (%v)", a.Tool, a.Score, b.Tool, b.Score)
			}
		}
		for _, m := range got.Matches {
			if !(m.Confidence >= 0 && m.Confidence <= 1) || !(m.Score > 0) {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// Without history, what a user may not use does not change the scores and the order of what he may.
func TestOtherCandidatesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SliceOfNDistinct(genTool(), 1, 10, func(tool Tool) id.Tool { return tool.ID }).Draw(t, "tools")
		r := NewRanker(NewIndex(tools), DefaultWeights())
		var may []id.Tool
		for _, tool := range tools {
			if rapid.Bool().Draw(t, "may") {
				may = append(may, tool.ID)
			}
		}
		text := genText(6).Draw(t, "query")
		want := slices.DeleteFunc(r.Search(Query{Text: text, Limit: 20}).Matches, func(m Match) bool { return !slices.Contains(may, m.Tool) })
		got := r.Search(Query{Text: text, Limit: 20, Candidates: r.Index().Candidates(may)}).Matches
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}

// However often one contributor asks for a tool, it moves nothing further than asking once does.
func TestOneContributorIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index := NewIndex(rapid.SliceOfNDistinct(genTool(), 0, 10, func(tool Tool) id.Tool { return tool.ID }).Draw(t, "tools"))
		others := rapid.SliceOfN(genRequest(), 0, 20).Draw(t, "others")
		one := genRequest().Draw(t, "request")
		one.Contributor, one.Weight = "mallory", 1
		query := Query{Text: genText(6).Draw(t, "query"), Limit: 20}
		once := withHistory(index, append(slices.Clone(others), one)).Search(query)
		often := slices.Clone(others)
		for range rapid.IntRange(2, 500).Draw(t, "times") {
			often = append(often, one)
		}
		if got := withHistory(index, often).Search(query); !reflect.DeepEqual(got, once) {
			t.Fatalf("often:\n%+v\nonce:\n%+v", got, once)
		}
	})
}

func FuzzSearch(f *testing.F) {
	tools := office(f)
	r := ranker(tools, remembered("what is the weather", "weather.current"), remembered("安排一个会议", "calendar.create"))
	for _, text := range []string{"weather in Lisbon. 安排会议", "\xff\xfe\x00", strings.Repeat("weather ", 5000), strings.Repeat("天", 5000), strings.Repeat("a. ", 3000), strings.Repeat("é", 9000)} {
		f.Add(text, 5)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = limit % 40
		query := Query{Text: text, Limit: limit, Reasons: true}
		result := r.Search(query)
		if len(result.Matches) > max(limit, 0) {
			t.Fatalf("%d matches, limit %d", len(result.Matches), limit)
		}
		if !reflect.DeepEqual(result, r.Search(query)) {
			t.Fatal("the same search gave another answer")
		}
		for _, m := range result.Matches {
			if !(m.Score > 0) || !(m.Confidence >= 0 && m.Confidence <= 1) || len(m.Reasons) == 0 && m.Features.History == 0 {
				t.Fatalf("%q: %+v", text, m)
			}
		}
	})
}
