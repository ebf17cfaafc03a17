package main

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// discoveryReport is what discovery prints.
type discoveryReport struct {
	machine
	Columns []any    `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Remarks []string `json:"remarks"`
}

func newDiscoveryReport(columns ...any) *discoveryReport {
	return &discoveryReport{machine: thisMachine(), Columns: columns}
}

func (r *discoveryReport) add(cells ...any) {
	for i, cell := range cells {
		if x, ok := cell.(float64); ok {
			cells[i] = fmt.Sprintf("%.1f", x)
		}
	}
	r.Rows = append(r.Rows, cells)
}

func (r *discoveryReport) print(w io.Writer, output string) error {
	f := &findings{head: r.Columns, rows: r.Rows, remarks: append(r.Remarks, r.String())}
	return f.print(w, output, r)
}

func all(int) bool { return true }

// rankingReport compares plain BM25 with the ranking without and with use.
func rankingReport(sets []*dataSet, weights discovery.Weights) *discoveryReport {
	r := newDiscoveryReport("set", "tools", "queries", "ranking", "top-1", "top-3", "top-5", "nDCG@10", "p50 ms", "p95 ms")
	for _, s := range sets {
		index := discovery.NewIndex(s.searched())
		for _, one := range []struct {
			name string
			q    quality
		}{
			{"plain BM25", askAll(discovery.NewRanker(discovery.NewIndex(s.plain()), plainWeights()), s.queries, all).quality()},
			{"cold", askAll(discovery.NewRanker(index, weights), s.queries, all).quality()},
			{"learned", learned(index, weights, s.queries, nil, nil).quality()},
		} {
			r.add(s.name, len(s.tools), one.q.Queries, one.name, one.q.Top1, one.q.Top3, one.q.Top5, one.q.NDCG, decimal(one.q.P50), decimal(one.q.P95))
		}
	}
	r.Remarks = append(r.Remarks, "Percent of queries with a right tool among the first one, three and five; two folds are asked at a time.")
	return r
}

// sampled bounds what a report asks: every so many-th query of large sets.
func sampled(queries []dataQuery) func(i int) bool {
	step := 1 + len(queries)/2500
	return func(i int) bool { return i/folds%step == 0 }
}

// learningReport tells what use is worth: top-3 with so many past requests of each tool, with wrong labels,
// and of tools without history among tools with one.
func learningReport(sets []*dataSet, weights discovery.Weights) *discoveryReport {
	r := newDiscoveryReport("set", "what", "past requests", "queries", "top-1", "top-3")
	for _, s := range sets {
		index := discovery.NewIndex(s.searched())
		chosen := sampled(s.queries)
		measure := func(what string, change func(int, []discovery.Request) []discovery.Request) {
			kept, q := countedLearned(index, weights, s.queries, change, chosen)
			r.add(s.name, what, kept, q.Queries, q.Top1, q.Top3)
		}
		for _, most := range []int{0, 1, 2, 3, 5, 10, 20, 40, 80} {
			measure(fmt.Sprintf("at most %d a tool", most), func(_ int, requests []discovery.Request) []discovery.Request { return atMost(requests, most) })
		}
		tools := relevantTools(s.queries)
		for _, percent := range []uint32{0, 20, 50} {
			measure(fmt.Sprintf("%d %% wrong", percent), func(_ int, requests []discovery.Request) []discovery.Request {
				return mislabel(requests, tools, percent)
			})
		}
		reportNewTools(r, s, weights)
	}
	r.Remarks = append(r.Remarks, "“New tools” are a fifth of all, by a hash of their names, and there for so many percent of the past requests. Past requests are those of the first fold.")
	return r
}

// countedLearned is learned, with how many past requests there were in the first fold.
func countedLearned(index *discovery.Index, weights discovery.Weights, queries []dataQuery,
	change func(fold int, requests []discovery.Request) []discovery.Request, asked func(i int) bool) (kept int, q quality) {
	q = learned(index, weights, queries, func(fold int, requests []discovery.Request) []discovery.Request {
		requests = change(fold, requests)
		if fold == 0 {
			kept = len(requests)
		}
		return requests
	}, asked).quality()
	return kept, q
}

// atMost keeps so many requests of each tool, the first ones.
func atMost(requests []discovery.Request, most int) []discovery.Request {
	counts := map[id.Tool]int{}
	var kept []discovery.Request
	for _, r := range requests {
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(tool id.Tool) bool { return counts[tool] >= most })
		for _, tool := range r.Tools {
			counts[tool]++
		}
		if len(r.Tools) > 0 {
			kept = append(kept, r)
		}
	}
	return kept
}

// mislabel gives some percent of the requests another tool.
func mislabel(requests []discovery.Request, tools []id.Tool, percent uint32) []discovery.Request {
	for i := range requests {
		if h := hash(fmt.Sprint(i)); h%100 < percent {
			requests[i].Tools = []id.Tool{tools[int(h/100)%len(tools)]}
		}
	}
	return requests
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	x := h.Sum32()
	x ^= x >> 16 // FNV alone leaves short texts alike in their high bits
	x *= 0x7feb352d
	return x ^ x>>15
}

// unrelatedText has requests that no tool is for: talk, feelings, opinions; English and Chinese.
//
//go:embed unrelated.txt
var unrelatedText string

func unrelated() []dataQuery {
	var queries []dataQuery
	for line := range strings.Lines(unrelatedText) {
		queries = append(queries, dataQuery{Query: strings.TrimSpace(line)})
	}
	return queries
}

// thresholdReport tells how many of a set's queries the threshold loses, and how many requests of nothing it
// rejects.
func thresholdReport(sets []*dataSet, weights discovery.Weights) *discoveryReport {
	r := newDiscoveryReport("set", "lost cold", "of them right", "lost learned", "of them right", "unrelated rejected cold", "learned")
	for _, s := range sets {
		index := discovery.NewIndex(s.searched())
		chosen := sampled(s.queries)
		cold := discovery.NewRanker(index, weights)
		history := discovery.NewHistory(past(s.queries, func(i int) bool { return foldOf(i) != 0 }), &weights.Learned, discovery.DefaultHistoryLimits())
		used := discovery.NewRanker(index, weights, discovery.Level{History: history, Share: 1})
		asked := func(i int) bool { return foldOf(i) == 0 && chosen(i) }
		coldLost, coldRight := rejected(cold, s.queries, asked)
		usedLost, usedRight := rejected(used, s.queries, asked)
		coldUnrelated, _ := rejected(cold, unrelated(), all)
		usedUnrelated, _ := rejected(used, unrelated(), all)
		r.add(s.name, coldLost, coldRight, usedLost, usedRight, coldUnrelated, usedUnrelated)
	}
	r.Remarks = append(r.Remarks, fmt.Sprintf("Percent, at a confidence below %v; of queries, the first fold; of %d unrelated requests. "+
		"“Of them right” is the share of all queries that lost a right tool among the first three.", weights.Confidence.Threshold, len(unrelated())))
	return r
}

// rejected is the percentage of queries that nothing fits, and of those that lose a right tool thereby.
func rejected(r *discovery.Ranker, queries []dataQuery, asked func(i int) bool) (lost, right float64) {
	n := 0
	for i := range queries {
		if !asked(i) {
			continue
		}
		n++
		result := r.Search(discovery.Query{Text: queries[i].Query, Limit: 3})
		if !result.Fits {
			lost++
			if firstRight(&queries[i], result.Matches) < 3 {
				right++
			}
		}
	}
	return 100 * lost / float64(max(n, 1)), 100 * right / float64(max(n, 1))
}
