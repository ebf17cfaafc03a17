package telemetry_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/telemetry"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// recording is a server whose spans are recorded, and a client with a trace of its own.
type recording struct {
	t        *testing.T
	exported *tracetest.InMemoryExporter
	caller   *trace.TracerProvider
	v1.EntitlementServiceClient
}

func record(ctx context.Context, t *testing.T) *recording {
	t.Helper()
	exported := tracetest.NewInMemoryExporter()
	tracing := telemetry.TraceTo(slog.Default(), trace.WithSyncer(exported))
	n := node.Start(t, testkit.Database(t), node.Options{
		StoreOptions: []postgres.Option{postgres.WithTracer(tracing.QueryTracer())}, ServerOptions: tracing.ServerOptions()})
	world := &v1.Manifest{
		ToolTypes: []*v1.ToolType{{ToolTypeId: "clock", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}},
		Tools:     []*v1.Tool{{ToolId: "now", ToolTypeId: "clock", Name: "now", Core: true}},
		Users:     []*v1.User{{UserId: "ann"}},
	}
	if _, err := v1.NewAdminServiceClient(n.Conn).ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world}); err != nil {
		t.Fatal(err)
	}
	return &recording{t, exported, trace.NewTracerProvider(), v1.NewEntitlementServiceClient(n.Conn)}
}

// resolve asks under a span of the caller's, and returns the spans of the caller's trace by name.
func (r *recording) resolve(ctx context.Context, user string, c *v1.Consistency) map[string]tracetest.SpanStub {
	r.t.Helper()
	ctx, caller := r.caller.Tracer("caller").Start(ctx, "turn")
	_, err := r.ResolveTools(outgoing(ctx), question(user, c))
	if (err != nil) != (user == "nobody") {
		r.t.Fatal(err)
	}
	const server = "toolgrant.v1.EntitlementService/ResolveTools"
	var spans map[string]tracetest.SpanStub
	// The server ends its span after the caller has the answer.
	for ; spans[server].Name == ""; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			r.t.Fatalf("no span of the server among %v", spans)
		}
		spans = map[string]tracetest.SpanStub{}
		for _, s := range r.exported.GetSpans() {
			if s.SpanContext.TraceID() == caller.SpanContext().TraceID() {
				spans[s.Name] = s
			}
		}
	}
	if got := spans[server].Parent.SpanID(); got != caller.SpanContext().SpanID() {
		r.t.Errorf("the server's span is a child of %s, not of the caller's", got)
	}
	for _, part := range []string{"snapshot", "load", "resolve", "encode"} {
		if s, there := spans[part]; there && s.Parent.SpanID() != spans[server].SpanContext.SpanID() {
			r.t.Errorf("%s is not a child of the server's span", part)
		}
	}
	return spans
}

// parts names the parts of a call in the order of their beginnings; those that were spared in parentheses.
func parts(spans map[string]tracetest.SpanStub) []string {
	var all []tracetest.SpanStub
	for _, name := range []string{"snapshot", "load", "SELECT", "resolve", "encode"} {
		if s, there := spans[name]; there {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var names []string
	for _, s := range all {
		name := s.Name
		for _, a := range s.Attributes {
			if a.Key == "toolgrant.cached" {
				name = "(" + name + ")"
			}
		}
		names = append(names, name)
	}
	return names
}

func TestATraceShowsThePartsOfACall(t *testing.T) {
	ctx := testkit.Context(t)
	r := record(ctx, t)

	cold := r.resolve(ctx, "ann", nil)
	if got := parts(cold); !slices.Equal(got, []string{"snapshot", "load", "SELECT", "resolve", "encode"}) {
		t.Errorf("a cold call: %v of %v", got, cold)
	}
	if cold["SELECT"].Parent.SpanID() != cold["load"].SpanContext.SpanID() {
		t.Error("the statement is not a part of the load")
	}
	warm := r.resolve(ctx, "ann", nil)
	if got := parts(warm); !slices.Equal(got, []string{"snapshot", "(load)", "(resolve)", "(encode)"}) {
		t.Errorf("a warm call: %v of %v", got, warm)
	}
	full := r.resolve(ctx, "ann", &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}})
	if got := parts(full); !slices.Equal(got, []string{"load", "SELECT", "resolve", "encode"}) {
		t.Errorf("a fully consistent call: %v of %v", got, full)
	}
	refused := r.resolve(ctx, "nobody", nil)
	if got := parts(refused); !slices.Equal(got, []string{"snapshot", "load", "SELECT"}) {
		t.Errorf("a refused call: %v of %v", got, refused)
	}
}

func TestACallThatItsCallerDoesNotSampleIsNotRecorded(t *testing.T) {
	ctx := testkit.Context(t)
	r := record(ctx, t)
	unsampled, caller := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())).Tracer("caller").Start(ctx, "turn")
	if _, err := r.ResolveTools(outgoing(unsampled), question("ann", nil)); err != nil {
		t.Fatal(err)
	}
	if got := parts(r.resolve(ctx, "ann", nil)); !slices.Equal(got, []string{"snapshot", "(load)", "(resolve)", "(encode)"}) {
		t.Errorf("the call after it: %v", got)
	}
	for _, s := range r.exported.GetSpans() {
		if s.SpanContext.TraceID() == caller.SpanContext().TraceID() {
			t.Errorf("recorded: %v", s)
		}
	}
}

// outgoing sends the trace along.
func outgoing(ctx context.Context) context.Context {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	return metadata.NewOutgoingContext(ctx, metadata.New(headers))
}

func question(user string, c *v1.Consistency) *v1.ResolveToolsRequest {
	return &v1.ResolveToolsRequest{ChatId: "chat", UserId: user, Surface: &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}, Consistency: c}
}
