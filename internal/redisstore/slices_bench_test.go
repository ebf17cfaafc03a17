package redisstore

import (
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkSpend is by 64 callers, and tells how often Redis was asked.
func BenchmarkSpend(b *testing.B) {
	url, ctx := testkit.Redis(b), testkit.Context(b)
	rules := []quota.Limited{system(limited("minute", quota.UnitCalls, 1e12, fixed(time.Minute))),
		system(limited("day", quota.UnitTokens, 1e12, daily("Asia/Shanghai"))), system(limited("smooth", quota.UnitCalls, 1e12, bucketOf(1e6)))}
	for name, rules := range map[string][]quota.Limited{"one rule": rules[:1], "three rules": rules} {
		b.Run(name, func(b *testing.B) {
			s := newSlices(b, url)
			s.must(b, 1, rules...)
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := s.Spend(ctx, rules, costOf(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			r := s.find(&rules[0])
			r.mu.Lock()
			b.ReportMetric(float64(r.slice.sequence)/b.Elapsed().Seconds(), "requests/s")
			r.mu.Unlock()
		})
	}
}
