package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/term"
)

// LogFormats are the forms that a log may have: text for people, json for programs, auto for text on a terminal and json
// elsewhere.
var LogFormats = []string{"auto", "text", "json"}

// NewLogger returns a logger that writes lines of a form, from a level on. Lines of traced calls name their trace.
func NewLogger(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	if format == "auto" {
		format = "json"
		if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(traced{slog.NewTextHandler(w, options)}), nil
	case "json":
		return slog.New(traced{slog.NewJSONHandler(w, options)}), nil
	}
	return nil, fmt.Errorf("no such form of logs: %q", format)
}

// traced adds the names of a trace and of its span to what is logged about a recorded call.
type traced struct{ slog.Handler }

// Handle implements slog.Handler.
func (t traced) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{t.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (t traced) WithGroup(name string) slog.Handler { return traced{t.Handler.WithGroup(name)} }
