package main

import (
	"strings"
	"testing"
	"time"
)

func TestQuantilesAreDelaysThatOccurred(t *testing.T) {
	var delays []time.Duration
	for i := range 200 {
		delays = append(delays, time.Duration(200-i)*time.Millisecond)
	}
	if got, want := distributionOf(delays), (distribution{200, 1, 100, 198, 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := distributionOf(delays[:1]), (distribution{1, 200, 200, 200, 200}); got != want {
		t.Errorf("of one: %+v, want %+v", got, want)
	}
	if got := distributionOf(nil); got != (distribution{}) {
		t.Errorf("of none: %+v", got)
	}
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("the median of %v: %v, want %v", test.values, got, test.want)
		}
	}
}

func TestMemoryOfNoProcessIsNotTold(t *testing.T) {
	if got, err := resident(); got != 0 || err != nil || mebibytes(got) != "" {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := resident(1 << 30); err == nil || !strings.Contains(err.Error(), "--server-pid") {
		t.Errorf("a process that is not: %v", err)
	}
}
