package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// access is what a user of Redis's access control needs.
var access = strings.Fields("resetchannels ~toolgrant:* &toolgrant:* -@all +ping +publish +subscribe " +
	"+eval +evalsha +exists +info +pttl +hgetall +get +set +del +time +pexpire +pexpireat +hget +hmget +hset +hdel +hincrby +zadd +zrem +zrange +zrangebyscore +zremrangebyrank +zremrangebyscore +zscore +zcard")

// A user who may do what the documentation lists, and no more, is enough: for wake-ups, for the ledger, for counting nodes, and for health.
func TestAccessControl(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		url := testkit.Redis(t)
		allow(t, "limited", []string{url}, asAny(access)...)
		withAccess(t, strings.Replace(url, "redis://", "redis://limited:p@", 1))
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := testkit.RedisCluster(t)
		var urls []string
		for _, node := range cluster.Nodes {
			urls = append(urls, node.URL)
		}
		allow(t, "limited", urls, asAny(append(slices.Clone(access), "+cluster|slots", "+asking"))...)
		withAccess(t, strings.Replace(cluster.URL, "://", "://limited:p@", 1))
		client := openFor(t, strings.Replace(cluster.URL, "://", "://limited:p@", 1))
		slot := slotOf(t, cluster, "v") // which has no keys: it asks where they are now
		to := slot.another(0)
		slot.begin(to)
		if err := client.Get(testkit.Context(t), "toolgrant:0000000000000001:{u:v}:o:x").Err(); err != redis.Nil {
			t.Errorf("a slot that moves: %v", err)
		}
		slot.end(to)
	})
}

func asAny(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

func withAccess(t *testing.T, url string) {
	t.Helper()
	ctx := testkit.Context(t)
	s := newSuite(t, openFor(t, url)).archiveIn(openArchive(t))
	rules := []quota.Limited{charged(limited("a", quota.UnitCalls, 10, fixed(time.Hour))), limited("b", quota.UnitCalls, 10, daily("")),
		limited("c", quota.UnitCalls, 10, bucketOf(1)), limited("d", quota.UnitConcurrentCalls, 10, quota.Window{})}
	s.consume("1", 1, rules...)
	s.reserve("2", 1, time.Minute, rules...)
	spent := NewSlices(s.Ledger)
	spent.must(t, 1, system(rules[0]))
	spent.Close(ctx)
	s.commit("2", nil)
	s.reserve("3", 1, time.Minute, rules...)
	s.release("3")
	s.reserve("4", 1, time.Millisecond, rules...)
	time.Sleep(2 * time.Millisecond) // so that it was abandoned
	s.release("4")
	s.reserve("5", 11, time.Minute, rules...)
	s.want(rules[0], 2, 0)
	if _, err := s.Reset(ctx, "u", rules[0]); err != nil {
		t.Error(err)
	}
	nodes := []*Nodes{NewNodes(s.client, 1), NewNodes(s.client, 1)}
	for _, node := range nodes {
		node.say(ctx)
	}
	if n := nodes[1].Count(); n != 2 {
		t.Errorf("%d nodes", n)
	}
	if err := s.client.ZRem(ctx, nodes[0].key, nodes[0].name).Err(); err != nil {
		t.Error(err)
	}
	shared := newBoard(t, url, boardOptions{})
	shared.sync()
	shared.report(search, "", health.Timeout)
	shared.sync()
	if stats := shared.Stats(); stats.Pending > 0 || stats.Failures > 0 {
		t.Errorf("health: %+v", stats)
	}
	a, b := newNode(t, url, 1).run(), newNode(t, url, 1).run()
	a.Publish()
	b.awaitWoken(2)
	if err := a.client.Publish(ctx, "another", "").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Errorf("it may do more: %v", err)
	}
}
