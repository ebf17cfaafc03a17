// Package span marks the parts of a call in its trace. Where a call is not recorded, which is always so
// unless the operator asked for traces, that costs a look at the context and nothing else. It knows
// OpenTelemetry's API only; who records is internal/telemetry's business.
package span

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const tracerName = "github.com/toolgrant/toolgrant"

// cached marks a part that was spared.
var cached = trace.WithAttributes(attribute.Bool("toolgrant.cached", true))

// Part is a part of a call. The zero value is one that nobody records.
type Part struct{ span trace.Span }

// Start begins a part of the call that ctx belongs to. What is done under the returned context belongs to
// the part.
func Start(ctx context.Context, name string) (context.Context, Part) {
	call := trace.SpanFromContext(ctx)
	if !call.IsRecording() {
		return ctx, Part{}
	}
	ctx, span := call.TracerProvider().Tracer(tracerName).Start(ctx, name)
	return ctx, Part{span}
}

// End ends the part; err is why it failed, if it did.
func (p Part) End(err error) {
	if p.span == nil {
		return
	}
	if err != nil {
		p.span.SetStatus(codes.Error, err.Error())
	}
	p.span.End()
}

// Cached tells of parts of a call that were spared, since what they would have made was in memory. They are
// in the trace all the same, so that every call shows the same parts.
func Cached(ctx context.Context, names ...string) {
	call := trace.SpanFromContext(ctx)
	if !call.IsRecording() {
		return
	}
	tracer := call.TracerProvider().Tracer(tracerName)
	for _, name := range names {
		_, span := tracer.Start(ctx, name, cached)
		span.End()
	}
}
