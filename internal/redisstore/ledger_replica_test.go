package redisstore

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// A replica that is behind takes over: what it does not know is restored, and what it holds stays held.
func TestLedgerFailsOverToAReplicaThatIsBehind(t *testing.T) {
	const limit = 300
	master, replica, archive := testkit.RedisServer(t), testkit.RedisServer(t), openArchive(t)
	ctx := testkit.Context(t)
	var address atomic.Pointer[string]
	host := func(s *testkit.PrivateRedis) *string {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return &u.Host
	}
	address.Store(host(master))
	nodes := startNodes(t, 8, archive, func() *Ledger {
		client := redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true,
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, *address.Load())
			}})
		t.Cleanup(func() { _ = client.Close() })
		return NewLedger(client, 1, 20*time.Second)
	})
	onMaster, onReplica := openFor(t, master.URL).(*redis.Client), openFor(t, replica.URL)
	ip, port, _ := net.SplitHostPort(*host(master))
	if err := onReplica.Do(ctx, "REPLICAOF", ip, port).Err(); err != nil {
		t.Fatal(err)
	}
	rules := []quota.Limited{limited("hour", quota.UnitCalls, limit, fixed(time.Hour)), limited("day", quota.UnitCalls, limit+1, daily(""))}
	must(t)(nodes[0].Take(ctx, operation("held", 9, time.Hour, rules...)))
	must(t)(nodes[0].Take(ctx, operation("before", 20, 0, rules...)))
	for {
		if n, err := onMaster.Wait(ctx, 1, time.Second).Result(); err == nil && n == 1 && replicated(ctx, onReplica, nodes[0].prefix) {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("nothing is replicated")
		}
	}
	if err := onReplica.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	admitted := consumeByNodes(t, nodes, rules, limit, func() {
		states, err := nodes[0].States(ctx, "u", rules)
		if err != nil {
			t.Fatal(err)
		}
		wantArchived(t, archive, rules, states[0].Used)
		master.Kill()
		address.Store(host(replica))
	})
	states, err := nodes[0].States(ctx, "u", rules)
	if err != nil || admitted != limit-29 || states[0].Used != limit-9 || states[0].Held != 9 || states[1].Used != limit-9 {
		t.Errorf("%d admitted: %+v, %v", admitted, states, err)
	}
	if d := must(t)(nodes[1].Commit(ctx, "held", nil)); d.States[0].Used != limit || d.States[0].Held != 0 {
		t.Errorf("%+v", d)
	}
	wantArchived(t, archive, rules, limit)
}

func replicated(ctx context.Context, replica redis.UniversalClient, prefix string) bool {
	n, err := replica.Exists(ctx, prefix+"{u:u}:o:before", prefix+"{op:held}").Result()
	return err == nil && n == 2
}

// afterWord is the word that follows another one.
func afterWord(text, word string) string {
	words := strings.Fields(text)
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
