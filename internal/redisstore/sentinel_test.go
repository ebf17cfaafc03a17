package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/redisurl"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// What a replica has heard of stays: here all of it, when the Sentinels make it the master.
func TestLedgerSentinel(t *testing.T) {
	t.Parallel()
	sentinels := testkit.RedisSentinel(t)
	signIn(t, sentinels)
	client := openFor(t, sentinels.URL)
	l := NewLedger(client, 1, time.Second)
	ctx := testkit.Context(t)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	a, b := newNode(t, sentinels.URL, 1).run(), newNode(t, sentinels.URL, 1).run()
	a.Publish()
	b.awaitWoken(2)
	must(t)(l.Take(ctx, operation("a", 6, 0, rule)))
	must(t)(l.Take(ctx, operation("b", 2, time.Hour, rule)))
	await(t, "the replica has heard", func() bool {
		n, err := client.(*redis.Client).Wait(ctx, 1, time.Second).Result()
		return err == nil && n == 1
	})
	sentinels.Master().Kill()
	_, err := l.Take(ctx, operation("c", 1, 0, rule))
	wantFault(t, err, fault.ReasonCountersUnavailable)
	sentinels.Hasten()
	took := eventually(ctx, t, func() error { _, err := l.Take(ctx, operation("c", 1, 0, rule)); return err })
	if took > outageBound {
		t.Errorf("unavailable for %v", took)
	}
	if d := must(t)(l.Commit(ctx, "b", nil)); d.States[0].Used != 9 || d.States[0].Held != 0 {
		t.Errorf("%+v", d)
	}
	if d := must(t)(l.Take(ctx, operation("a", 6, 0, rule))); !d.Repeated {
		t.Errorf("%+v", d)
	}
	b.awaitWoken(3) // it was deaf
	awaitHearing(t, a, b)
}

// signIn checks that Sentinels and Redis are told their own users, and that the database is chosen.
func signIn(t *testing.T, s *testkit.Sentinels) {
	t.Helper()
	address, err := redisurl.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range address.Hosts {
		allow(t, "watcher", []string{"redis://" + host}, "-@all", "&*", "+ping", "+subscribe", "+sentinel|get-master-addr-by-name", "+sentinel|sentinels")
	}
	allow(t, "limited", []string{s.Servers[0].URL, s.Servers[1].URL}, asAny(append(slices.Clone(access), "+select"))...)
	url := strings.Replace(s.URL, "://", "://limited:p@", 1) + "?db=3&sentinel_user=watcher&sentinel_password="
	ctx := testkit.Context(t)
	if err := openFor(t, url+"p").Set(ctx, "toolgrant:x", 1, 0).Err(); err != nil {
		t.Error(err)
	}
	if n, err := openFor(t, s.URL+"?db=3").DBSize(ctx).Result(); err != nil || n != 1 {
		t.Errorf("database 3 has %d keys, %v", n, err)
	}
	if err := openFor(t, url+"wrong").Ping(ctx).Err(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("got %v", err)
	}
}
