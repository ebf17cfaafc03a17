package discovery

import (
	"fmt"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// townRequests are requests that are much alike; need tells the tool of each.
func townRequests(n int, need func(i int) id.Tool) []Request {
	requests := make([]Request, n)
	for i := range requests {
		requests[i] = remembered(fmt.Sprintf("what is there to see this evening in town%c%c", 'a'+rune(i%26), 'a'+rune(i/26%26)), need(i))
	}
	return requests
}

// Likeness is worth what it was worth in the history itself: where requests that are alike need the same tool, much; where
// they need one or the other, less.
func TestTrustIsMeasured(t *testing.T) {
	tools := office(t)
	const text = "what is there to see this evening in Porto"
	share := func(past []Request) float64 {
		most := 0.0
		for _, m := range ranker(tools, past...).find(text) {
			most = max(most, m.Features.HistoryShare)
		}
		return most
	}
	same := share(townRequests(60, func(int) id.Tool { return "calendar.list" }))
	// Another history says elsewhere that it can be right, and is wrong about these.
	any := townRequests(60, func(i int) id.Tool { return tools[i*7%len(tools)].ID })
	for i := range 60 {
		any = append(any, remembered(fmt.Sprintf("convert money at the exchange rate of bank%c", 'a'+rune(i%26)), "money.convert"))
	}
	if mixed := share(any); mixed > same*0.8 {
		t.Errorf("history counts %v where neighbours agree and %v where they do not", same, mixed)
	}
}

// Nobody makes his own requests trusted by repeating them: about requests of one contributor none of his others tells.
func TestOneContributorDoesNotMakeTrust(t *testing.T) {
	w := DefaultWeights()
	requests := townRequests(60, func(int) id.Tool { return "calendar.list" })
	for i := range requests {
		requests[i].Contributor, requests[i].Weight = "eve", 0.01
	}
	for i, asked := range NewHistory(requests, &w.Learned, DefaultHistoryLimits()).trust.asked {
		if asked > 0 {
			t.Errorf("%v requests were asked at strength %d", asked, i)
		}
	}
}

// What is supposed without history is between nothing and certain, and grows with the strength of a vote.
func TestTrustIsBounded(t *testing.T) {
	w := DefaultWeights()
	for _, past := range [][]Request{nil, townRequests(3, func(int) id.Tool { return "a" }), townRequests(200, func(i int) id.Tool { return id.Tool(fmt.Sprint(i)) })} {
		h := NewHistory(past, &w.Learned, DefaultHistoryLimits())
		for strength := 0.0; strength <= 1; strength += 0.05 {
			if trust := h.trust.in(strength); !(trust >= 0 && trust <= 1) {
				t.Errorf("%d requests: trust %v at strength %v", len(past), trust, strength)
			}
		}
	}
}
