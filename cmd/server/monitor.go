package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toolgrant/toolgrant/internal/replica"
)

// monitor looks several times a second whether questions can be answered, and tells it to gRPC's health
// service and /readyz.
type monitor struct {
	replica *replica.Replica
	health  *health.Server
	down    atomic.Pointer[string] // why it is not ready; nil: it is
	ending  atomic.Bool
}

// drain says from now on that the server is not ready.
func (m *monitor) drain() {
	why := "shutting down"
	m.ending.Store(true)
	m.down.Store(&why)
	m.health.Shutdown()
}

func (m *monitor) run(ctx context.Context, server *grpc.Server) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.check(server)
		}
	}
}

func (m *monitor) check(server *grpc.Server) {
	if m.ending.Load() {
		return
	}
	state := healthv1.HealthCheckResponse_SERVING
	if err := m.replica.Check(); err != nil {
		why := err.Error()
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

// handler is all that is served over HTTP. Who is asked nothing may know only whether the server lives.
func (m *monitor) handler(t *trust, metrics, services, mcp http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", services)
	mux.Handle("/mcp", t.authenticator.MCP(mcp))
	mux.Handle("GET /metrics", t.inspect(metrics))
	mux.Handle("GET /debug/pprof/", t.inspect(http.HandlerFunc(pprof.Index)))
	mux.Handle("GET /debug/pprof/profile", t.inspect(http.HandlerFunc(pprof.Profile)))
	mux.Handle("GET /debug/pprof/trace", t.inspect(http.HandlerFunc(pprof.Trace)))
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
