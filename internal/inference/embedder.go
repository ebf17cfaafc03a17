package inference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

const (
	// maxDimensions bounds a vector.
	maxDimensions = 8192
	// bytesPerNumber is more than a number of a vector takes in JSON.
	bytesPerNumber = 32
	// bytesPerAnswer is what an answer has besides vectors.
	bytesPerAnswer = 64 << 10
)

// Embedder makes vectors of texts. Of all its answers vectors have one dimension; it is that of the first answer, unless
// it is set.
type Embedder struct {
	*endpoint
	asked      int // dimensions that the model is asked for; 0: as it likes
	dimensions atomic.Int64
}

// NewEmbedder returns one. dimensions is how long vectors shall be; 0: as long as the model makes them.
func NewEmbedder(o Options, dimensions int) *Embedder {
	e := &Embedder{endpoint: newEndpoint(o), asked: dimensions}
	e.dimensions.Store(int64(dimensions))
	return e
}

type embeddingQuestion struct {
	Model          string   `json:"model,omitempty"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     int      `json:"dimensions,omitempty"`
}

type embeddingAnswer struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float64 `json:"embedding"`
	} `json:"data"`
}

// Embed makes a vector of length 1 of each text. It returns when ctx ends, at the latest.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	dimensions := int(e.dimensions.Load())
	most := dimensions
	if most == 0 {
		most = maxDimensions
	}
	var vectors [][]float32
	err := e.ask(ctx, embeddingQuestion{e.o.Model, texts, "float", e.asked}, bytesPerAnswer+int64(len(texts))*int64(most)*bytesPerNumber, func(answer []byte) (err error) {
		vectors, err = readVectors(answer, len(texts), dimensions)
		return err
	})
	if err != nil {
		return nil, err
	}
	e.dimensions.CompareAndSwap(0, int64(len(vectors[0])))
	return vectors, nil
}

func readVectors(answer []byte, count, dimensions int) ([][]float32, error) {
	var a embeddingAnswer
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("the answer is no list of embeddings: %w", err)
	}
	if len(a.Data) != count {
		return nil, fmt.Errorf("%d embeddings of %d texts", len(a.Data), count)
	}
	vectors := make([][]float32, count)
	for place, one := range a.Data {
		at := place
		if one.Index != nil {
			at = *one.Index
		}
		if at < 0 || at >= count || vectors[at] != nil {
			return nil, fmt.Errorf("index %d of %d embeddings", at, count)
		}
		if dimensions == 0 {
			dimensions = len(one.Embedding)
		}
		if n := len(one.Embedding); n == 0 || n > maxDimensions || n != dimensions {
			return nil, fmt.Errorf("an embedding of %d dimensions, want %d", n, dimensions)
		}
		vector, err := unit(one.Embedding)
		if err != nil {
			return nil, err
		}
		vectors[at] = vector
	}
	return vectors, nil
}

// unit makes a vector 1 long.
func unit(numbers []float64) ([]float32, error) {
	sum := 0.0
	for _, x := range numbers {
		sum += x * x
	}
	length := math.Sqrt(sum)
	if !(length > 1e-12) || math.IsInf(length, 0) {
		return nil, errors.New("an embedding that is no vector with a direction")
	}
	vector := make([]float32, len(numbers))
	for i, x := range numbers {
		vector[i] = float32(x / length)
	}
	return vector, nil
}
