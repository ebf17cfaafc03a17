package main

import (
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Four servers of one database, of whose standby they read what they can, behind a client that goes round them. One is
// killed: clients that try again notice nothing. The primary is killed and the standby promoted: what was acknowledged is
// there, and all servers go on.
func TestFourServersBehindABalancerOutliveOneAndThePrimary(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	pair := testkit.PostgresPair(t, true)
	settings := []string{"TOOLGRANT_DATABASE_URL=" + pair.URL(), "TOOLGRANT_STANDBY_URL=" + pair.StandbyURL(), "TOOLGRANT_REDIS_URL=" + testkit.RedisServer(t).URL}
	var servers []*child
	for range 4 {
		server := newChild(t, settings...)
		server.start()
		servers = append(servers, server)
	}
	for _, server := range servers {
		server.awaitReady()
	}
	c := balance(t, retrying, servers...)
	w := newWorkload(ctx, t, c)
	stopWriting := w.start(ctx, nothing, c)
	tr := allKinds(ctx, t, c)
	for _, server := range servers {
		await(t, "each server is asked", func() bool {
			return t.Failed() || scrape(t, server.web).of("toolgrant_rpc_calls_total", "ResolveTools", "OK") > 10
		})
	}
	tr.forgotten.Store(1)
	servers[0].kill()
	begin := tr.answered.Load()
	await(t, "traffic goes on", func() bool { return t.Failed() || tr.answered.Load() > begin+200 })
	tr.stop()
	stopWriting()

	stopWriting = w.start(ctx, away, c)
	w.awaitWrites(10)
	pair.KillPrimary()
	pair.Promote()
	w.awaitWrites(20)
	stopWriting()
	servers[0].start()
	for _, server := range servers {
		server.awaitReady()
		w.check(ctx, server.connect())
	}
	w.repeat(ctx, c)
	w.report()
}
