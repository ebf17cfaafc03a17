package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// Names of the bare servers.
const (
	bareScript = "bare gRPC, one script"
	bareEmpty  = "bare gRPC"
)

// contender is one of those that are measured in turn.
type contender struct {
	name string
	ask  asker
}

// contest measures contenders in turn, round after round, at one concurrency, every other round backwards: whatever else
// the machine does, and however its speed drifts, hits each.
type contest struct {
	Concurrency int            `json:"concurrency"`
	Contenders  []*namedSeries `json:"contenders"`
	Comparisons []compared     `json:"comparisons"`
}

// namedSeries is a contender's rounds.
type namedSeries struct {
	Name string `json:"name"`
	series
}

// pair is a figure of one contender beside that of another.
type pair struct {
	name    string
	of, to  string
	figure  figure
	compare func(of, to float64) float64
}

// figure is one of those that are measured, and the column of tables in which it stands.
type figure struct {
	column int
	of     func(measured) float64
}

var (
	perSecond = figure{2, func(m measured) float64 { return m.PerSecond }}
	p50       = figure{3, func(m measured) float64 { return m.P50 }}
	p99       = figure{5, func(m measured) float64 { return m.P99 }}
)

// added compares times by what one takes more than the other.
func added(of, to float64) float64 { return of - to }

// compared is what comparing a pair showed: figures are compared within each round, since they drift together from one to
// the next.
type compared struct {
	Name          string  `json:"name"`
	Median        float64 `json:"median"`
	LowerQuartile float64 `json:"lower_quartile"`
	UpperQuartile float64 `json:"upper_quartile"`
	column        int
}

func (c compared) String() string {
	return fmt.Sprintf("%s (%s to %s)", decimal(c.Median), decimal(c.LowerQuartile), decimal(c.UpperQuartile))
}

// run measures so many rounds, of which the first has a number: no two rounds of a run have the same. It ends at the
// first error.
func (c *contest) run(ctx context.Context, p pace, contenders []contender, rounds, first int, log io.Writer) error {
	for _, one := range contenders {
		c.Contenders = append(c.Contenders, &namedSeries{Name: one.name})
	}
	for number := range rounds {
		for i := range contenders {
			if number%2 == 1 {
				i = len(contenders) - 1 - i
			}
			one := contenders[i]
			m, failed := p.round(ctx, one.ask, c.Concurrency, first+number*len(contenders)+i)
			c.Contenders[i].Rounds = append(c.Contenders[i].Rounds, m)
			fmt.Fprintf(log, "%d concurrent, round %d of %d, %s: %.0f requests/s\n", c.Concurrency, number+1, rounds, one.name, m.PerSecond)
			if err := ctx.Err(); err != nil {
				return err
			}
			if failed != nil {
				return fmt.Errorf("%s: %d requests failed, the first with: %w", one.name, m.Errors, failed)
			}
		}
	}
	return nil
}

// settle takes the medians, and compares pairs.
func (c *contest) settle(pairs []pair) {
	rounds := map[string][]measured{}
	for _, one := range c.Contenders {
		one.Median = medianOf(one.Rounds)
		rounds[one.Name] = one.Rounds
	}
	c.Comparisons = nil
	for _, one := range pairs {
		of, to := rounds[one.of], rounds[one.to]
		var values []float64
		for i := range min(len(of), len(to)) {
			values = append(values, one.compare(one.figure.of(of[i]), one.figure.of(to[i])))
		}
		lower, upper := quartiles(values)
		c.Comparisons = append(c.Comparisons, compared{one.name, median(values), lower, upper, one.figure.column})
	}
}

// quartiles are the medians of the lower and of the upper half, of both of which the middle value is one.
func quartiles(values []float64) (lower, upper float64) {
	sorted := slices.Sorted(slices.Values(values))
	half := (len(sorted) + 1) / 2
	return median(sorted[:half]), median(sorted[len(sorted)-half:])
}

// medians says what tables of contests tell.
const medians = "medians of rounds, and of what is compared within each, with quartiles"

// tableOf makes a table of contests, whose pairs are compared, of which contenders are called so.
func tableOf(contests []*contest, contenders string, pairs []pair) *findings {
	f := &findings{head: []any{"concurrent", contenders, "requests/s", "p50 ms", "p95 ms", "p99 ms", "requests", "errors"}}
	for _, one := range contests {
		one.settle(pairs)
		for _, c := range one.Contenders {
			m := c.Median
			f.rows = append(f.rows, []any{one.Concurrency, c.Name, fmt.Sprintf("%.0f", m.PerSecond), decimal(m.P50), decimal(m.P95), decimal(m.P99), m.Requests, m.Errors})
		}
		for _, c := range one.Comparisons {
			row := []any{one.Concurrency, c.Name, "", "", "", "", "", ""}
			row[c.column] = c.String()
			f.rows = append(f.rows, row)
		}
	}
	return f
}
