package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/routing"
	"github.com/toolgrant/toolgrant/internal/telemetry"
)

// loadTimeout bounds each read of the database for the memory, however many wait for it.
const loadTimeout = 3 * time.Second

// historyTimeout bounds how long a server that shuts down tries to write down what was used last.
const historyTimeout = 5 * time.Second

// serve serves until ctx ends, or something that it needs fails for good.
func serve(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	tracing, err := telemetry.NewTracing(ctx, log)
	if err != nil {
		return err
	}
	defer tracing.Shutdown(context.WithoutCancel(ctx), c.ShutdownTimeout)
	metrics := telemetry.NewMetrics()

	url, stop, err := database(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, url, postgres.WithTracer(tracing.QueryTracer()), postgres.WithStandby(string(c.StandbyURL)))
	if err != nil {
		return err
	}
	defer store.Close()

	memory, err := replica.New(ctx, replica.Options{Source: store, Logger: log, MaxStaleness: c.MaxStaleness, ServeStale: c.ServeStale,
		CacheBytes: uint64(c.CacheBytes) / 2, Timeout: loadTimeout})
	if err != nil {
		return err
	}
	others, err := newOthers(c, store, log)
	if err != nil {
		return err
	}
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ShutdownTimeout)
		defer cancel()
		err = errors.Join(err, others.close(limit))
	}()
	// Who wrote something here finds it in the next answer. (That it was written is true even if this fails.)
	store.OnCommit(func(ctx context.Context) {
		others.tell()
		_ = memory.CatchUp(ctx)
	})

	history := quota.NewHistory(store, log)
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
		defer cancel()
		if lost := history.Close(limit); lost != nil {
			err = errors.Join(err, fmt.Errorf("the last second of the history of quotas could not be written: %w", lost))
		}
	}()
	outcomes := call.NewOutcomes(store, log)
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
		defer cancel()
		if lost := outcomes.Close(limit); lost != nil {
			err = errors.Join(err, fmt.Errorf("how the calls of the last second went could not be written: %w", lost))
		}
	}()
	gate := others.gate(log)
	defaults := health.Policy{FailThreshold: c.HealthFailThreshold, Cooldown: c.HealthCooldown, ProbeLease: c.HealthProbeLease}
	board := health.NewBoard(health.Options{Shared: others.health, Logger: log,
		Policy: defaults.Policies(func() *catalog.Snapshot { return memory.World().Catalog })})
	answers := grpcserver.NewAnswers(uint64(c.CacheBytes) / 2)
	weights := c.Weights()
	follower, err := learning.NewFollower(ctx, store, weights.Learned, nil, log)
	if err != nil {
		return err
	}
	searches := learning.NewLog(store, c.KeepQueries, log)
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
		defer cancel()
		if lost := searches.Close(limit); lost != nil {
			err = errors.Join(err, fmt.Errorf("the last searches could not be written: %w", lost))
		}
	}()
	finding := grpcserver.DiscoveryOptions{Log: searches, Shadow: routing.NewShadow(log), Shelf: finder.NewShelf(weights, func() finder.Learned { return follower.Learned() }),
		Settings: finder.Settings{JITThreshold: c.JITThreshold, TopKSystem: c.TopKSystem, TopKUser: c.TopKUser, FastPathThreshold: c.FastPathThreshold}}
	models, err := newModels(c, memory, store, finding.Shelf, metrics, log)
	if err != nil {
		return err
	}
	finding.Meaning, finding.Reranker = models.keeper, models.reranker
	if _, err := finding.Shelf.Of(ctx, memory.World(), ""); err != nil { // the first index takes longest
		return err
	}
	reporter := learning.NewReporter(store, log)
	trust, err := newTrust(c, memory, store, log)
	if err != nil {
		return err
	}
	limits, err := newLimits(c)
	if err != nil {
		return err
	}
	streams := grpcserver.NewDrain()
	server := grpcserver.New(limits.options(c, grpcserver.Options{Authenticate: trust.authenticate(), Store: store, Replica: memory, Discovery: finding, Gate: gate, Resets: store, History: history, Health: board, Calls: calls(c, others.memory(), outcomes, metrics),
		Logger: log, Drain: streams, Answers: answers, CheckpointInterval: c.CheckpointInterval, ApprovalTTL: c.ApprovalTTL,
		ServerOptions: append(tracing.ServerOptions(), trust.serverOption(), grpc.ChainUnaryInterceptor(metrics.CountUnary), grpc.ChainStreamInterceptor(metrics.CountStream)),
		Answered:      metrics.Answered}))
	monitor := &monitor{replica: memory, health: grpchealth.NewServer()}
	healthv1.RegisterHealthServer(server, monitor.health)
	reflection.Register(server)
	monitor.check(server)
	metrics.Expect(server.GetServiceInfo())
	metrics.WatchReplica(memory.Stats)
	metrics.WatchAnswers(answers.Size)
	metrics.WatchPool(store.PoolStat)
	if c.StandbyURL != "" {
		metrics.WatchStandby(func() (served, behind, failed uint64) {
			s := store.StandbyStats()
			return s.Served, s.Behind, s.Failed
		})
	}
	metrics.WatchQuotas(gate.Stats)
	metrics.WatchHealth(board.Stats)
	metrics.WatchHistory(history.Stats)
	metrics.WatchSearches(searches.Stats)
	metrics.WatchShadow(finding.Shadow.Stats)
	metrics.WatchReports(reporter.Latest)
	others.watched(metrics)
	limits.watched(metrics)

	services, err := grpcserver.Web(server, grpcserver.WebOptions{Authenticated: trust.authenticator != nil, Origins: c.CORSOrigins})
	if err != nil {
		return errors.Join(err, limits.close())
	}
	mcpSide, err := newMCPSide(c, trust, memory, store, log)
	if err != nil {
		return errors.Join(err, limits.close())
	}
	defer mcpSide.close()
	web := limits.server(monitor.handler(trust, metrics.Handler(log), services, mcpSide.gateway.Handler()))
	scheme, serveWeb := trust.secure(web)
	log.Info(fmt.Sprintf("Toolgrant serves gRPC on %s, and over HTTP, with /mcp, /healthz, /readyz and /metrics, on %s://%s", limits.grpc.Addr(), scheme, limits.web.Addr()))
	trust.tell(c)

	group, ended := errgroup.WithContext(ctx)
	asked := ctx
	// What calls rest on goes on until the last one has its answer.
	ctx, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	group.Go(func() error { return server.Serve(limits.grpc) })
	group.Go(func() error { return server.Serve(trust.own) })
	group.Go(func() error {
		trust.run(ctx)
		return nil
	})
	group.Go(func() error {
		if err := serveWeb(limits.web); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		memory.Run(ctx)
		return nil
	})
	group.Go(func() error { return others.listen(ctx, memory.Wake) })
	group.Go(func() error {
		others.nodes.Run(ctx)
		return nil
	})
	group.Go(func() error {
		board.Run(ctx)
		return nil
	})
	group.Go(func() error {
		models.run(ctx)
		return nil
	})
	group.Go(func() error {
		mcpSide.run(ctx)
		return nil
	})
	for _, old := range prunings(c, store) {
		group.Go(func() error {
			old.run(ctx, log)
			return nil
		})
	}
	group.Go(func() error {
		follower.Run(ctx)
		return nil
	})
	group.Go(func() error {
		reporter.Run(ctx)
		return nil
	})
	group.Go(func() error {
		monitor.run(ctx, server)
		return nil
	})
	group.Go(func() error {
		<-ended.Done()
		defer rest()
		d := drain{monitor: monitor, streams: streams, web: web, server: server, mcp: mcpSide, log: log}
		return d.run(ctx, c, asked.Err() != nil)
	})
	return group.Wait()
}

