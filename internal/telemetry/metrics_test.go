package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/telemetry"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// BenchmarkCountUnary is what metrics add to each call of ResolveTools.
func BenchmarkCountUnary(b *testing.B) {
	m := telemetry.NewMetrics()
	m.Expect(map[string]grpc.ServiceInfo{v1.EntitlementService_ServiceDesc.ServiceName: {Methods: []grpc.MethodInfo{{Name: "ResolveTools"}}}})
	info := &grpc.UnaryServerInfo{FullMethod: v1.EntitlementService_ResolveTools_FullMethodName}
	for name, err := range map[string]error{"answered": nil, "failed": errors.New("some error")} {
		b.Run(name, func(b *testing.B) {
			handle := func(context.Context, any) (any, error) {
				m.Answered(5000, true)
				return nil, err
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = m.CountUnary(b.Context(), nil, info, handle)
			}
		})
	}
}
