package inference

import (
	"context"
	"encoding/json"
	"fmt"
)

// Reranker says how well texts answer a request.
type Reranker struct{ *endpoint }

// NewReranker returns one.
func NewReranker(o Options) *Reranker { return &Reranker{newEndpoint(o)} }

type rerankQuestion struct {
	Model           string   `json:"model,omitempty"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"`
	TopN            int      `json:"top_n"`
	ReturnDocuments bool     `json:"return_documents"`
}

type rerankAnswer struct {
	Results []struct {
		Index          *int     `json:"index"`
		RelevanceScore *float64 `json:"relevance_score"`
	} `json:"results"`
}

// Rerank returns the relevance of each document, from 0 to 1. It returns when ctx ends, at the latest.
func (r *Reranker) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	if len(documents) == 0 {
		return nil, nil
	}
	var scores []float64
	err := r.ask(ctx, rerankQuestion{r.o.Model, query, documents, len(documents), false}, bytesPerAnswer+int64(len(documents))*1024, func(answer []byte) (err error) {
		scores, err = readScores(answer, len(documents))
		return err
	})
	return scores, err
}

func readScores(answer []byte, count int) ([]float64, error) {
	var a rerankAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("the answer is no list of results: %w", err)
	}
	if len(a.Results) != count {
		return nil, fmt.Errorf("%d results of %d documents", len(a.Results), count)
	}
	scores := make([]float64, count)
	seen := make([]bool, count)
	for _, one := range a.Results {
		if one.Index == nil || *one.Index < 0 || *one.Index >= count || seen[*one.Index] {
			return nil, fmt.Errorf("a result without an index below %d of its own", count)
		}
		if one.RelevanceScore == nil || !(*one.RelevanceScore >= 0 && *one.RelevanceScore <= 1) {
			return nil, fmt.Errorf("a relevance that is not from 0 to 1")
		}
		scores[*one.Index], seen[*one.Index] = *one.RelevanceScore, true
	}
	return scores, nil
}
