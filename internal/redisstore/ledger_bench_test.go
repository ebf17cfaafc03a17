package redisstore

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkTake compares consuming with the least that a limit in Redis takes: a script that counts, each on a
// connection of its own, or together as the ledger does it.
func BenchmarkTake(b *testing.B) {
	client := openFor(b, testkit.Redis(b))
	ctx := testkit.Context(b)
	l := NewLedger(client, 1, 20*time.Second)
	var number atomic.Int64
	run := func(name string, one func(n int64) error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if err := one(number.Add(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	bare := redis.NewScript(`local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], ARGV[1]) return n`)
	if err := bare.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	run("bare script alone", func(n int64) error {
		return bare.Run(ctx, client, []string{"bare" + strconv.FormatInt(n%1000, 10)}, 60000).Err()
	})
	run("bare script", func(n int64) error {
		return l.process(ctx, redis.NewCmd(ctx, "EVALSHA", bare.Hash(), 1, "bare"+strconv.FormatInt(n%1000, 10), 60000))
	})
	rules := []quota.Limited{limited("minute", quota.UnitCalls, 1e9, fixed(time.Minute)),
		limited("month", quota.UnitTokens, 1e12, daily("Asia/Shanghai")), limited("smooth", quota.UnitCalls, 1e9, bucketOf(1e6))}
	take := func(rules []quota.Limited) func(int64) error {
		return func(n int64) error {
			o := operation("o"+strconv.FormatInt(n, 10), 1, 0, rules...)
			o.User = id.User("u" + strconv.FormatInt(n%1000, 10))
			_, err := l.Take(ctx, o)
			return err
		}
	}
	reserve := func(rules []quota.Limited) func(int64) error {
		return func(n int64) error {
			o := operation("r"+strconv.FormatInt(n, 10), 1, time.Minute, rules...)
			o.User = id.User("u" + strconv.FormatInt(n%1000, 10))
			_, err := l.Take(ctx, o)
			return err
		}
	}
	run("reserve one rule", reserve(rules[:1]))
	run("one rule", take(rules[:1]))
	run("two rules", take(rules[:2]))
	run("three rules", take(rules))
}
