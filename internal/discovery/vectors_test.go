package discovery

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/toolgrant/toolgrant/internal/id"
)

// toward is a vector of length 1 that is near to an axis.
func toward(axis, dimensions int, random *rand.Rand) []float32 {
	v, sum := make([]float32, dimensions), 0.0
	for i := range v {
		v[i] = float32(random.NormFloat64() * 0.1)
		if i == axis {
			v[i] = 1
		}
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// meaningful is a world in which each tool means a thing of its own.
func meaningful(tools []Tool) (*Vectors, func(place int) []float32) {
	random := rand.New(rand.NewPCG(3, 4))
	v := &Vectors{ByTool: map[id.Tool][]float32{}}
	for i, tool := range tools {
		v.ByTool[tool.ID] = toward(i, len(tools)+3, random)
	}
	return v, func(place int) []float32 { return toward(place, len(tools)+3, random) }
}

// A request that shares no word with any tool finds the one that means it, surely enough; without vectors nothing.
func TestMeaningFindsWhatWordsMiss(t *testing.T) {
	tools, _, _ := world(200, 0)
	vectors, of := meaningful(tools)
	r := ranker(tools)
	text := Read("qqqq wwww")
	if result := r.Search(Query{Read: text, Limit: 3}); result.Fits {
		t.Fatalf("found %v without vectors: this test shows nothing", result.Matches)
	}
	result := r.WithVectors(vectors).Search(Query{Read: text.WithVector(of(17)), Limit: 3, Reasons: true})
	if !result.Fits || result.Matches[0].Tool != tools[17].ID || result.Matches[0].Reasons[0].Kind != ReasonMeaning {
		t.Errorf("%+v", result)
	}
	// What the vectors are of changes nothing else: the ranker without them finds what it found.
	if result := r.Search(Query{Read: text.WithVector(of(17)), Limit: 3}); result.Fits {
		t.Errorf("%+v", result)
	}
}

// A tool that has no vector yet is not buried: its words stand in for what it means.
func TestAToolWithoutAVectorIsFoundByItsWords(t *testing.T) {
	tools := office(t)
	vectors, of := meaningful(tools)
	delete(vectors.ByTool, "weather.current")
	other := 0
	for i, tool := range tools {
		if tool.ID == "weather.alerts" {
			other = i
		}
	}
	matches := ranker(tools).WithVectors(vectors).Search(Query{Read: Read("get the current weather").WithVector(of(other)), Limit: 5}).Matches
	if place(matches, "weather.current") != 0 {
		t.Errorf("found %v", found(matches))
	}
}

// Vectors that cannot be compared change nothing: too few, of another dimension, all the same, none.
func TestVectorsThatTellNothing(t *testing.T) {
	tools := office(t)
	r := ranker(tools)
	text := Read("get the weather")
	want := found(r.Search(Query{Read: text, Limit: 5}).Matches)
	vectors, of := meaningful(tools)
	few := &Vectors{ByTool: map[id.Tool][]float32{"weather.current": vectors.ByTool["weather.current"]}}
	same := &Vectors{ByTool: map[id.Tool][]float32{}}
	for _, tool := range tools {
		same.ByTool[tool.ID] = vectors.ByTool[tools[0].ID]
	}
	for name, one := range map[string]struct {
		vectors *Vectors
		request []float32
	}{"few": {few, of(0)}, "same": {same, of(0)}, "another dimension": {vectors, []float32{1, 0}}, "no request": {vectors, nil}, "none": {nil, of(0)}, "empty": {&Vectors{}, of(0)}} {
		got := r.WithVectors(one.vectors).Search(Query{Read: text.WithVector(one.request), Limit: 5})
		if tools := found(got.Matches); len(tools) != len(want) || tools[0] != want[0] {
			t.Errorf("%s: %v, want %v", name, tools, want)
		}
		for _, m := range got.Matches {
			if m.Features.Meaning != 0 || math.IsNaN(m.Score) {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// Of a user's few private tools alone nothing can be told; beside shared ones, the one that is meant stands out.
func TestFewToolsAreComparedWithThoseBeside(t *testing.T) {
	tools, _, _ := world(200, 0)
	vectors, of := meaningful(tools)
	few := &Vectors{ByTool: map[id.Tool][]float32{}}
	for _, tool := range tools[:3] {
		few.ByTool[tool.ID] = vectors.ByTool[tool.ID]
	}
	r := ranker(tools).index.Beside(tools[:3])
	text := Read("qqqq wwww").WithVector(of(1))
	own := NewRanker(r, DefaultWeights())
	if result := own.WithVectors(few).Search(Query{Read: text, Limit: 3}); result.Fits || len(result.Matches) > 0 {
		t.Errorf("alone: %+v", result)
	}
	for _, tool := range tools[50:150] {
		few.Beside = append(few.Beside, vectors.ByTool[tool.ID])
	}
	result := own.WithVectors(few).Search(Query{Read: text, Limit: 3})
	if !result.Fits || result.Matches[0].Tool != tools[1].ID || len(result.Matches) != 1 {
		t.Errorf("beside others: %+v", result)
	}
	if result := own.WithVectors(few).Search(Query{Read: text.WithVector(of(77)), Limit: 3}); result.Fits {
		t.Errorf("what is beside is meant: %+v", result)
	}
}

func TestDot(t *testing.T) {
	for n := range 11 {
		a, b, want := make([]float32, n), make([]float32, n), float32(0)
		for i := range n {
			a[i], b[i] = float32(i+1), float32(2*i-3)
			want += a[i] * b[i]
		}
		if got := dot(a, b); got != want {
			t.Errorf("%d numbers: %v, want %v", n, got, want)
		}
	}
}

// BenchmarkMeaning compares a request with 5,000 tools.
func BenchmarkMeaning(b *testing.B) {
	tools, _, _ := world(5000, 0)
	random := rand.New(rand.NewPCG(3, 4))
	for _, dimensions := range []int{384, 1536} {
		v := &Vectors{ByTool: map[id.Tool][]float32{}}
		for i, tool := range tools {
			v.ByTool[tool.ID] = toward(i%dimensions, dimensions, random)
		}
		r := ranker(tools).WithVectors(v)
		text := Read("qqqq wwww").WithVector(toward(1, dimensions, random))
		b.Run(map[int]string{384: "dimensions=384", 1536: "dimensions=1536"}[dimensions], func(b *testing.B) {
			for b.Loop() {
				r.Search(Query{Read: text, Limit: 5})
			}
		})
	}
}
