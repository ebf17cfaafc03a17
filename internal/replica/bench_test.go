package replica_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// How long it takes from the commit of a change of one tool until questions are answered with it, in a big
// catalogue: ns/op. edit-ms is what the write itself takes.
func BenchmarkOneToolChanged(b *testing.B) {
	ctx := testkit.Context(b)
	m := join(b, testkit.Database(b), nil)
	const tools, deviceTypes, avatars = 5000, 1000, 1000
	some := func(n, seed int) []id.Tool {
		picked := make([]id.Tool, n)
		for i := range picked {
			picked[i] = id.Tool(fmt.Sprint("t", (seed*7+i*13)%tools))
		}
		return picked
	}
	var w admin.Manifest
	w.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}
	for i := range tools {
		tool := titled(i, "a title")
		tool.Description = fmt.Sprintf("What tool %d does, when to use it, and what it takes, in a sentence or two of the usual length.", i)
		w.Tools = append(w.Tools, tool)
	}
	for i := range deviceTypes {
		w.DeviceTypes = append(w.DeviceTypes, availability.DeviceType{ID: id.DeviceType(fmt.Sprint("type-", i)), Tools: some(200, i)})
	}
	for i := range avatars {
		w.Avatars = append(w.Avatars, enable.Avatar{ID: id.Avatar(fmt.Sprint("avatar-", i)), Tools: some(30, i)})
	}
	w.Users = []availability.User{{ID: "u0"}}
	m.edit(ctx, b, w)
	catchUp(ctx, b, m)

	var editing time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		n++
		m.edit(ctx, b, admin.Manifest{Definitions: effective.Definitions{Tools: []catalog.Tool{titled(n%tools, fmt.Sprint("title ", n))}}})
		editing += time.Since(start)
		b.StartTimer()
		catchUp(ctx, b, m)
	}
	b.ReportMetric(float64(editing.Milliseconds())/float64(n), "edit-ms")
}

// What a question costs whose facts are in memory.
func BenchmarkWarmFacts(b *testing.B) {
	ctx := testkit.Context(b)
	m := join(b, testkit.Database(b), nil)
	small(ctx, b, m)
	catchUp(ctx, b, m)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
