package grpcserver

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/telemetry"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkResolveToolsHeld measures a call whose answer is in memory, from the decoded request to the
// encoded answer, without and with metrics. Transport is not in it: it costs many times as much.
func BenchmarkResolveToolsHeld(b *testing.B) {
	ctx := testkit.Context(b)
	store, err := postgres.Open(ctx, testkit.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	_, _, err = store.Edit(ctx, []id.User{"u"}, func(admin.Manifest) (edit admin.Edit, err error) {
		edit.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}
		for n := range 50 {
			tool := id.Tool(fmt.Sprint("tool-", n))
			edit.Tools = append(edit.Tools, catalog.Tool{ID: tool, Type: "type", Name: string(tool), Core: true, Risk: catalog.RiskLow, Status: catalog.StatusActive})
		}
		edit.Users = []availability.User{{ID: "u"}}
		return edit, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	// Nobody polls during the measurement, so what is held must stay fresh.
	memory, err := replica.New(ctx, replica.Options{Source: store, Logger: slog.Default(), MaxStaleness: time.Hour, CacheBytes: 1 << 20, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	validator, err := protovalidate.New()
	if err != nil {
		b.Fatal(err)
	}
	metrics := telemetry.NewMetrics()
	metrics.Expect(map[string]grpc.ServiceInfo{"toolgrant.v1.EntitlementService": {Methods: []grpc.MethodInfo{{Name: "ResolveTools"}}}})
	before := []grpc.UnaryServerInterceptor{limit(time.Minute), translateErrors(slog.Default()), validate(validator)}
	own := slices.Insert(slices.Clone(before), 2, (&access{}).unary)
	for _, variant := range []struct {
		name         string
		interceptors []grpc.UnaryServerInterceptor
		answered     func(int, bool)
	}{
		{"without access rules", before, func(int, bool) {}},
		{"without metrics", own, func(int, bool) {}},
		{"with metrics", append([]grpc.UnaryServerInterceptor{metrics.CountUnary}, own...), metrics.Answered},
	} {
		b.Run(variant.name, func(b *testing.B) {
			server := &entitlementServer{store: store, replica: memory, answers: NewAnswers(1 << 20), answered: variant.answered, now: time.Now}
			asked := &toolgrantv1.ResolveToolsRequest{ChatId: "chat", UserId: "u",
				Surface: &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}}
			decode := func(request any) error {
				proto.Merge(request.(proto.Message), asked)
				return nil
			}
			call := func() {
				if _, err := resolveToolsHandler(server, ctx, decode, chain(variant.interceptors)); err != nil {
					b.Fatal(err)
				}
			}
			call() // which makes the answer
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// chain makes one interceptor of several, the first the outermost.
func chain(interceptors []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		for i := len(interceptors) - 1; i >= 0; i-- {
			outer, inner := interceptors[i], handle
			handle = func(ctx context.Context, request any) (any, error) { return outer(ctx, request, info, inner) }
		}
		return handle(ctx, request)
	}
}
