package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	goredis "github.com/redis/go-redis/v9"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

var (
	chaosDuration = flag.Duration("chaos.duration", 6*time.Second, "how long TestChaos breaks things")
	chaosSeed     = flag.Uint64("chaos.seed", 0, "what TestChaos breaks, and when; 0: by chance")
)

const (
	chaosNodes = 4
	chaosBound = time.Second // max_staleness
)

// chaos is four servers of one database and one Redis, each with networks of its own to both.
type chaos struct {
	t        *testing.T
	random   *rand.Rand
	servers  []*child
	postgres *embedded.Postgres
	redis    *testkit.PrivateRedis
	toSQL    []*relay // of each server
	toRedis  []*relay
	callers  *callers
	done     map[string]int // faults, by kind
}

// fault is something that breaks, and how it is healed.
type fault struct {
	kind   string
	target string // nothing else breaks there meanwhile; nowhere, if it is all
	least  time.Duration
	most   time.Duration // for how long
	begin  func() (heal func())
}

const all = "all"

// Servers, PostgreSQL, Redis and the networks between them are killed, paused and cut at random under mixed load. Then no
// write that was acknowledged is lost, no log has a gap, no quota was exceeded, no answer had what was forbidden for longer
// than max_staleness, and all servers say the same.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	ctx, cancel := context.WithTimeout(t.Context(), *chaosDuration+3*time.Minute)
	defer cancel()
	c := newChaos(ctx, t, seed)
	t.Logf("again: make chaos DURATION=%s SEED=%d", *chaosDuration, seed)

	clients := c.clients()
	if _, err := clients[0].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: quotaWorld()}); err != nil {
		t.Fatal(err)
	}
	w := newWorkload(ctx, t, clients[0])
	forbidden := newForbidding(ctx, t, clients)
	stopWriting := w.start(ctx, away, clients...)
	stopForbidding := forbidden.start(ctx)
	c.callers.nodes = clients
	c.callers.start(ctx, 8)

	for end := time.Now().Add(*chaosDuration); time.Now().Before(end) && !t.Failed(); {
		c.strike()
	}
	c.callers.stop()
	stopForbidding()
	stopWriting()

	// New connections: those of the load may be waiting before they try again.
	clients = c.clients()
	for _, client := range clients {
		w.check(ctx, client)
	}
	w.repeat(ctx, clients[0])
	c.checkQuotas(ctx, clients)
	c.checkEqual(ctx, clients)
	w.report()
	forbidden.report()
	for _, kind := range slices.Sorted(maps.Keys(c.done)) {
		t.Logf("%-40s %d", kind, c.done[kind])
	}
	t.Logf("quotas: %d and %d calls admitted, %d denied, %d attempts without an answer, %d tokens committed", len(c.callers.admitted["user"]),
		len(c.callers.admitted["system"]), c.callers.denied, c.callers.lost, c.callers.committed)
}

func newChaos(ctx context.Context, t *testing.T, seed uint64) *chaos {
	c := &chaos{t: t, random: rand.New(rand.NewPCG(seed, 0)), callers: &callers{t: t}, done: map[string]int{}}
	c.redis = testkit.RedisServer(t, "--appendonly", "yes", "--appendfsync", "everysec")
	var err error
	if c.postgres, err = embedded.StartPostgres(ctx, embedded.Options{DataDir: newDataDir(t), Parameters: map[string]string{"shared_buffers": "32MB"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.postgres.Stop(limit)
	})
	for range chaosNodes {
		toSQL, url := newRelay(t, c.postgres.URL())
		toRedis, redis := relayTo(t, "tcp", c.redis.Address())
		server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_REDIS_URL=redis://"+redis+"/0", "TOOLGRANT_QUOTA_TIMEOUT=500ms",
			"TOOLGRANT_MAX_STALENESS="+chaosBound.String())
		server.start()
		c.servers, c.toSQL, c.toRedis = append(c.servers, server), append(c.toSQL, toSQL), append(c.toRedis, toRedis)
	}
	return c
}

// clients waits until all servers are ready.
func (c *chaos) clients() (clients []client) {
	for _, server := range c.servers {
		c.awaitReady(server)
		clients = append(clients, server.connect())
	}
	return clients
}

func (c *chaos) awaitReady(server *child) {
	c.t.Helper()
	await(c.t, "the server is ready", func() bool {
		c.supervise()
		return ready(server.web) == http.StatusOK
	})
}

