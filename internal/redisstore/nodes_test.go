package redisstore

import (
	"context"
	"sync"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestNodesCountEachOther(t *testing.T) {
	server := testkit.RedisServer(t)
	ctx := testkit.Context(t)
	nodes := make([]*Nodes, 3)
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i := range nodes {
		nodes[i] = NewNodes(openFor(t, server.URL), 1)
		if got := nodes[i].Count(); got != 1 {
			t.Errorf("a node that asked nobody counts %d", got)
		}
		nodes[i].say(ctx)
		if i < 2 {
			group.Go(func() { nodes[i].Run(running) })
		}
	}
	last := nodes[2]
	if got := last.Count(); got != 3 {
		t.Errorf("the last of 3 nodes counts %d", got)
	}
	stop()
	group.Wait() // they have said goodbye
	server.Pause()
	over, cancel := context.WithCancel(ctx)
	cancel()
	last.say(over)
	if got := last.Count(); got != 3 {
		t.Errorf("while Redis is away it counts %d", got)
	}
	server.Resume()
	for i := range nodesSteady {
		if got := last.Count(); got != 3 {
			t.Errorf("after %d smaller counts it counts %d", i, got)
		}
		last.say(ctx)
	}
	if got := last.Count(); got != 1 {
		t.Errorf("when the others have gone it counts %d", got)
	}
}
