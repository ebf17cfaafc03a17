package main

import (
	"fmt"
	"io"
)

// What is measured of calls.
const (
	callsFree     = "no quota"
	callsCounted  = "a USER quota"
	callsReported = "no quota, reported"
	callsSettled  = "a USER quota, reported"
)

// callsReport is what calls prints.
type callsReport struct {
	machine
	Users        int            `json:"users"`
	Connections  int            `json:"connections"`
	RoundSeconds float64        `json:"round_seconds"`
	Results      []*callsResult `json:"results"`
}

// callsResult is what was measured at one concurrency.
type callsResult struct {
	Concurrency int            `json:"concurrency"`
	Contenders  []*namedSeries `json:"contenders"`
	// FreeRatio is the throughput without quotas by that of the bare server, CountedRatio the time with a quota by that
	// of the script, each the median.
	FreeRatio    float64 `json:"free_to_bare"`
	CountedRatio float64 `json:"counted_to_script_time"`
}

func newCallsResult(concurrency int, contenders []contender) *callsResult {
	r := &callsResult{Concurrency: concurrency}
	for _, one := range contenders {
		r.Contenders = append(r.Contenders, &namedSeries{Name: one.name})
	}
	return r
}

// settle takes the medians and what follows from them.
func (r *callsResult) settle() {
	medians := map[string]measured{}
	for _, one := range r.Contenders {
		one.Median = medianOf(one.Rounds)
		medians[one.Name] = one.Median
	}
	r.FreeRatio = ratio(medians[callsFree].PerSecond, medians[bareEmpty].PerSecond)
	r.CountedRatio = ratio(medians[callsCounted].P50, medians[bareScript].P50)
}

func (r *callsReport) print(w io.Writer, output string) error {
	f := &findings{head: []any{"concurrent", "calls", "requests/s", "p50 ms", "p95 ms", "p99 ms", "requests", "errors"},
		remarks: []string{fmt.Sprintf("%d users, %d connections, rounds of %gs; %s.", r.Users, r.Connections, r.RoundSeconds, r.machine)}}
	for _, one := range r.Results {
		one.settle()
		for _, c := range one.Contenders {
			m := c.Median
			f.rows = append(f.rows, []any{one.Concurrency, c.Name, fmt.Sprintf("%.0f", m.PerSecond), decimal(m.P50), decimal(m.P95), decimal(m.P99), m.Requests, m.Errors})
		}
		f.rows = append(f.rows, []any{one.Concurrency, "no quota / bare gRPC, throughput", fmt.Sprintf("%.2f", one.FreeRatio), "", "", "", "", ""},
			[]any{one.Concurrency, "a USER quota / one script, time", "", fmt.Sprintf("%.2f", one.CountedRatio), "", "", "", ""})
	}
	return f.print(w, output, r)
}
