package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// report is what resolve prints.
type report struct {
	CPUs            int       `json:"cpus"`
	Platform        string    `json:"platform"`
	GoVersion       string    `json:"go_version"`
	Questions       int       `json:"questions"`
	MeanAnswerBytes int       `json:"mean_answer_bytes"`
	Connections     int       `json:"connections"`
	RoundSeconds    float64   `json:"round_seconds"`
	Zipf            bool      `json:"zipf"`
	Results         []*result `json:"results"`
}

// result is what was measured at one concurrency.
type result struct {
	Concurrency int    `json:"concurrency"`
	Server      series `json:"server"`
	Bare        series `json:"bare"`
	// The server's medians divided by the bare server's.
	ThroughputRatio float64 `json:"throughput_ratio"`
	P99Ratio        float64 `json:"p99_ratio"`
}

// series is a server's rounds.
type series struct {
	Median measured   `json:"median"`
	Rounds []measured `json:"rounds"`
}

func newReport(c *comparison, exchanges []exchange) *report {
	bytes := 0
	for _, e := range exchanges {
		bytes += len(e.Answer)
	}
	return &report{CPUs: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH, GoVersion: runtime.Version(),
		Questions: len(exchanges), MeanAnswerBytes: bytes / len(exchanges), Connections: c.connections,
		RoundSeconds: c.duration.Seconds(), Zipf: c.zipf}
}

// medianOf returns the median of each figure; counts are summed up.
func medianOf(rounds []measured) measured {
	median := func(figure func(measured) float64) float64 {
		var values []float64
		for _, m := range rounds {
			values = append(values, figure(m))
		}
		slices.Sort(values)
		n := len(values)
		if n == 0 {
			return 0
		}
		return (values[(n-1)/2] + values[n/2]) / 2
	}
	all := measured{
		PerSecond: median(func(m measured) float64 { return m.PerSecond }),
		P50:       median(func(m measured) float64 { return m.P50 }),
		P95:       median(func(m measured) float64 { return m.P95 }),
		P99:       median(func(m measured) float64 { return m.P99 }),
	}
	for _, m := range rounds {
		all.Requests += m.Requests
		all.Errors += m.Errors
	}
	return all
}

// ratio is 0 where there is nothing to divide by: JSON knows no infinity.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (r *report) print(w io.Writer, output string) error {
	for _, one := range r.Results {
		one.Server.Median, one.Bare.Median = medianOf(one.Server.Rounds), medianOf(one.Bare.Rounds)
		one.ThroughputRatio = ratio(one.Server.Median.PerSecond, one.Bare.Median.PerSecond)
		one.P99Ratio = ratio(one.Server.Median.P99, one.Bare.Median.P99)
	}
	if output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"CONCURRENT", "SERVER", "REQUESTS/S", "P50 MS", "P95 MS", "P99 MS", "REQUESTS", "ERRORS"})
	for _, one := range r.Results {
		for _, s := range []struct {
			name   string
			median measured
		}{{"toolgrant", one.Server.Median}, {"bare gRPC", one.Bare.Median}} {
			m := s.median
			t.AppendRow(table.Row{one.Concurrency, s.name, fmt.Sprintf("%.0f", m.PerSecond), fmt.Sprintf("%.2f", m.P50),
				fmt.Sprintf("%.2f", m.P95), fmt.Sprintf("%.2f", m.P99), m.Requests, m.Errors})
		}
		t.AppendRow(table.Row{one.Concurrency, "ratio", fmt.Sprintf("%.3f", one.ThroughputRatio), "", "", fmt.Sprintf("%.2f", one.P99Ratio), "", ""})
	}
	t.Render()
	_, err := fmt.Fprintf(w, "%d questions, answers of %d bytes on average, %d connections, medians of rounds of %v s, %d CPUs, %s, %s\n",
		r.Questions, r.MeanAnswerBytes, r.Connections, r.RoundSeconds, r.CPUs, r.Platform, r.GoVersion)
	return err
}
