package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestTrafficIsCounted(t *testing.T) {
	t.Run("redis", func(t *testing.T) { countTraffic(t, testkit.Redis(t)) })
	t.Run("cluster", func(t *testing.T) { countTraffic(t, testkit.RedisCluster(t).URL) })
}

func countTraffic(t *testing.T, url string) {
	ctx := testkit.Context(t)
	if err := openFor(t, url).ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	client := openFor(t, url)
	traffic := NewTraffic(client)
	if err := client.Ping(ctx).Err(); err != nil { // and what begins a connection
		t.Fatal(err)
	}
	begin := traffic.Stats()
	want := func(commands, failures uint64) {
		t.Helper()
		got := traffic.Stats()
		if got.Commands-begin.Commands != commands || got.Failures != failures || got.Pool.TotalConns == 0 {
			t.Errorf("got %+v, want %d commands, %d failures", got, commands, failures)
		}
	}
	// Not there, and a script that is not known: EVALSHA, EVAL.
	if err := client.Get(ctx, "toolgrant:x").Err(); err != redis.Nil {
		t.Fatal(err)
	}
	must(t)(NewLedger(client, 1, 20*time.Second).Take(ctx, operation("a", 1, 0, limited("r", quota.UnitCalls, 10, fixed(time.Hour)))))
	want(3, 0)
	if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "toolgrant:x", "text", 0)
		p.Incr(ctx, "toolgrant:x")
		p.Get(ctx, "toolgrant:x")
		return nil
	}); err == nil {
		t.Error("it counted a text up")
	}
	want(6, 1)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := client.Get(over, "toolgrant:x").Err(); err == nil {
		t.Error("it asked for nobody")
	}
	want(7, 1)
}

func TestTrafficFailsWithRedis(t *testing.T) {
	server := testkit.RedisServer(t)
	client := openFor(t, server.URL)
	traffic := NewTraffic(client)
	l := NewLedger(client, 1, 50*time.Millisecond)
	server.Pause()
	for i := range 3 {
		if _, err := l.Take(testkit.Context(t), operation(numbered("a", i), 1, 0)); err == nil {
			t.Fatal("a Redis that is paused answered")
		}
	}
	server.Resume()
	await(t, "failures are counted", func() bool { return traffic.Stats().Failures > 0 })
}
