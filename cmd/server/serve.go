package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/postgres"
)

// serve serves until ctx ends, or something that it needs fails for good.
func serve(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	url := string(c.DatabaseURL)
	if url == "" {
		private, err := embedded.StartPostgres(ctx, embedded.Options{DataDir: c.DataDir, Logger: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, private.Stop(context.WithoutCancel(ctx))) }()
		url = private.URL()
		log.Info(private.Notice())
	}
	if err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	defer store.Close()

	server := grpcserver.New(grpcserver.Options{Store: store, Logger: log, CallTimeout: c.CallTimeout})
	monitor := &monitor{store: store, health: health.NewServer()}
	healthv1.RegisterHealthServer(server, monitor.health)
	reflection.Register(server)
	monitor.check(ctx, server)

	grpcListener, err := net.Listen("tcp", c.GRPCAddr)
	if err != nil {
		return fmt.Errorf("gRPC: %w", err)
	}
	httpListener, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		return errors.Join(fmt.Errorf("HTTP: %w", err), grpcListener.Close())
	}
	web := &http.Server{Handler: monitor.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	log.Info(fmt.Sprintf("Toolgrant serves gRPC on %s, and /healthz and /readyz on http://%s", grpcListener.Addr(), httpListener.Addr()))
	log.Warn("there is no authentication: whoever can reach these addresses on this machine may do everything")

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(grpcListener) })
	group.Go(func() error {
		if err := web.Serve(httpListener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		monitor.run(ctx, server)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		log.Info("shutting down")
		monitor.health.Shutdown()
		drained := make(chan struct{})
		go func() {
			server.GracefulStop()
			close(drained)
		}()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.ShutdownTimeout)
		defer cancel()
		select {
		case <-drained:
		case <-limit.Done():
			server.Stop()
		}
		return web.Shutdown(limit)
	})
	return group.Wait()
}

// monitor asks the database twice a second and tells readiness truly: to gRPC's health service and /readyz.
type monitor struct {
	store  *postgres.Store
	health *health.Server
	down   atomic.Pointer[string] // why it is not ready; nil: it is
}

func (m *monitor) run(ctx context.Context, server *grpc.Server) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.check(ctx, server)
		}
	}
}

func (m *monitor) check(ctx context.Context, server *grpc.Server) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	state := healthv1.HealthCheckResponse_SERVING
	if err := m.store.Ping(ctx); err != nil {
		why := "the database does not answer: " + err.Error()
		m.down.Store(&why)
		state = healthv1.HealthCheckResponse_NOT_SERVING
	} else {
		m.down.Store(nil)
	}
	m.health.SetServingStatus("", state)
	for service := range server.GetServiceInfo() {
		m.health.SetServingStatus(service, state)
	}
}

func (m *monitor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := m.down.Load(); why != nil {
			http.Error(w, *why, http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready")
	})
	return mux
}
