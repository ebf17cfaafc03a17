package discovery

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// world makes tools of invented words, frequent and rare ones as in a language, and requests for them.
func world(tools, requests int) ([]Tool, []Request, []string) {
	random := rand.New(rand.NewPCG(1, 2))
	syllables := strings.Fields("ba ce di fo gu ka le mi no pu ra se ti vo zu sha the tri plo gan")
	vocabulary := make([]string, 8000)
	for i := range vocabulary {
		for range 2 + random.IntN(3) {
			vocabulary[i] += syllables[random.IntN(len(syllables))]
		}
	}
	frequent := rand.NewZipf(random, 1.1, 8, uint64(len(vocabulary)-1))
	text := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = vocabulary[frequent.Uint64()]
		}
		return strings.Join(words, " ")
	}
	all := make([]Tool, tools)
	for i := range all {
		all[i] = Tool{ID: id.Tool(fmt.Sprintf("tool-%05d", i)), Name: strings.ReplaceAll(text(3), " ", "_"), Descriptions: []string{text(18)}, Category: text(2)}
		for range 5 {
			all[i].Parameters = append(all[i].Parameters, Parameter{text(1), text(8)})
		}
	}
	ask := func(tool *Tool) string {
		words := strings.Fields(tool.Descriptions[0] + " " + strings.ReplaceAll(tool.Name, "_", " "))
		return text(12) + ". " + words[random.IntN(len(words))] + " " + words[random.IntN(len(words))] + " " + text(6)
	}
	past := make([]Request, requests)
	for i := range past {
		tool := &all[random.IntN(tools)]
		past[i] = remembered(ask(tool), tool.ID)
	}
	queries := make([]string, 500)
	for i := range queries {
		queries[i] = ask(&all[random.IntN(tools)])
	}
	return all, past, queries
}

// BenchmarkSearch searches among so many tools with so many past requests, in requests of 20 words.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []struct{ tools, past int }{{1_000, 10_000}, {5_000, 0}, {5_000, 20_000}, {5_000, 65_536}, {50_000, 65_536}} {
		b.Run(fmt.Sprintf("tools=%d/past=%d", size.tools, size.past), func(b *testing.B) {
			tools, past, queries := world(size.tools, size.past)
			r := ranker(tools, past...)
			took := make([]time.Duration, 0, 1<<16)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				began := time.Now()
				r.Search(Query{Text: queries[i%len(queries)], Limit: 5, Reasons: true})
				took = append(took, time.Since(began))
				i++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkSearchLong searches for the longest requests that are looked at, and longer ones.
func BenchmarkSearchLong(b *testing.B) {
	tools, past, queries := world(5_000, 65_536)
	r := ranker(tools, past...)
	text := strings.Join(queries[:300], ". ")
	for b.Loop() {
		r.Search(Query{Text: text, Limit: 5, Reasons: true})
	}
}

// BenchmarkIndex makes an index, and tells how much memory it takes.
func BenchmarkIndex(b *testing.B) {
	for _, size := range []int{1_000, 5_000, 50_000} {
		b.Run(fmt.Sprintf("tools=%d", size), func(b *testing.B) {
			tools, _, _ := world(size, 0)
			var index *Index
			before := heap()
			for b.Loop() {
				index = NewIndex(tools)
			}
			b.ReportMetric((heap()-before)/1024/float64(size)*1000, "KiB/1000-tools")
			runtime.KeepAlive(index)
		})
	}
}

// BenchmarkChange changes one tool and makes it searchable.
func BenchmarkChange(b *testing.B) {
	for _, size := range []int{5_000, 50_000} {
		b.Run(fmt.Sprintf("tools=%d", size), func(b *testing.B) {
			tools, _, _ := world(size, 0)
			index, w := NewIndex(tools), DefaultWeights()
			i := 0
			for b.Loop() {
				changed := tools[i%size]
				changed.Descriptions = []string{fmt.Sprintf("changed %d times", i)}
				index = index.With([]Tool{changed}, nil)
				NewRanker(index, w)
				i++
			}
		})
	}
}

// BenchmarkHistory makes past requests ready.
func BenchmarkHistory(b *testing.B) {
	_, past, _ := world(5_000, 65_536)
	w := DefaultWeights()
	var h *History
	before := heap()
	for b.Loop() {
		h = NewHistory(past, &w.Learned, DefaultHistoryLimits())
	}
	b.ReportMetric((heap()-before)/1024/float64(len(past))*1000, "KiB/1000-requests")
	runtime.KeepAlive(h)
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkSearchParallel searches on all processors at a time.
func BenchmarkSearchParallel(b *testing.B) {
	tools, past, queries := world(5_000, 20_000)
	r := ranker(tools, past...)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			r.Search(Query{Text: queries[i%len(queries)], Limit: 5, Reasons: true})
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "searches/s")
}
