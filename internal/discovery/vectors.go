package discovery

import (
	"math"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Vectors are what a model says that tools mean: vectors of length 1, of one dimension, by tool. They must not be changed
// any more. Tools may lack one.
type Vectors struct {
	ByTool map[id.Tool][]float32
	// Beside are vectors of other tools. They are not found; but if there are enough of them, they tell which likeness is
	// usual, and not those of ByTool: of a user's few private tools, all may be like a request.
	Beside [][]float32
}

// WithVector returns the same text with the vector of its meaning, of length 1; nil: none.
func (q *Text) WithVector(vector []float32) *Text {
	with := *q
	with.vector = vector
	return &with
}

// WithVectors returns a ranker that also compares meanings; nil: one that does not.
func (r *Ranker) WithVectors(v *Vectors) *Ranker {
	with := *r
	with.vectors, with.beside = nil, nil
	if v != nil && len(v.ByTool) > 0 {
		with.beside = v.Beside
		with.vectors = make([][]float32, r.index.Slots())
		for _, one := range r.index.ids {
			with.vectors[one.slot] = v.ByTool[one.id]
		}
	}
	return &with
}

const (
	// fewVectors is how many tools must have a vector: of fewer, deviations tell nothing.
	fewVectors = 8
	// farMeaning is how many standard deviations above the mean a tool's likeness counts from. Half of all tools are above
	// the mean.
	farMeaning = 1.5
	// nearMeaning is from how many on it speaks for a tool by itself: the best of some thousand unrelated ones has about as
	// many.
	nearMeaning = 3
)

// means compares the meaning of a request with those of tools: the cosine, in standard deviations above the mean over all
// tools, or over those beside. What a cosine of 0.5 says depends on the model; how far a tool stands out hardly does.
func (r *Ranker) means(q *Text, s *scratch) {
	s.meaning = s.meaning[:0]
	if len(q.vector) == 0 || r.vectors == nil || r.weights.Meaning == 0 {
		return
	}
	all := zeros(s.meaning, len(s.score))
	var usual, beside moments
	for slot, vector := range r.vectors {
		all[slot] = math.NaN()
		if len(vector) == len(q.vector) { // else it has none, or one of another model
			x := float64(dot(vector, q.vector))
			all[slot] = x
			usual.add(x)
		}
	}
	for _, vector := range r.beside {
		if len(vector) == len(q.vector) {
			beside.add(float64(dot(vector, q.vector)))
		}
	}
	if beside.n >= fewVectors {
		usual = beside
	}
	if usual.n < fewVectors {
		return
	}
	mean, deviation := usual.meanAndDeviation()
	if deviation < 1e-9 {
		return
	}
	for slot, x := range all {
		all[slot] = (x - mean) / deviation // of what has no vector, NaN stays
	}
	s.meaning = all
}

// moments are those of some numbers.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) { m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+x*x }

func (m *moments) meanAndDeviation() (mean, deviation float64) {
	mean = m.sum / m.n
	return mean, math.Sqrt(max(m.squares/m.n-mean*mean, 0))
}

// dot is the product of two vectors of one length, in four sums, which processors add at a time.
func dot(a, b []float32) float32 {
	var w, x, y, z float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		w += a[i] * b[i]
		x += a[i+1] * b[i+1]
		y += a[i+2] * b[i+2]
		z += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		w += a[i] * b[i]
	}
	return w + x + y + z
}

// meaningShare is a tool's, as a share of the best one's. A tool without a vector is judged by its words in its place, so
// that one that was just added is not buried.
func (s *scratch) meaningShare(slot uint32, best, words float64) float64 {
	switch z := s.meaning[slot]; {
	case math.IsNaN(z):
		return words
	case z < farMeaning:
		return 0
	default:
		return z / best
	}
}
