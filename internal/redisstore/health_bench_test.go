package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// What an exchange of so many changed records takes, here and in Redis.
func BenchmarkHealthExchange(b *testing.B) {
	for _, records := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			ctx, client := testkit.Context(b), openFor(b, testkit.Redis(b))
			shared := NewHealth(client, 1, 20*time.Second)
			news, err := shared.Exchange(ctx, health.Exchange{})
			if err != nil {
				b.Fatal(err)
			}
			versions := make([]health.Version, records)
			for n := 0; b.Loop(); n++ {
				x := health.Exchange{Epoch: news.Epoch, Since: news.Version}
				for i := range records {
					stored := health.Stored{Subject: health.Subject{Tool: id.Tool(fmt.Sprintf("web_search.%d", i))}, Version: versions[i],
						Record: health.Record{Lack: 1 / float64(n+3), Latency: 123456789, Reported: time.Now()}}
					x.Offers = append(x.Offers, health.Offer{Stored: stored, Mark: fmt.Sprintf("%026d", n)})
				}
				if news, err = shared.Exchange(ctx, x); err != nil {
					b.Fatal(err)
				}
				copy(versions, news.Taken)
			}
			stats, err := client.Info(ctx, "commandstats").Result()
			if err != nil {
				b.Fatal(err)
			}
			_, after, _ := strings.Cut(stats, "cmdstat_evalsha:")
			_, after, _ = strings.Cut(after, "usec_per_call=")
			var us float64
			if _, err := fmt.Sscanf(after, "%g", &us); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(us, "redis-us/op")
			if records > 0 {
				bytes, err := client.MemoryUsage(ctx, shared.keys[0], 0).Result()
				versions, err2 := client.MemoryUsage(ctx, shared.keys[1], 0).Result()
				if err != nil || err2 != nil {
					b.Fatal(err, err2)
				}
				b.ReportMetric(float64(bytes+versions)/float64(records), "B/record")
			}
		})
	}
}