// database returns the address of the database that is configured, or else starts a private one, and what stops it.
func database(ctx context.Context, c *config.Config, log *slog.Logger) (url string, stop func() error, err error) {
	if c.DatabaseURL != "" {
		return string(c.DatabaseURL), func() error { return nil }, nil
	}
	private, err := embedded.StartPostgres(ctx, embedded.Options{DataDir: c.DataDir, Logger: log})
	if err != nil {
		return "", nil, err
	}
	log.Info(private.Notice())
	return private.URL(), func() error { return private.Stop(context.WithoutCancel(ctx)) }, nil
}

// calls is what CallService depends on.
func calls(c *config.Config, memory *call.Memory, outcomes *call.Outcomes, metrics *telemetry.Metrics) grpcserver.CallOptions {
	synonyms := call.Synonyms{}
	for _, name := range c.SourceSynonyms {
		synonyms[strings.ToLower(name)] = true
	}
	return grpcserver.CallOptions{Memory: memory, Outcomes: outcomes, Synonyms: synonyms, CacheBytes: uint64(c.CacheBytes) / 8,
		Deployment: call.Deployment{Network: c.AllowNetwork, FilesystemRead: c.AllowFilesystemRead, FilesystemWrite: c.AllowFilesystemWrite},
		Decided:    metrics.CallDecided, Reported: metrics.CallReported}
}
