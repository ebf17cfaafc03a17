package grpcserver

import (
	"context"
	"time"

	"github.com/toolgrant/toolgrant/internal/finder"
)

// Reranker is a model that says how well texts answer a request.
type Reranker struct {
	// Ask returns the relevance of each text, from 0 to 1. It returns when ctx ends.
	Ask func(ctx context.Context, query string, texts []string) ([]float64, error)
	// Timeout is how long a search waits for it, in all.
	Timeout time.Duration
	// Candidates is how many matches it is asked about.
	Candidates int
	// Threshold is the relevance below which the best match changes nothing.
	Threshold float64
}

// reranking is that of one search, which may be repeated; the time is counted from when it is asked first. nil: none.
func (r *Reranker) reranking(ctx context.Context, query string) (*finder.Reranking, context.CancelFunc) {
	if r == nil {
		return nil, func() {}
	}
	var limited context.Context
	cancel := func() {}
	return &finder.Reranking{Candidates: r.Candidates, Threshold: r.Threshold, Ask: func(texts []string) []float64 {
		if limited == nil {
			limited, cancel = context.WithTimeout(ctx, r.Timeout)
		}
		relevance, err := r.Ask(limited, query, texts)
		if err != nil {
			return nil
		}
		return relevance
	}}, func() { cancel() }
}
