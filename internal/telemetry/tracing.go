package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
)

// Tracing records traces and exports them. A nil *Tracing is none, and costs calls nothing.
type Tracing struct {
	provider *trace.TracerProvider
	log      *slog.Logger
}

// NewTracing returns what OpenTelemetry's standard environment variables ask for: nil unless they name an
// endpoint or the exporter "otlp". The exporter connects in the background, and the sampler and the limits
// are read from the environment too.
func NewTracing(ctx context.Context, log *slog.Logger) (*Tracing, error) {
	asked, err := tracesAsked(os.Getenv)
	if err != nil || !asked {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	identity, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", namespace)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// Exporting goes on in the background, where nobody is to be told but the log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not exported", "error", err) }))
	return TraceTo(log, trace.WithBatcher(exporter), trace.WithResource(identity)), nil
}

// TraceTo returns tracing with a provider made of options.
func TraceTo(log *slog.Logger, options ...trace.TracerProviderOption) *Tracing {
	return &Tracing{trace.NewTracerProvider(options...), log}
}

// tracesAsked tells whether the environment asks for traces, and refuses what would be silently ignored.
func tracesAsked(environment func(string) string) (bool, error) {
	exporter := environment("OTEL_TRACES_EXPORTER")
	endpoint := cmp.Or(environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), environment("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch {
	case strings.EqualFold(environment("OTEL_SDK_DISABLED"), "true") || exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: must be otlp or none, not %q", exporter)
	case exporter == "" && endpoint == "":
		return false, nil
	}
	protocol := cmp.Or(environment("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), environment("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc")
	if protocol != "grpc" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: must be grpc, not %q", protocol)
	}
	return true, nil
}

// ServerOptions makes a gRPC server record a span of each call, as a child of its caller's. Health checks
// are not recorded.
func (t *Tracing) ServerOptions() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	))}
}

// QueryTracer records the statements of recorded calls, without their parameters; nil: nobody does.
func (t *Tracing) QueryTracer() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithDisableConnectionDetailsInAttributes())
}

// Shutdown exports what was recorded and not yet exported, if there is time. Traces that are lost don't make
// the end of a server unclean.
func (t *Tracing) Shutdown(ctx context.Context, timeout time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.WarnContext(ctx, "the last traces were not exported", "error", err)
	}
}
