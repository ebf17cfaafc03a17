package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
)

// machine is where something was measured.
type machine struct {
	CPUs      int    `json:"cpus"`
	Platform  string `json:"platform"`
	GoVersion string `json:"go_version"`
}

func thisMachine() machine {
	return machine{runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
}

func (m machine) String() string {
	return fmt.Sprintf("%d CPUs, %s, %s", m.CPUs, m.Platform, m.GoVersion)
}

// report is what resolve prints.
type report struct {
	machine
	Questions       int     `json:"questions"`
	MeanAnswerBytes int     `json:"mean_answer_bytes"`
	Connections     int     `json:"connections"`
	RoundSeconds    float64 `json:"round_seconds"`
	Zipf            bool    `json:"zipf"`
	Cold            bool    `json:"cold"`
	FullyConsistent bool    `json:"fully_consistent"`
	// Bare says what the bare server does for an answer.
	Bare    string    `json:"bare"`
	Results []*result `json:"results"`
}

// result is what was measured at one concurrency.
type result struct {
	Concurrency int    `json:"concurrency"`
	Server      series `json:"server"`
	Bare        series `json:"bare"`
	// The server's medians divided by the bare server's.
	ThroughputRatio float64 `json:"throughput_ratio"`
	P50Ratio        float64 `json:"p50_ratio"`
	P99Ratio        float64 `json:"p99_ratio"`
	// ResidentBytes is the servers' memory after the rounds; 0: not known.
	ResidentBytes int64 `json:"server_resident_bytes"`
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
	bare := "answers from memory"
	if c.databaseURL != "" {
		bare = "SELECT 1 for each answer"
	}
	return &report{machine: thisMachine(), Questions: len(exchanges), MeanAnswerBytes: bytes / len(exchanges), Connections: c.connections,
		RoundSeconds: c.duration.Seconds(), Zipf: c.zipf, Cold: c.cold, FullyConsistent: c.fullyConsistent, Bare: bare}
}

// median returns the middle one; between two, the mean of them; of nothing, 0.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// medianOf returns the median of each figure; counts are summed up.
func medianOf(rounds []measured) measured {
	of := func(figure func(measured) float64) float64 {
		var values []float64
		for _, m := range rounds {
			values = append(values, figure(m))
		}
		return median(values)
	}
	all := measured{
		PerSecond: of(func(m measured) float64 { return m.PerSecond }),
		P50:       of(func(m measured) float64 { return m.P50 }),
		P95:       of(func(m measured) float64 { return m.P95 }),
		P99:       of(func(m measured) float64 { return m.P99 }),
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
		one.P50Ratio = ratio(one.Server.Median.P50, one.Bare.Median.P50)
		one.P99Ratio = ratio(one.Server.Median.P99, one.Bare.Median.P99)
	}
	f := &findings{head: []any{"CONCURRENT", "SERVER", "REQUESTS/S", "P50 MS", "P95 MS", "P99 MS", "REQUESTS", "ERRORS", "ANSWER BYTES", "MEMORY"}}
	for _, one := range r.Results {
		for _, s := range []struct {
			name, memory string
			m            measured
		}{{"toolgrant", mebibytes(one.ResidentBytes), one.Server.Median}, {"bare gRPC", "", one.Bare.Median}} {
			f.rows = append(f.rows, []any{one.Concurrency, s.name, fmt.Sprintf("%.0f", s.m.PerSecond), decimal(s.m.P50), decimal(s.m.P95),
				decimal(s.m.P99), s.m.Requests, s.m.Errors, r.MeanAnswerBytes, s.memory})
		}
		f.rows = append(f.rows, []any{one.Concurrency, "ratio", fmt.Sprintf("%.3f", one.ThroughputRatio), decimal(one.P50Ratio), "",
			decimal(one.P99Ratio), "", "", "", ""})
	}
	questions := "questions, asked again and again"
	if r.Cold {
		questions = "of all questions tried before, then any"
	}
	f.remarks = []string{fmt.Sprintf("%d %s; bytes of answers are the average; %d connections, medians of rounds of %v s; bare gRPC: %s; %v",
		r.Questions, questions, r.Connections, r.RoundSeconds, r.Bare, r.machine)}
	return f.print(w, output, r)
}
