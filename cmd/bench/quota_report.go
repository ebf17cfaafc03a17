package main

import (
	"fmt"
	"io"
)

// Names of the bare servers.
const (
	bareScript = "bare gRPC, one script"
	bareEmpty  = "bare gRPC"
)

// quotaReport is what quota prints.
type quotaReport struct {
	machine
	Users        int            `json:"users"`
	Connections  int            `json:"connections"`
	RoundSeconds float64        `json:"round_seconds"`
	Results      []*quotaResult `json:"results"`
}

// quotaResult is what was measured at one concurrency.
type quotaResult struct {
	Concurrency int            `json:"concurrency"`
	Contenders  []*namedSeries `json:"contenders"`
	// Throughputs divided: a USER rule by the script, three rules by the USER rule, a SYSTEM rule by nothing at all.
	UserRatio   float64 `json:"user_to_script"`
	ThreeRatio  float64 `json:"three_to_user"`
	SystemRatio float64 `json:"system_to_empty"`
}

type namedSeries struct {
	Name string `json:"name"`
	series
}

func newQuotaResult(concurrency int, contenders []contender) *quotaResult {
	r := &quotaResult{Concurrency: concurrency}
	for _, one := range contenders {
		r.Contenders = append(r.Contenders, &namedSeries{Name: one.name})
	}
	return r
}

// settle takes the medians and what follows from them.
func (r *quotaResult) settle() {
	perSecond := map[string]float64{}
	for _, one := range r.Contenders {
		one.Median = medianOf(one.Rounds)
		perSecond[one.Name] = one.Median.PerSecond
	}
	r.UserRatio = ratio(perSecond["user"], perSecond[bareScript])
	r.ThreeRatio = ratio(perSecond["user, node, system"], perSecond["user"])
	r.SystemRatio = ratio(perSecond["system"], perSecond[bareEmpty])
}

func (r *quotaReport) print(w io.Writer, output string) error {
	f := &findings{head: []any{"concurrent", "rules", "requests/s", "p50 ms", "p95 ms", "p99 ms", "requests", "errors"},
		remarks: []string{fmt.Sprintf("%d users, %d connections, rounds of %gs; %s.", r.Users, r.Connections, r.RoundSeconds, r.machine)}}
	for _, one := range r.Results {
		one.settle()
		for _, c := range one.Contenders {
			m := c.Median
			f.rows = append(f.rows, []any{one.Concurrency, c.Name, fmt.Sprintf("%.0f", m.PerSecond), decimal(m.P50), decimal(m.P95), decimal(m.P99), m.Requests, m.Errors})
		}
		for _, share := range []struct {
			what  string
			ratio float64
		}{{"user / one script", one.UserRatio}, {"three / user", one.ThreeRatio}, {"system / bare gRPC", one.SystemRatio}} {
			f.rows = append(f.rows, []any{one.Concurrency, share.what, fmt.Sprintf("%.2f", share.ratio), "", "", "", "", ""})
		}
	}
	return f.print(w, output, r)
}
