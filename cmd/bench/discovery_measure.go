package main

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// folds is how many parts the queries are split in: each is asked with the others as past requests.
const folds = 5

// rankDepth is how many tools each search returns.
const rankDepth = 10

// quality is how well queries were answered.
type quality struct {
	Queries int `json:"queries"`
	// Percent of the queries with a right tool among the first one, three and five.
	Top1 float64 `json:"top1"`
	Top3 float64 `json:"top3"`
	Top5 float64 `json:"top5"`
	// NDCG is the mean of nDCG@10, in percent.
	NDCG float64 `json:"ndcg10"`
	// P50 and P95 are milliseconds a search.
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

// answerTally adds up answers.
type answerTally struct {
	queries, top1, top3, top5 int
	ndcg                      float64
	took                      []time.Duration
}

func (t *answerTally) add(q *dataQuery, matches []discovery.Match, took time.Duration) {
	t.queries++
	t.took = append(t.took, took)
	first := firstRight(q, matches)
	if first < 1 {
		t.top1++
	}
	if first < 3 {
		t.top3++
	}
	if first < 5 {
		t.top5++
	}
	gain, ideal := 0.0, 0.0
	for i, m := range matches {
		if i < rankDepth && slices.Contains(q.Relevant, m.Tool) {
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(len(q.Relevant), rankDepth) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	t.ndcg += gain / ideal
}

// firstRight is the place of the first right tool, from 0; a large number if there is none.
func firstRight(q *dataQuery, matches []discovery.Match) int {
	if i := slices.IndexFunc(matches, func(m discovery.Match) bool { return slices.Contains(q.Relevant, m.Tool) }); i >= 0 {
		return i
	}
	return math.MaxInt
}

func (t *answerTally) merge(other *answerTally) {
	t.queries += other.queries
	t.top1 += other.top1
	t.top3 += other.top3
	t.top5 += other.top5
	t.ndcg += other.ndcg
	t.took = append(t.took, other.took...)
}

func (t *answerTally) quality() quality {
	slices.Sort(t.took)
	percent := func(n float64) float64 { return 100 * n / float64(max(t.queries, 1)) }
	at := func(share float64) float64 {
		if len(t.took) == 0 {
			return 0
		}
		return milliseconds(t.took[int(share*float64(len(t.took)-1))])
	}
	return quality{t.queries, percent(float64(t.top1)), percent(float64(t.top3)), percent(float64(t.top5)), percent(t.ndcg), at(0.5), at(0.95)}
}

// askAll asks the queries that are chosen of a ranker.
func askAll(r *discovery.Ranker, queries []dataQuery, chosen func(i int) bool) *answerTally {
	t := &answerTally{}
	for i := range queries {
		if !chosen(i) {
			continue
		}
		began := time.Now()
		result := r.Search(discovery.Query{Text: queries[i].Query, Limit: rankDepth})
		t.add(&queries[i], result.Matches, time.Since(began))
	}
	return t
}

// foldOf is the fold of a query.
func foldOf(i int) int { return i % folds }

// eachFold does something for each fold, two at a time.
func eachFold(do func(fold int)) {
	var wait sync.WaitGroup
	turns := make(chan struct{}, 2)
	for fold := range folds {
		wait.Go(func() {
			turns <- struct{}{}
			do(fold)
			<-turns
		})
	}
	wait.Wait()
}

// past is queries as past requests, each a success.
func past(queries []dataQuery, chosen func(i int) bool) []discovery.Request {
	var requests []discovery.Request
	for i, q := range queries {
		if chosen(i) {
			requests = append(requests, discovery.Request{Features: discovery.FeaturesOf(q.Query), Tools: slices.Clone(q.Relevant), Weight: 1})
		}
	}
	return requests
}

// learned asks the queries of each fold of a ranker that has the others as past requests, changed in some way.
func learned(index *discovery.Index, weights discovery.Weights, queries []dataQuery, change func(fold int, requests []discovery.Request) []discovery.Request,
	asked func(i int) bool) *answerTally {
	parts := make([]*answerTally, folds)
	eachFold(func(fold int) {
		requests := past(queries, func(i int) bool { return foldOf(i) != fold })
		if change != nil {
			requests = change(fold, requests)
		}
		history := discovery.NewHistory(requests, &weights.Learned, discovery.DefaultHistoryLimits())
		ranker := discovery.NewRanker(index, weights, discovery.Level{History: history, Share: 1})
		parts[fold] = askAll(ranker, queries, func(i int) bool { return foldOf(i) == fold && (asked == nil || asked(i)) })
	})
	all := &answerTally{}
	for _, part := range parts {
		all.merge(part)
	}
	return all
}

// relevantTools are the tools of a set's queries.
func relevantTools(queries []dataQuery) []id.Tool {
	var tools []id.Tool
	for _, q := range queries {
		tools = append(tools, q.Relevant...)
	}
	slices.Sort(tools)
	return slices.Compact(tools)
}
