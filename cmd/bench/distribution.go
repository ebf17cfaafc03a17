package main

import (
	"math"
	"slices"
	"time"
)

// distribution is what is told of many delays.
type distribution struct {
	Count int     `json:"count"`
	Min   float64 `json:"min_ms"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// distributionOf is exact: a quantile is a delay that occurred.
func distributionOf(delays []time.Duration) distribution {
	if len(delays) == 0 {
		return distribution{}
	}
	sorted := slices.Sorted(slices.Values(delays))
	quantile := func(q float64) float64 {
		return milliseconds(sorted[int(math.Ceil(q*float64(len(sorted))))-1])
	}
	return distribution{len(sorted), milliseconds(sorted[0]), quantile(0.5), quantile(0.99), milliseconds(sorted[len(sorted)-1])}
}