// supervise starts servers again that ended by themselves, as they do that find no database when they start.
func (c *chaos) supervise() {
	for _, server := range c.servers {
		if server.running && server.ended() {
			_ = server.process.Wait()
			server.start()
		}
	}
}

// away is how calls fail while something is broken.
func away(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// strike breaks one thing, or two, and heals them.
func (c *chaos) strike() {
	c.supervise()
	faults := c.faults()
	var broken []fault
	for range 1 + c.random.IntN(2) {
		f := faults[c.random.IntN(len(faults))]
		if !slices.ContainsFunc(broken, func(other fault) bool { return other.target == f.target || other.target == all || f.target == all }) {
			broken = append(broken, f)
		}
	}
	wait := 100*time.Millisecond + time.Duration(c.random.Int64N(int64(500*time.Millisecond)))
	var heal []func()
	for _, f := range broken {
		c.done[f.kind]++
		lasts := f.least + time.Duration(c.random.Int64N(int64(f.most-f.least)+1))
		healed := f.begin()
		heal = append(heal, healed)
		time.Sleep(lasts)
	}
	for _, healed := range heal {
		healed()
	}
	time.Sleep(wait)
}

func (c *chaos) faults() []fault {
	n := c.random.IntN(chaosNodes)
	server, toSQL, toRedis := c.servers[n], c.toSQL[n], c.toRedis[n]
	name := fmt.Sprint("server ", n)
	silence := func(r *relay) func() func() {
		return func() func() { r.silent.Store(true); return r.speak }
	}
	return []fault{
		{"a server is killed", name, 0, time.Second, func() func() { server.kill(); return server.start }},
		{"a server is paused", name, 100 * time.Millisecond, 2 * time.Second, func() func() {
			server.signal(syscall.SIGSTOP)
			return func() { server.signal(syscall.SIGCONT) }
		}},
		{"PostgreSQL is killed", "postgres", 0, 0, func() func() {
			_ = syscall.Kill(c.postgres.PID(), syscall.SIGKILL) // and starts again by itself
			return func() {}
		}},
		{"Redis is paused", "redis", 100 * time.Millisecond, 1500 * time.Millisecond, func() func() { c.redis.Pause(); return c.redis.Resume }},
		{"Redis is killed", "redis", 0, time.Second, func() func() { c.redis.Kill(); return c.redis.Start }},
		{"Redis is flushed", all, 0, 0, func() func() { c.flush(); return func() {} }},
		{"connections to PostgreSQL break", name, 0, 0, func() func() { toSQL.cut(); return func() {} }},
		{"connections to Redis break", name, 0, 0, func() func() { toRedis.cut(); return func() {} }},
		{"the network to PostgreSQL loses everything", name, 100 * time.Millisecond, 2 * time.Second, silence(toSQL)},
		{"the network to Redis loses everything", name, 100 * time.Millisecond, 2 * time.Second, silence(toRedis)},
		{"answers of PostgreSQL are lost", name, 100 * time.Millisecond, time.Second, func() func() { toSQL.deaf.Store(true); return toSQL.speak }},
		{"answers of Redis are lost", name, 100 * time.Millisecond, time.Second, func() func() { toRedis.deaf.Store(true); return toRedis.speak }},
	}
}

// flush empties Redis while nobody asks for quotas, after the windows that only Redis knows have passed and the archive has
// what it is to have: what may be lost else is documented, and would make the limits inexact.
func (c *chaos) flush() {
	c.callers.quiet.Lock()
	defer c.callers.quiet.Unlock()
	time.Sleep(quotaWindow + quotaWindow/10)
	for _, server := range c.servers {
		c.awaitReady(server)
		await(c.t, "the archive has everything", func() bool { return scrape(c.t, server.web).of("toolgrant_quota_archive_waiting") == 0 })
	}
	client := goredis.NewClient(&goredis.Options{Addr: c.redis.Address()})
	defer func() { _ = client.Close() }()
	if err := client.FlushAll(c.t.Context()).Err(); err != nil {
		c.t.Error(err)
	}
}

func (c *chaos) checkQuotas(ctx context.Context, clients []client) {
	c.t.Helper()
	c.callers.check("user", userLimit)
	c.callers.check("system", systemLimit)
	for i, node := range clients {
		await(c.t, "nothing is held", func() bool {
			usage, err := node.GetQuotaUsage(ctx, &v1.GetQuotaUsageRequest{UserId: "u", ToolIds: []string{"tokens"}})
			if err != nil {
				return false
			}
			state := usage.GetTools()[0].GetRules()[0]
			if state.GetDecidedByOutage() {
				return false // it has not reached Redis again yet, and tells what it counts itself
			}
			if state.GetHeld() == 0 && state.GetUsed() != c.callers.committed {
				c.t.Fatalf("server %d: %d tokens are used, %d were committed", i, state.GetUsed(), c.callers.committed)
			}
			return state.GetHeld() == 0
		})
	}
}

// checkEqual fails if servers do not answer alike.
func (c *chaos) checkEqual(ctx context.Context, clients []client) {
	c.t.Helper()
	for i := range chats {
		chat := fmt.Sprint("c", i)
		var first string
		for n, client := range clients {
			answer, err := client.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: chat, UserId: "u", Surface: web, Consistency: full})
			if err != nil {
				c.t.Fatal(err)
			}
			answer.Revision = ""
			if text := answer.String(); n == 0 {
				first = text
			} else if strings.ReplaceAll(text, "  ", " ") != strings.ReplaceAll(first, "  ", " ") {
				c.t.Errorf("chat %s: server 0 says %s, server %d %s", chat, first, n, text)
			}
		}
	}
}

