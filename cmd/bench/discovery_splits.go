package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// randomSplits is how many random splits of the queries are asked. The usual one is one of many: which queries are asked
// and which are past ones moves small sets by a point and more, so a change is judged by what it does to all of them.
const randomSplits = 8

// afterPast is since when new tools are there: past requests have no time, and so are from before.
var afterPast = time.Unix(0, 0).UTC()

// shuffled returns queries in a random order, which is the same for the same seed; so they fall into other folds.
func shuffled(queries []dataQuery, seed uint64) []dataQuery {
	mixed := slices.Clone(queries)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return mixed
}

// splitsReport asks with use in random splits: what the figures of one split are worth, and what is paid elsewhere for a
// gain: with wrong labels, and by tools that are new among used ones.
func splitsReport(sets []*dataSet, weights discovery.Weights) *discoveryReport {
	r := newDiscoveryReport("set", "top-1", "top-3", "lowest", "highest", "20 % wrong", "50 % wrong", "new tools: top-1", "top-3")
	for _, s := range sets {
		index := discovery.NewIndex(s.searched())
		tools, chosen := relevantTools(s.queries), sampled(s.queries)
		var right, some, half, fresh answerTally
		lowest, highest := 100.0, 0.0
		for seed := range uint64(randomSplits) {
			queries := shuffled(s.queries, seed)
			one := learned(index, weights, queries, nil, chosen)
			right.merge(one)
			top3 := one.quality().Top3
			lowest, highest = min(lowest, top3), max(highest, top3)
			for percent, into := range map[uint32]*answerTally{20: &some, 50: &half} {
				into.merge(learned(index, weights, queries, func(_ int, requests []discovery.Request) []discovery.Request {
					return mislabel(requests, tools, percent)
				}, chosen))
			}
			isNew := func(tool id.Tool) bool { return hash(fmt.Sprint(seed, tool))%5 == 0 }
			fresh.merge(learned(s.indexed(isNew, afterPast), weights, queries, func(_ int, requests []discovery.Request) []discovery.Request {
				return slices.DeleteFunc(requests, func(r discovery.Request) bool { return slices.ContainsFunc(r.Tools, isNew) })
			}, func(i int) bool { return chosen(i) && slices.ContainsFunc(queries[i].Relevant, isNew) }))
		}
		q, n := right.quality(), fresh.quality()
		r.add(s.name, q.Top1, q.Top3, lowest, highest, some.quality().Top3, half.quality().Top3, n.Top1, n.Top3)
	}
	r.Remarks = append(r.Remarks, fmt.Sprintf("Means of %d random splits in %d parts; lowest and highest of their top-3. “Wrong” is top-3 with so many wrong labels. "+
		"“New tools” are a fifth of all, another in each split, there since all past requests.", randomSplits, folds))
	return r
}
