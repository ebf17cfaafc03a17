package discovery

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/id"
)

// day is one of a calendar of tests.
func day(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

// What counts is how much was asked since a tool is there, not when that was.
func TestNewness(t *testing.T) {
	w := DefaultWeights()
	w.NewTool.KnownAfter = 10
	var past []Request
	for i := range 40 {
		one := remembered(fmt.Sprint("request", i), "a")
		one.Time = day(i * i) // fewer and fewer
		past = append(past, one)
	}
	slices.Reverse(past)
	h := NewHistory(past, &w.Learned, DefaultHistoryLimits())
	for _, test := range []struct {
		created time.Time
		want    float64
	}{
		{time.Time{}, 0},                   // it was always there
		{day(-1), 0},                       // for all of them
		{day(0), 0},                        // from the first one on
		{day(1), 1. / 40 * 10 / 49},        // it missed one
		{day(30 * 30), 30. / 40 / 2},       // ten since
		{day(30*30 - 1), 30. / 40 / 2},     // whatever the day
		{day(39 * 39), 39. / 40 * 10 / 11}, // one since
		{day(9999), 1},                     // it missed all
	} {
		if got := h.newness(test.created, &w.NewTool); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("since %s: %v, want %v", test.created.Format(time.DateOnly), got, test.want)
		}
	}
	if got := NewHistory(nil, &w.Learned, DefaultHistoryLimits()).newness(day(1), &w.NewTool); got != 0 {
		t.Errorf("without past requests %v", got)
	}
}

// The older half of what was asked says less of a tool than the newer half: requests weigh what they weigh.
func TestNewnessCountsWeights(t *testing.T) {
	w := DefaultWeights()
	old, recent := remembered("one", "a"), remembered("other", "a")
	old.Time, old.Weight, recent.Time = day(1), 0.25, day(3)
	h := NewHistory([]Request{old, recent}, &w.Learned, DefaultHistoryLimits())
	if got, want := h.newness(day(2), &w.NewTool), 0.25/1.25*w.NewTool.KnownAfter/(w.NewTool.KnownAfter+1); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

// How like a tool's requests are to one another is, on average, how like each is to the sum of all others.
func TestHowLikeOwnRequestsAre(t *testing.T) {
	w := DefaultWeights()
	var past []Request
	for i := range 50 {
		past = append(past, remembered(fmt.Sprintf("rain in town%d today", i%7), "rain"), remembered(fmt.Sprintf("word%d", i), "any"))
	}
	past = append(past, remembered("alone", "single"))
	h := NewHistory(past, &w.Learned, DefaultHistoryLimits())
	vectors := func(tool id.Tool) (all []map[uint64]float64) {
		for _, r := range past {
			if r.Tools[0] == tool {
				one, square := map[uint64]float64{}, 0.0
				for _, f := range r.Features {
					one[f] = h.idf[h.words[f]]
					square += one[f] * one[f]
				}
				for f := range one {
					one[f] /= math.Sqrt(square)
				}
				all = append(all, one)
			}
		}
		return all
	}
	for number, tool := range h.tools {
		sum, all := 0.0, vectors(tool)
		for i := range all {
			others, square, inner := map[uint64]float64{}, 0.0, 0.0
			for j := range all {
				for f, x := range all[j] {
					if j != i {
						others[f] += x
					}
				}
			}
			for f, x := range others {
				square += x * x
				inner += x * all[i][f]
			}
			if square > 0 {
				sum += inner / math.Sqrt(square)
			}
		}
		if got, want := h.own[number], sum/float64(len(all)); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
}

// always makes tools that were always there.
func always(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Created = time.Time{}
	}
	return tools
}

// Where all tools were there for all past requests, it does not matter since when.
func TestToolsThatWereThereForAllAreAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SliceOfNDistinct(genTool(), 0, 10, func(tool Tool) id.Tool { return tool.ID }).Draw(t, "tools")
		requests := rapid.SliceOfN(genRequest(), 0, 20).Draw(t, "requests")
		for i := range requests {
			requests[i].Time = day(100 + i)
		}
		query := Query{Text: genText(6).Draw(t, "query"), Limit: 20}
		want := withHistory(NewIndex(always(tools)), requests).Search(query)
		if got := withHistory(NewIndex(tools), requests).Search(query); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n%+v", got, want)
		}
	})
}

// That a tool is new does not lower its score, and does not change what others score.
func TestNewToolsAreCredited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SliceOfNDistinct(genTool(), 0, 10, func(tool Tool) id.Tool { return tool.ID }).Draw(t, "tools")
		requests := rapid.SliceOfN(genRequest(), 0, 20).Draw(t, "requests")
		query := Query{Text: genText(6).Draw(t, "query"), Limit: 20}
		created := map[id.Tool]time.Time{}
		for _, tool := range tools {
			created[tool.ID] = tool.Created
		}
		scores := func(tools []Tool) map[id.Tool]float64 {
			scores := map[id.Tool]float64{}
			for _, m := range withHistory(NewIndex(tools), requests).Search(query).Matches {
				scores[m.Tool] = m.Score
			}
			return scores
		}
		got, want := scores(tools), scores(always(tools))
		if len(got) != len(want) {
			t.Fatalf("%v\n%v", got, want)
		}
		for tool, score := range got {
			if old := want[tool]; score < old || score != old && created[tool].IsZero() {
				t.Fatalf("%s, since %v: %v, were it always there %v", tool, created[tool], score, old)
			}
		}
	})
}