// forbidding turns a tool off and on, and asks all the time whether it is there.
type forbidding struct {
	t       *testing.T
	clients []client

	mu        sync.Mutex
	since     time.Time // when it was acknowledged that the tool is off; zero: it may be on
	answers   int
	forbidden int // answers while it was off for longer than the bound
}

func newForbidding(ctx context.Context, t *testing.T, clients []client) *forbidding {
	f := &forbidding{t: t, clients: clients}
	m := &v1.Manifest{Tools: []*v1.Tool{tool("secret", "")}, Users: []*v1.User{{UserId: "v", Devices: []*v1.Device{{DeviceId: "v-safe", DeviceTypeId: "safe"}}}},
		DeviceTypes: []*v1.DeviceType{{DeviceTypeId: "safe", ToolIds: []string{"secret"}}},
		Avatars:     []*v1.Avatar{{AvatarId: "spy", ToolIds: []string{"secret"}}}, DefaultAvatars: []*v1.DefaultAvatar{{AvatarId: "spy", UserId: "v"}}}
	if _, err := clients[0].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forbidding) start(ctx context.Context) (stop func()) {
	stopped := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ; n++ {
			f.set(ctx, n, nil)
			f.mu.Lock()
			f.since = time.Now()
			f.mu.Unlock()
			select {
			case <-stopped:
				return
			case <-time.After(3 * chaosBound):
			}
			f.mu.Lock()
			f.since = time.Time{}
			f.mu.Unlock()
			f.set(ctx, n, []string{"secret"})
		}
	})
	for i := range 2 * len(f.clients) {
		group.Go(func() {
			for {
				select {
				case <-stopped:
					return
				case <-time.After(5 * time.Millisecond):
					f.ask(ctx, i)
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stopped)
		group.Wait()
	})
}

// set writes which tools the device has, until that is acknowledged.
func (f *forbidding) set(ctx context.Context, n int, tools []string) {
	m := &v1.Manifest{DeviceTypes: []*v1.DeviceType{{DeviceTypeId: "safe", ToolIds: tools}}}
	for ; ctx.Err() == nil; n++ {
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := f.clients[n%len(f.clients)].ApplyManifest(limit, &v1.ApplyManifestRequest{Manifest: m})
		cancel()
		if err == nil {
			return
		}
		if !away(err) {
			f.t.Errorf("a write failed: %v", err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ask fails if the tool is there although it was turned off more than the bound before.
func (f *forbidding) ask(ctx context.Context, n int) {
	sent := time.Now()
	limit, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	answer, err := f.clients[n%len(f.clients)].ResolveTools(limit, &v1.ResolveToolsRequest{ChatId: "spy", UserId: "v",
		Surface: &v1.Surface{Kind: &v1.Surface_DeviceId{DeviceId: "v-safe"}}})
	if err != nil {
		if !away(err) {
			f.t.Errorf("a question failed: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers++
	if f.since.IsZero() || sent.Before(f.since.Add(chaosBound)) {
		return
	}
	f.forbidden++
	if len(answer.GetTools()) > 0 {
		f.t.Errorf("server %d answers what was forbidden %v before it was asked", n%len(f.clients), sent.Sub(f.since))
	}
}

func (f *forbidding) report() {
	if f.forbidden == 0 {
		f.t.Error("nobody asked while the tool was forbidden")
	}
	f.t.Logf("%d answers, %d of them while a tool was forbidden for more than %v", f.answers, f.forbidden, chaosBound)
}
