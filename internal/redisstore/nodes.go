package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// nodesInterval is how often a node says that it is there.
	nodesInterval = 2 * time.Second
	// nodesSteady is how many counts in a row must be smaller for the number to become smaller: a Redis that was
	// emptied hears of the nodes one by one.
	nodesSteady = 5
)

// Nodes counts the nodes of a database: how many share a limit while its counters cannot be reached. It remembers the
// number then.
type Nodes struct {
	client redis.UniversalClient
	script *redis.Script
	key    string
	name   string

	mu     sync.Mutex
	counts []int64 // the last ones
}

// NewNodes is for one node of a database, which the number identifies. A user of Redis's access control needs the keys
// toolgrant:* and EVAL, EVALSHA, TIME, ZADD, ZREM, ZREMRANGEBYSCORE, ZCARD, PEXPIRE.
func NewNodes(client redis.UniversalClient, database uint64) *Nodes {
	return &Nodes{client: client, script: redis.NewScript(text("nodes")), key: fmt.Sprintf("toolgrant:%016x:{nodes}", database), name: rand.Text()}
}

// Count is how many nodes there are, this one included, as far as it knows.
func (n *Nodes) Count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(max(1, slices.Max(append([]int64{1}, n.counts...))))
}

// Run says now and then that the node is there, until ctx ends, and then that it is not any more.
func (n *Nodes) Run(ctx context.Context) {
	ticker := time.NewTicker(nodesInterval)
	defer ticker.Stop()
	for {
		n.say(ctx)
		select {
		case <-ctx.Done():
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = n.client.ZRem(limit, n.key, n.name).Err() // it runs out by itself
			return
		case <-ticker.C:
		}
	}
}

func (n *Nodes) say(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, nodesInterval)
	defer cancel()
	count, err := n.script.Run(limit, n.client, []string{n.key}, n.name).Int64()
	if err != nil {
		return // the number stays what it was
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts = append(n.counts[max(0, len(n.counts)-nodesSteady+1):], count)
}
