package main

import (
	"context"
	"net"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// collected is where a server exports its traces to.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string]string // the names of services by those of spans
}

// Export implements the RPC.
func (c *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		service := ""
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans[s.GetName()] = service
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *collected) serviceOf(span string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[span]
}

// startCollector returns a collector and its endpoint.
func startCollector(t *testing.T) (*collected, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collected{spans: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return c, "http://" + listener.Addr().String()
}

func TestTracesGoWhereTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	collected, endpoint := startCollector(t)
	// What is left is exported when the server ends: that may be all.
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_SERVICE_NAME=of-a-test")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(ctx, c, "chat"); err != nil {
		t.Fatal(err)
	}
	server.stop()
	for _, span := range []string{"toolgrant.v1.AdminService/ApplyManifest", "toolgrant.v1.EntitlementService/ResolveTools",
		"snapshot", "load", "resolve", "encode"} {
		if got := collected.serviceOf(span); got != "of-a-test" {
			t.Errorf("the span %s came from %q", span, got)
		}
	}
}

func TestAServerWhoseTracesNobodyTakesServes(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+freeAddress(t),
		"TOOLGRANT_SHUTDOWN_TIMEOUT=1s")
	server.start()
	server.awaitReady()
	c := server.connect()
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()}); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(ctx, c, "chat"); err != nil {
		t.Fatal(err)
	}
	server.stop() // cleanly
}
