package redisstore

import (
	"context"
	"fmt"
	"net"
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
	pair, archive := newPair(t), openArchive(t)
	ctx := testkit.Context(t)
	nodes := startNodes(t, 8, archive, func() *Ledger { return NewLedger(pair.open(), 1, 20*time.Second) })
	rules := []quota.Limited{limited("hour", quota.UnitCalls, limit, fixed(time.Hour)), limited("day", quota.UnitCalls, limit+1, daily(""))}
	must(t)(nodes[0].Take(ctx, operation("held", 9, time.Hour, rules...)))
	must(t)(nodes[0].Take(ctx, operation("before", 20, 0, rules...)))
	pair.part(nodes[0].prefix+"{u:u}:o:before", nodes[0].prefix+"{op:held}")
	admitted := consumeByNodes(t, nodes, rules, limit, func() {
		states, err := nodes[0].States(ctx, "u", rules)
		if err != nil {
			t.Fatal(err)
		}
		wantArchived(t, archive, rules, states[0].Used)
		pair.failOver()
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

// pair is a master with a replica, and clients that go to one of them.
type pair struct {
	t               *testing.T
	master, replica *testkit.PrivateRedis
	address         atomic.Pointer[string] // of whom clients go to
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, master: testkit.RedisServer(t, "--repl-diskless-sync-delay", "0"), replica: testkit.RedisServer(t)}
	address := p.master.Address()
	p.address.Store(&address)
	host, port, _ := net.SplitHostPort(address)
	if err := openFor(t, p.replica.URL).Do(testkit.Context(t), "REPLICAOF", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

// open returns a client of the master, and, after failOver, of who was the replica.
func (p *pair) open() *redis.Client {
	client := redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, *p.address.Load())
		}})
	p.t.Cleanup(func() { _ = client.Close() })
	return client
}

// part waits until the replica has some keys, and cuts it off: from then on it is behind.
func (p *pair) part(keys ...string) {
	p.t.Helper()
	ctx := testkit.Context(p.t)
	master, replica := openFor(p.t, p.master.URL).(*redis.Client), openFor(p.t, p.replica.URL)
	eventually(ctx, p.t, func() error {
		heard, err := master.Wait(ctx, 1, time.Second).Result()
		if err != nil {
			return err
		}
		if n, err := replica.Exists(ctx, keys...).Result(); err != nil || heard != 1 || int(n) != len(keys) {
			return fmt.Errorf("%d replicas heard, of %d keys it has %d, %w", heard, len(keys), n, err)
		}
		return nil
	})
	if err := replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		p.t.Fatal(err)
	}
}

// failOver kills the master, and sends clients to the replica.
func (p *pair) failOver() {
	p.t.Helper()
	p.master.Kill()
	address := p.replica.Address()
	p.address.Store(&address)
}

// afterWord is the word that follows another one.
func afterWord(text, word string) string {
	words := strings.Fields(text)
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
