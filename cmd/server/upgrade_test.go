package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // clients that ask for it
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// balanced is what docs/operations.md recommends to clients: calls go to all servers that say they are ready.
const balanced = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}%s}`

// retrying has the client repeat calls that servers without this server's way of draining may fail.
const retrying = `, "methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "1s",
	"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]`

// balance returns a client of several servers.
func balance(t *testing.T, more string, servers ...*child) client {
	t.Helper()
	nodes := manual.NewBuilderWithScheme("nodes")
	var state resolver.State
	for _, s := range servers {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: s.grpc})
	}
	nodes.InitialState(state)
	conn, err := grpc.NewClient("nodes:///", grpc.WithResolvers(nodes), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(balanced, more)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return clientOf(conn)
}

// build builds a server of a source tree.
func build(t *testing.T, source, stamp string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "server")
	command := exec.Command("go", "build", "-ldflags", "-X github.com/toolgrant/toolgrant/internal/version.stamp="+stamp, "-o", binary, "./cmd/server")
	command.Dir = source
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", stamp, err, out)
	}
	return binary
}

// before returns the source tree that this one is compared with: where the branch left main, or the release before.
func before(t *testing.T) (source string) {
	t.Helper()
	commit, err := exec.Command("../../tools/merge-base").Output()
	if err != nil || len(commit) == 0 {
		return "" // no history is here
	}
	source = t.TempDir()
	archive := exec.Command("bash", "-c", `set -o pipefail; git -C ../.. archive "$0" | tar -x -C "$1"`, strings.TrimSpace(string(commit)), source)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return source
}

// traffic is what chat servers do all the time.
type traffic struct {
	t        *testing.T
	answered atomic.Int64
	// forgotten is how many calls may be forgotten: a server that is killed takes those without quotas with it that it
	// allowed in the last milliseconds. One is under way at a time.
	forgotten atomic.Int64
	stop      func()
}

// allKinds asks, writes, consumes, calls and watches, until it is stopped. Nothing may fail that is not forgotten.
func allKinds(ctx context.Context, t *testing.T, c client) *traffic {
	t.Helper()
	tr := &traffic{t: t}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	repeat := func(what string, once func(n int) error) {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := once(n); err != nil && ctx.Err() == nil {
					t.Errorf("%s %d failed: %v", what, n, err)
					return
				}
				tr.answered.Add(1)
				time.Sleep(2 * time.Millisecond) // the machine does other things, too
			}
		})
	}
	for range 2 {
		repeat("resolve", func(int) error { _, err := resolve(ctx, c, "c0"); return err })
	}
	name := fmt.Sprint(time.Now().UnixNano())
	repeat("consume", func(n int) error {
		_, err := c.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: fmt.Sprint(name, "-", n), UserId: "u", ToolId: "t0"})
		return err
	})
	repeat("call", func(n int) error {
		call := fmt.Sprint(name, "-call-", n)
		p, err := c.AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: call, ChatId: "c1", UserId: "u", Surface: web, Function: "t0"})
		if err == nil && p.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW {
			_, err = report(ctx, c, call, succeeded)
		}
		if status.Code(err) == codes.NotFound && tr.forgotten.Add(-1) >= 0 {
			err = nil
		}
		return err
	})
	repeat("watch", func(int) error {
		stream, err := c.WatchTools(ctx, &v1.WatchToolsRequest{ChatId: "c2", UserId: "u", Surface: web})
		for err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) == codes.Unavailable { // watchers open another stream, as the API says
			err = nil
		}
		return err
	})
	tr.stop = func() {
		cancel()
		running.Wait()
	}
	return tr
}

// replace replaces servers, one after the other, by those of another build.
func replace(ctx context.Context, t *testing.T, tr *traffic, binary string, servers ...*child) {
	t.Helper()
	for _, s := range servers {
		s.stop()
		if s.binary != "" {
			s.log.forget() // older versions' logs are what they are
		}
		s.binary = binary
		s.start()
		s.awaitReady()
		// The next one may only go when clients have found this one.
		await(t, "the new server answers", func() bool {
			return t.Failed() || scrape(t, s.web).of("toolgrant_rpc_calls_total", "ResolveTools", "OK") > 10
		})
		begin := tr.answered.Load()
		await(t, "traffic goes on", func() bool { return t.Failed() || tr.answered.Load() > begin+100 })
		if t.Failed() {
			t.FailNow()
		}
	}
}

// Two servers are replaced while they are used, first by those of the next version, which migrate the database that
// both use, then by those of another build of it. No request fails, and what was acknowledged is there.
func TestARollingUpgradeFailsNoRequest(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err) // tests run where it is
	}
	const stamp = "v0.0.2-test"
	newest := build(t, "../..", stamp)
	if out, err := exec.Command(newest, "version").CombinedOutput(); err != nil || !strings.Contains(string(out), stamp) {
		t.Fatalf("%v: %s", err, out)
	}
	first, oldest := "", "" // this binary
	if source := before(t); source != "" {
		oldest = build(t, source, "v0.0.0-test")
	} else {
		t.Log("NO HISTORY OF GIT IS HERE: the first version is another build of this one")
		oldest = newest
	}
	ctx := testkit.Context(t) // building takes longer than tests may
	settings := []string{"TOOLGRANT_DATABASE_URL=" + testkit.EmptyDatabase(t), "TOOLGRANT_REDIS_URL=" + testkit.RedisServer(t).URL, "TOOLGRANT_DRAIN_DELAY=300ms"}
	servers := []*child{newChild(t, settings...), newChild(t, settings...)}
	for _, s := range servers {
		s.binary = oldest
		s.start()
		s.awaitReady()
	}
	patient := balance(t, retrying, servers...)
	w := newWorkload(ctx, t, patient)
	stopWriting := w.start(ctx, nothing, patient)
	tr := allKinds(ctx, t, patient)
	replace(ctx, t, tr, first, servers...)
	tr.stop()
	stopWriting()

	// These drain so that clients need not try anything again.
	once := balance(t, "", servers...)
	stopWriting = w.start(ctx, nothing, once)
	tr = allKinds(ctx, t, once)
	replace(ctx, t, tr, newest, servers...)
	tr.stop()
	stopWriting()
	w.check(ctx, once)
	w.report()
}

// While a server drains, it says so and answers; then it ends streams and answers what is under way.
func TestADrainingServerAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	relay, url := newRelay(t, testkit.Database(t))
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, "TOOLGRANT_DRAIN_DELAY=1s", "TOOLGRANT_SHUTDOWN_TIMEOUT=1m")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	stream, err := c.WatchTools(ctx, &v1.WatchToolsRequest{ChatId: "chat", UserId: "u", Surface: web})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.stop()
	}()
	await(t, "it says that it is not ready", func() bool { return ready(server.web) == http.StatusServiceUnavailable })
	answered := 0
	for ; answered < 20; answered++ { // it still answers, and takes connections
		if _, err := resolve(ctx, server.connect(), "chat"); err != nil {
			t.Fatalf("call %d of a draining server: %v", answered, err)
		}
	}
	relay.silent.Store(true) // the next call waits
	late := make(chan error, 1)
	go func() {
		_, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
		late <- err
	}()
	await(t, "a call is under way", func() bool { return scrape(t, server.web).of("toolgrant_load_under_way", "call") == 1 })
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	relay.speak()
	if err := <-late; err != nil && !databaseAway(err) {
		t.Errorf("the call that was under way: %v", err)
	}
	<-stopped
}
