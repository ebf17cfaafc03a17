package main

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Four nodes are asked for one user's calls and for calls of all users, while windows end, nodes are killed and come
// back, and Redis stops, is killed, and its answers get lost. Redis writes to disk what it answers, as one does that
// is to forget nothing when it is killed.
func TestNoLimitIsExceededWhateverFails(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	redis := testkit.RedisServer(t, "--appendonly", "yes", "--appendfsync", "everysec")
	relay, here := relayTo(t, "tcp", strings.TrimSuffix(strings.TrimPrefix(redis.URL, "redis://"), "/0"))
	url := testkit.Database(t)
	c := &callers{t: t}
	var servers []*child
	for range 4 {
		server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_REDIS_URL=redis://"+here+"/0", "TOOLGRANT_QUOTA_TIMEOUT=500ms")
		server.start()
		servers = append(servers, server)
	}
	for _, server := range servers {
		server.awaitReady()
		c.nodes = append(c.nodes, server.connect())
	}
	if _, err := c.nodes[0].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: quotaWorld()}); err != nil {
		t.Fatal(err)
	}
	for i, node := range c.nodes {
		await(t, "a node knows the rules", func() bool {
			_, err := node.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: "first-" + string(rune('0'+i)), UserId: "u", ToolId: "user"})
			return err == nil
		})
	}
	c.start(ctx, 64)
	pause := func() { time.Sleep(quotaWindow / 2) }

	pause()
	servers[1].kill()
	pause()
	servers[1].start()
	redis.Pause() // for longer than nodes wait for it
	pause()
	redis.Resume()
	pause()
	relay.deaf.Store(true) // Redis does what it is asked, and nobody hears
	pause()
	relay.speak()
	pause()
	servers[2].kill()
	redis.Kill()
	pause()
	redis.Start()
	servers[2].start()
	pause()
	await(t, "windows are filled and begin anew, and answers get lost", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.admitted["user"]) >= 2*userLimit && len(c.admitted["system"]) >= 2*systemLimit && c.denied > 0 && c.lost > 0
	})
	c.stop()

	c.check("user", userLimit)
	c.check("system", systemLimit)
	// What nobody settled gives itself back, and all that was committed was charged once.
	await(t, "nothing is held", func() bool {
		for _, node := range c.nodes {
			usage, err := node.GetQuotaUsage(ctx, &v1.GetQuotaUsageRequest{UserId: "u", ToolIds: []string{"tokens"}})
			if err != nil {
				t.Log(err)
				return false
			}
			if state := usage.GetTools()[0].GetRules()[0]; state.GetDecidedByOutage() || state.GetHeld() != 0 {
				return false // a node that has not reached Redis again yet tells what it counts itself
			} else if state.GetUsed() != c.committed {
				t.Fatalf("%d tokens are used, %d were committed", state.GetUsed(), c.committed)
			}
		}
		return true
	})
}
