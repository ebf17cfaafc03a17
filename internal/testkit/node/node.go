// Package node serves a database as one of the nodes of a service, in the process of a test.
package node

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/auth"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/redisstore"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Options may be left out.
type Options struct {
	// Address is where to serve, such as that of a node that was stopped. Default: a free port.
	Address            string
	Now                func() time.Time
	MaxStaleness       time.Duration // default: 1 s
	CheckpointInterval time.Duration // default: 1 min
	// Source stands between the replica and the store, to slow it down or let it fail.
	Source func(*postgres.Store) replica.Source
	// StoreOptions and ServerOptions are those of the store and of the gRPC server.
	StoreOptions  []postgres.Option
	ServerOptions []grpc.ServerOption
	// Authenticate tells who calls. Default: nobody is asked, and everybody may do everything.
	Authenticate grpcserver.Authenticate
	// AdminKey is the hash of an administrator's API key: callers must have API keys, of which this is the first.
	AdminKey *apikey.Hash
	// Redis is the address of the counters of quotas. Default: an empty one in this process.
	Redis string
	// Gate changes how the node decides about quotas.
	Gate func(*quota.GateOptions)
	// Calls is what calls depend on; memories are the node's.
	Calls grpcserver.CallOptions
	// Discovery is how tools are found. Default: as a server does.
	Discovery grpcserver.DiscoveryOptions
	// Learning nodes record searches and learn from them; the caller reads what there is to learn (Node.Learning).
	Learning bool
	// Forgetful nodes do not look at once for what they wrote themselves.
	Forgetful bool
}

// Node is a running node. It stops when the test ends.
type Node struct {
	Store   *postgres.Store
	Replica *replica.Replica
	Server  *grpc.Server
	Health  *health.Board
	// Learning and Searches are those of a learning node.
	Learning *learning.Follower
	Searches *learning.Log
	// Authenticator is that of a node with API keys, and Uses tells which were used.
	Authenticator *auth.Authenticator
	Uses          apikey.Uses
	Address       string
	Conn          *grpc.ClientConn
	// Stop ends the node before the test does, without a farewell to those who are connected.
	Stop func()
}

// quotaTimeout is long enough for a busy machine.
const quotaTimeout = 2 * time.Second

// approvalTTL is how long a call waits for a person.
const approvalTTL = 15 * time.Minute

// historyTimeout is how long a node that ends tries to write down what was used.
const historyTimeout = 5 * time.Second

// counters opens a Redis; empty: one in this process.
func counters(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	if url == "" {
		private := miniredis.RunT(t)
		private.ClockTTL(true)
		url = "redis://" + private.Addr() + "/0"
	}
	client, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Start serves a database on a loopback port.
func Start(t testing.TB, url string, o Options) *Node {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.MaxStaleness == 0 {
		o.MaxStaleness = time.Second
	}
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = time.Minute
	}
	if o.Source == nil {
		o.Source = func(s *postgres.Store) replica.Source { return s }
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx := testkit.Context(t)
	store, err := postgres.Open(ctx, url, o.StoreOptions...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	const cacheBytes = 64 << 20
	memory, err := replica.New(ctx, replica.Options{Source: o.Source(store), Logger: logger, MaxStaleness: o.MaxStaleness,
		CacheBytes: cacheBytes, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Forgetful {
		store.OnCommit(func(ctx context.Context) { _ = memory.CatchUp(ctx) })
	}
	client := counters(t, o.Redis)
	ledger := redisstore.NewLedger(client, store.Database(), quotaTimeout)
	leased := redisstore.NewSlices(ledger)
	t.Cleanup(func() { leased.Close(context.WithoutCancel(ctx)) })
	gate := quota.GateOptions{Ledger: ledger, Slices: leased}
	if o.Gate != nil {
		o.Gate(&gate)
	}
	history := quota.NewHistory(store, logger)
	t.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
		defer cancel()
		_ = history.Close(limit)
	})
	defaults := health.Policy{FailThreshold: 3, Cooldown: time.Minute, ProbeLease: time.Minute}
	health := health.NewBoard(health.Options{Shared: redisstore.NewHealth(client, store.Database(), quotaTimeout), Logger: logger, Now: o.Now,
		Policy: defaults.Policies(func() *catalog.Snapshot { return memory.World().Catalog })})
	calls := redisstore.NewCalls(client, store.Database(), quotaTimeout, logger)
	outcomes := call.NewOutcomes(store, logger)
	t.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
		defer cancel()
		calls.Close(limit)
		_ = outcomes.Close(limit)
	})
	o.Calls.Memory, o.Calls.Outcomes, o.Calls.CacheBytes = call.NewMemory(calls), outcomes, cacheBytes
	n := &Node{}
	if o.Learning {
		n.learn(t, store, &o, logger)
	}
	if o.AdminKey != nil {
		n.Authenticator = auth.New(auth.Options{Keys: memory.Keys, CatchUp: memory.CatchUp, Uses: &n.Uses, AdminKey: o.AdminKey})
		o.Authenticate = n.Authenticator.OfCall
	}
	server := grpcserver.New(grpcserver.Options{Calls: o.Calls, Discovery: o.Discovery, ApprovalTTL: approvalTTL, Health: health, Store: store, Replica: memory, Gate: quota.NewGate(gate), Resets: store, History: history, Logger: logger,
		Answers:            grpcserver.NewAnswers(cacheBytes),
		CheckpointInterval: o.CheckpointInterval, ServerOptions: o.ServerOptions, Authenticate: o.Authenticate, Now: o.Now})
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { memory.Run(running) })
	group.Go(func() { health.Run(running) })
	group.Go(func() { _ = server.Serve(listener) })
	stopAll := sync.OnceFunc(func() {
		stop()
		server.Stop()
		group.Wait()
	})
	t.Cleanup(stopAll)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.Store, n.Replica, n.Server, n.Health, n.Address, n.Conn, n.Stop = store, memory, server, health, listener.Addr().String(), conn, stopAll
	return n
}

// learn makes a node record searches and learn from them.
func (n *Node) learn(t testing.TB, store *postgres.Store, o *Options, logger *slog.Logger) {
	t.Helper()
	weights := discovery.DefaultWeights()
	var err error
	if n.Learning, err = learning.NewFollower(testkit.Context(t), store, weights.Learned, o.Now, logger); err != nil {
		t.Fatal(err)
	}
	n.Searches = learning.NewLog(store, false, logger)
	t.Cleanup(func() { _ = n.Searches.Close(context.WithoutCancel(testkit.Context(t))) })
	o.Discovery.Log = n.Searches
	o.Discovery.Shelf = finder.NewShelf(weights, func() finder.Learned { return n.Learning.Learned() })
}
