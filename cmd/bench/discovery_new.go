package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// reportNewTools tells what becomes of tools that came later than others: a fifth of all, by a hash of their names. Top-1 and
// top-3 are told of the requests for them and of those for the others, which new tools may get in the way of.
func reportNewTools(r *discoveryReport, s *dataSet, weights discovery.Weights) {
	chosen := sampled(s.queries)
	isNew := func(tool id.Tool) bool { return hash(string(tool))%5 == 0 }
	forNew := func(q *dataQuery) bool { return slices.ContainsFunc(q.Relevant, isNew) }
	none := func(int, []discovery.Request) []discovery.Request { return nil }
	_, q := countedLearned(discovery.NewIndex(s.searched()), weights, s.queries, none, func(i int) bool { return chosen(i) && forNew(&s.queries[i]) })
	r.add(s.name, "new tools, nobody has history", 0, q.Queries, q.Top1, q.Top3)

	// Past requests were made one a second.
	first := time.Unix(0, 0).UTC()
	madeAt := func(i int) time.Time { return first.Add(time.Duration(i) * time.Second) }
	for _, percent := range []int{0, 2, 10, 50} {
		created := madeAt(len(s.queries) * (100 - percent) / 100)
		index := s.indexed(isNew, created)
		made := func(fold int, _ []discovery.Request) []discovery.Request {
			var requests []discovery.Request
			for i := range s.queries {
				if at := madeAt(apart(i, len(s.queries))); foldOf(i) != fold && (!forNew(&s.queries[i]) || !at.Before(created)) {
					one := past(s.queries[i:i+1], all)[0]
					one.Time = at
					requests = append(requests, one)
				}
			}
			return requests
		}
		for _, asked := range []struct {
			what   string
			forNew bool
		}{{"new tools", true}, {"the others", false}} {
			kept, q := countedLearned(index, weights, s.queries, made, func(i int) bool { return chosen(i) && forNew(&s.queries[i]) == asked.forNew })
			r.add(s.name, fmt.Sprintf("%s, there for %d %%", asked.what, percent), kept, q.Queries, q.Top1, q.Top3)
		}
	}
}

// apart is another place for each of so many: queries that stand together are often alike.
func apart(i, n int) int {
	const step = 7919 // a prime, which no set has as many queries as
	return i * step % n
}

// indexed is the index of a set, of which some tools are there since an instant.
func (s *dataSet) indexed(isNew func(id.Tool) bool, since time.Time) *discovery.Index {
	tools := s.searched()
	for i := range tools {
		if isNew(tools[i].ID) {
			tools[i].Created = since
		}
	}
	return discovery.NewIndex(tools)
}
