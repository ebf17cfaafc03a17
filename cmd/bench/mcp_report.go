package main

import (
	"fmt"
	"io"
)

// What is measured of MCP.
const (
	mcpDirectCall = "tools/call, directly"
	mcpDirectList = "tools/list, directly"
	mcpCall       = "tools/call, Toolgrant"
	mcpList       = "tools/list, Toolgrant"
)

// mcpReport is what mcp prints.
type mcpReport struct {
	machine
	Protocol     string       `json:"protocol"`
	Functions    int          `json:"functions"`
	RoundSeconds float64      `json:"round_seconds"`
	Results      []*mcpResult `json:"results"`
}

// mcpResult is what was measured at one concurrency.
type mcpResult struct {
	Concurrency int            `json:"concurrency"`
	Contenders  []*namedSeries `json:"contenders"`
	// Added is what Toolgrant adds to the time of a call, in milliseconds; CallRatio is the throughput through it by that
	// without it. All of medians.
	AddedP50  float64 `json:"added_p50_ms"`
	AddedP99  float64 `json:"added_p99_ms"`
	CallRatio float64 `json:"calls_to_direct"`
	ListRatio float64 `json:"lists_to_direct"`
}

func newMCPResult(concurrency int, contenders []contender) *mcpResult {
	r := &mcpResult{Concurrency: concurrency}
	for _, one := range contenders {
		r.Contenders = append(r.Contenders, &namedSeries{Name: one.name})
	}
	return r
}

// settle takes the medians and what follows from them.
func (r *mcpResult) settle() {
	medians := map[string]measured{}
	for _, one := range r.Contenders {
		one.Median = medianOf(one.Rounds)
		medians[one.Name] = one.Median
	}
	r.AddedP50, r.AddedP99 = medians[mcpCall].P50-medians[mcpDirectCall].P50, medians[mcpCall].P99-medians[mcpDirectCall].P99
	r.CallRatio = ratio(medians[mcpCall].PerSecond, medians[mcpDirectCall].PerSecond)
	r.ListRatio = ratio(medians[mcpList].PerSecond, medians[mcpDirectList].PerSecond)
}

func (r *mcpReport) print(w io.Writer, output string) error {
	f := &findings{head: []any{"concurrent", "request", "requests/s", "p50 ms", "p95 ms", "p99 ms", "requests", "errors"},
		remarks: []string{fmt.Sprintf("%d of %d functions are listed, protocol %s, rounds of %gs; %s.", mcpGiven, r.Functions, r.Protocol, r.RoundSeconds, r.machine)}}
	for _, one := range r.Results {
		one.settle()
		for _, c := range one.Contenders {
			m := c.Median
			f.rows = append(f.rows, []any{one.Concurrency, c.Name, fmt.Sprintf("%.0f", m.PerSecond), decimal(m.P50), decimal(m.P95), decimal(m.P99), m.Requests, m.Errors})
		}
		f.rows = append(f.rows, []any{one.Concurrency, "a call: throughput by that of direct ones, time that is added", fmt.Sprintf("%.2f", one.CallRatio), decimal(one.AddedP50), "", decimal(one.AddedP99), "", ""},
			[]any{one.Concurrency, "a list: throughput by that of direct ones", fmt.Sprintf("%.2f", one.ListRatio), "", "", "", "", ""})
	}
	return f.print(w, output, r)
}
