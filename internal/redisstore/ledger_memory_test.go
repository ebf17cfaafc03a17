package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// TestMemory logs what keys take in Redis, and fails if one takes far more than the documentation says.
func TestMemory(t *testing.T) {
	s := onRedis(t)
	const user, rule, name = "user-0123456789abcdef", "web_search.per_minute", "0194f3c2-5a1e-7c3b-9d55-0f6a2b7c8d9e"
	take := func(suffix string, lease time.Duration, window quota.Window) {
		o := operation(name+suffix, 1, lease, limited(rule, quota.UnitCalls, 1e6, window))
		o.User, o.Tool = user, "web_search.basic"
		s.mustTake(o)
	}
	size := func(what, part string, most int64) {
		t.Helper()
		ctx := testkit.Context(t)
		keys, err := s.client.Keys(ctx, "toolgrant:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if !strings.Contains(key, part) {
				continue
			}
			bytes, err := s.client.(*redis.Client).MemoryUsage(ctx, key, 0).Result()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-40s %5d bytes: %s", what, bytes, key)
			if bytes > most {
				t.Errorf("more than %d", most)
			}
		}
		if err := s.client.FlushDB(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		s.set(s.now)
	}
	take("", 0, fixed(time.Minute))
	size("a minute, one slot", ":c:", 350)
	for i := range 61 {
		take(numbered("-", i), 0, fixed(time.Minute))
		s.advance(time.Second)
	}
	size("a minute, all slots", ":c:", 800)
	take("", 0, daily("Asia/Shanghai"))
	size("a day", ":c:", 350)
	take("", 0, bucketOf(2.5))
	size("a bucket", ":c:", 350)
	take("", 0, fixed(time.Minute))
	size("an operation that consumed", ":o:", 300)
	for _, part := range []string{":o:", ":l:", "{op:"} {
		take("", time.Minute, fixed(time.Minute))
		size("a reservation", part, 600)
	}
}
