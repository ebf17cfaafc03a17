package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// patience is how long calls in flight may take when a round is over.
const patience = time.Minute

// target is a server that is measured.
type target []toolgrantv1.EntitlementServiceClient // one per connection

// pace is how long a round is.
type pace struct{ warmup, duration time.Duration }

// asker returns what the worker of a number does again and again. Workers are numbered anew for each run.
type asker func(worker, run int) func(context.Context) error

// plan is which questions targets are asked.
type plan struct {
	pace
	world       *world
	questions   []*toolgrantv1.ResolveToolsRequest
	zipf, cold  bool
	consistency *toolgrantv1.Consistency // of cold questions
}

// measured is what a round, or the median of several, showed.
type measured struct {
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Requests  int64   `json:"requests"`
	Errors    int64   `json:"errors"`
}

// round lets so many workers ask, each one question after the other, first unmeasured. Rounds of one number ask the
// same. It also returns the first error.
func (p pace) round(ctx context.Context, ask asker, concurrency, number int) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, p.warmup+p.duration+patience)
	defer cancel()
	work(ctx, ask, concurrency, 2*number, p.warmup)
	start := time.Now()
	workers := work(ctx, ask, concurrency, 2*number+1, p.duration)
	elapsed := time.Since(start)

	var m measured
	var first error
	all := newHistogram()
	for _, w := range workers {
		all.Merge(w.latencies)
		m.Errors += w.errors
		if first == nil {
			first = w.firstError
		}
	}
	m.Requests = all.TotalCount()
	m.PerSecond = float64(m.Requests) / elapsed.Seconds()
	quantile := func(q float64) float64 { return milliseconds(time.Duration(all.ValueAtQuantile(q))) }
	m.P50, m.P95, m.P99 = quantile(50), quantile(95), quantile(99)
	return m, first
}

// worker is what one of the askers saw.
type worker struct {
	latencies  *hdrhistogram.Histogram // of the answers
	errors     int64
	firstError error
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(10*time.Minute), 3)
}

// work lets workers ask for some time, each at least once.
func work(ctx context.Context, ask asker, concurrency, number int, duration time.Duration) []worker {
	workers := make([]worker, concurrency)
	end := time.Now().Add(duration)
	var group sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.latencies = newHistogram()
		one := ask(i, number)
		group.Go(func() {
			for again := true; again; again = time.Now().Before(end) && ctx.Err() == nil {
				start := time.Now()
				if err := one(ctx); err != nil {
					if w.errors++; w.firstError == nil {
						w.firstError = err
					}
					continue
				}
				// It cannot fail: the context ends long before the histogram's range does.
				_ = w.latencies.RecordValue(int64(time.Since(start)))
			}
		})
	}
	group.Wait()
	return workers
}

// asking asks a target the plan's questions. Runs of one number ask the same ones in the same order, whatever the
// target.
func (p *plan) asking(t target) asker {
	return func(worker, number int) func(context.Context) error {
		client, next := t[worker%len(t)], p.chooser(number<<16+worker)
		return func(ctx context.Context) error {
			_, err := client.ResolveTools(ctx, next())
			return err
		}
	}
}

// chooser returns what draws a worker's questions: each as often as the others, or by Zipf's law; cold ones
// out of all that the world has, so that hardly any is asked twice.
func (p *plan) chooser(sequence int) func() *toolgrantv1.ResolveToolsRequest {
	r := p.world.random(kindRound, sequence)
	if p.cold {
		return func() *toolgrantv1.ResolveToolsRequest {
			q := p.world.question(r)
			q.Consistency = p.consistency
			return q
		}
	}
	if p.zipf && len(p.questions) > 1 {
		z := rand.NewZipf(r, 1.1, 1, uint64(len(p.questions)-1))
		return func() *toolgrantv1.ResolveToolsRequest { return p.questions[z.Uint64()] }
	}
	return func() *toolgrantv1.ResolveToolsRequest { return p.questions[r.IntN(len(p.questions))] }
}
