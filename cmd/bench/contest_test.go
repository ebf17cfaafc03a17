package main

import "testing"

// TestFiguresAreComparedWithinRounds: what hits both of a round does not change how one stands beside the other.
func TestFiguresAreComparedWithinRounds(t *testing.T) {
	rounds := func(perSecond ...float64) (s series) {
		for _, n := range perSecond {
			s.Rounds = append(s.Rounds, measured{PerSecond: n, P50: 1000 / n})
		}
		return s
	}
	c := &contest{Contenders: []*namedSeries{{"mine", rounds(50, 400, 20, 30)}, {"theirs", rounds(100, 500, 100, 40)}}}
	c.settle([]pair{{"throughput", "mine", "theirs", perSecond, ratio}, {"time", "mine", "theirs", p50, added}})
	got := c.Comparisons[0] // of 0.5, 0.8, 0.2, 0.75
	if got.Median != 0.625 || got.LowerQuartile != 0.35 || got.UpperQuartile != 0.775 {
		t.Errorf("throughput: %+v", got)
	}
	if got := c.Comparisons[1].Median; got < 9.165 || got > 9.168 { // of 10, 0.5, 40, 8.33
		t.Errorf("time: %v", got)
	}
}

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		values       []float64
		lower, upper float64
	}{{nil, 0, 0}, {[]float64{3}, 3, 3}, {[]float64{4, 2}, 2, 4}, {[]float64{5, 1, 4, 2, 3}, 2, 4}, {[]float64{1, 2, 3, 4}, 1.5, 3.5}} {
		if lower, upper := quartiles(c.values); lower != c.lower || upper != c.upper {
			t.Errorf("of %v: %v and %v", c.values, lower, upper)
		}
	}
}
