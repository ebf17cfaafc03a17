package grpcserver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// BenchmarkSearchTools searches among 5,000 tools of invented words with 20,000 past requests of 500 users, over gRPC, one
// and eight at a time.
func BenchmarkSearchTools(b *testing.B) {
	const tools = 5000
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		for range 2 + random.IntN(3) {
			words[i] += strings.Fields("ba ce di fo gu ka le mi no pu ra se ti vo zu")[random.IntN(15)]
		}
	}
	frequent := rand.NewZipf(random, 1.1, 8, uint64(len(words)-1))
	text := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = words[frequent.Uint64()]
		}
		return strings.Join(list, " ")
	}
	m := &v1.Manifest{ToolTypes: []*v1.ToolType{{ToolTypeId: "plain", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}}, DeviceTypes: []*v1.DeviceType{{DeviceTypeId: "phone"}},
		Users: []*v1.User{{UserId: "ann", Devices: []*v1.Device{{DeviceId: "p", DeviceTypeId: "phone"}}}}}
	for i := range tools {
		tool := &v1.Tool{ToolId: fmt.Sprintf("t%05d", i), ToolTypeId: "plain", Name: strings.ReplaceAll(text(3), " ", "_"), Description: text(50)}
		m.Tools, m.DeviceTypes[0].ToolIds = append(m.Tools, tool), append(m.DeviceTypes[0].ToolIds, tool.GetToolId())
	}
	uses := make([]learning.Use, 20_000)
	for i := range uses {
		tool := m.GetTools()[random.IntN(tools)]
		uses[i] = learning.Use{Call: id.Call(fmt.Sprint(i)), User: id.User(fmt.Sprintf("u%d", i%500)), Tool: id.Tool(tool.GetToolId()), Time: time.Now(),
			Features: discovery.FeaturesOf(text(8) + " " + strings.Join(strings.Fields(tool.GetDescription())[:4], " "))}
	}
	weights := discovery.DefaultWeights()
	learned := learning.Learn(uses, weights.Learned, time.Now())
	ctx := testkit.Context(b)
	n := node.Start(b, testkit.Database(b), node.Options{Learning: true,
		Discovery: grpcserver.DiscoveryOptions{Shelf: finder.NewShelf(weights, func() finder.Learned { return learned })}})
	if _, err := v1.NewAdminServiceClient(n.Conn).ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: m}); err != nil {
		b.Fatal(err)
	}
	queries := make([]string, 500)
	for i := range queries {
		queries[i] = text(10)
	}
	search := func(i int) {
		if _, err := v1.NewDiscoveryServiceClient(n.Conn).SearchTools(ctx, &v1.SearchToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Query: queries[i%len(queries)]}); err != nil {
			b.Error(err)
		}
	}
	search(0)
	for _, concurrent := range []int{1, 8} {
		b.Run(fmt.Sprintf("concurrent=%d", concurrent), func(b *testing.B) {
			took := make([][]time.Duration, concurrent)
			spent := cpuTime(b)
			var wait sync.WaitGroup
			for worker := range concurrent {
				wait.Go(func() {
					for i := worker; i < b.N; i += concurrent {
						began := time.Now()
						search(i)
						took[worker] = append(took[worker], time.Since(began))
					}
				})
			}
			wait.Wait()
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)*95/100].Microseconds()), "p95-µs")
			b.ReportMetric(float64((cpuTime(b)-spent).Microseconds())/float64(b.N), "cpu-µs/search")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "searches/s")
		})
	}
}

// cpuTime is what this process, which is client and server, has used of all processors: other than a clock, it hardly
// depends on what else the machine does.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
