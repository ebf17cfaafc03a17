package redisstore

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// loss breaks connections instead of handing over every so many answers: Redis has done what it was asked.
type loss struct {
	every   int64
	answers atomic.Int64
}

func (l *loss) lost() int64 { return l.answers.Load() / l.every }

// DialHook implements redis.Hook.
func (l *loss) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &lossyConn{conn, l}, nil
	}
}

// ProcessHook implements redis.Hook.
func (l *loss) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (l *loss) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type lossyConn struct {
	net.Conn
	loss *loss
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.loss.answers.Add(1)%c.loss.every == 0 {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// Whatever answers are lost, and whoever asks again, go-redis or the caller: each operation is charged once.
func TestLedgerLosesAnswers(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		client, lossy := openFor(t, testkit.Redis(t)), &loss{every: 7}
		client.AddHook(lossy)
		loseAnswers(t, client, lossy)
	})
	t.Run("cluster", func(t *testing.T) {
		client, lossy := openFor(t, testkit.RedisCluster(t).URL), &loss{every: 7}
		client.(*redis.ClusterClient).OnNewNode(func(node *redis.Client) { node.AddHook(lossy) })
		loseAnswers(t, client, lossy)
	})
}

func loseAnswers(t *testing.T, client redis.UniversalClient, lossy *loss) {
	const callers, each = 8, 40
	l := NewLedger(client, 1, 20*time.Second)
	ctx := testkit.Context(t)
	rules := []quota.Limited{limited("sliding", quota.UnitTokens, 1e6, fixed(time.Hour)), limited("day", quota.UnitTokens, 1e6, daily("")),
		limited("places", quota.UnitConcurrentCalls, 1e6, quota.Window{})}
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				name, lease, of := fmt.Sprint(caller, "-", i), time.Hour, rules
				if i%2 == 0 {
					lease, of = 0, rules[:2] // for many at once, see taker
				}
				eventually(ctx, t, func() error { _, err := l.Take(ctx, operation(name, 1, lease, of...)); return err })
				cost := int64(4)
				switch i % 4 {
				case 1:
					eventually(ctx, t, func() error { _, err := l.Commit(ctx, name, &cost); return err })
				case 3:
					eventually(ctx, t, func() error { _, err := l.Release(ctx, name); return err })
				}
			}
		})
	}
	group.Wait()
	var states []quota.State
	eventually(ctx, t, func() (err error) { states, err = l.States(ctx, "u", rules); return err })
	const want = callers * each / 4 * (2*10 + 4)
	if states[0].Used != want || states[1].Used != want || states[0].Held+states[1].Held+states[2].Held != 0 {
		t.Errorf("want %d: %+v", want, states)
	}
	if lossy.lost() < each { // one answer tells many
		t.Errorf("only %d answers were lost", lossy.lost())
	}
}

// A Redis that does not know a script is sent all of it.
func TestLedgerScriptsAreForgotten(t *testing.T) {
	client := openFor(t, testkit.RedisCluster(t).URL).(*redis.ClusterClient)
	l := NewLedger(client, 1, 20*time.Second)
	ctx := testkit.Context(t)
	rule := limited("r", quota.UnitCalls, 10, fixed(time.Hour))
	forget := func() {
		if err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		name := numbered("o", i)
		must(t)(l.Take(ctx, operation(name, 1, time.Minute, rule)))
		forget()
		must(t)(l.Take(ctx, operation(name, 1, time.Minute, rule)))
		forget()
		if d := must(t)(l.Commit(ctx, name, nil)); d.States[0].Used != int64(i+1) || d.States[0].Held != 0 {
			t.Errorf("%+v", d)
		}
	}
}
