package telemetry

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// durations are the bounds of histograms of calls: an answer from memory takes microseconds, a write waits
// for a disk, and call_timeout is a minute.
var durations = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, .1, .25, .5, 1, 2.5, 5, 10}

// calls counts the calls of a server and times them. The interceptors of go-grpc-middleware look labels up
// four times per call; these know a method's counters beforehand.
type calls struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	methods  map[string]*method // by full name; not written any more when calls come
}

// method is an RPC's metrics.
type method struct {
	ok       prometheus.Counter
	duration func() prometheus.Observer // made when first asked for: most methods are never called
	labels   prometheus.Labels
}

func newCalls(registry prometheus.Registerer) *calls {
	c := &calls{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "rpc_calls_total",
			Help: "Calls answered, by gRPC status code. Those of streams count when they end. Calls of unknown methods and requests that cannot be decoded are not in it."},
			[]string{"service", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "rpc_duration_seconds", Buckets: durations,
			Help: "How long unary calls took in the server, from the decoded request to the answer, whatever their code. The network and waiting for it are not in it."},
			[]string{"service", "method"}),
		methods: map[string]*method{},
	}
	registry.MustRegister(c.total, c.duration)
	return c
}

func (c *calls) expect(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, m := range info.Methods {
			full := "/" + service + "/" + m.Name
			c.methods[full] = c.newMethod(full)
		}
	}
}

func (c *calls) newMethod(full string) *method {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	labels := prometheus.Labels{"service": service, "method": name}
	return &method{
		ok:       c.total.MustCurryWith(labels).WithLabelValues(codes.OK.String()),
		duration: sync.OnceValue(func() prometheus.Observer { return c.duration.With(labels) }),
		labels:   labels,
	}
}

// of returns a method's metrics. One that nobody expected is looked up each time.
func (c *calls) of(full string) *method {
	if m := c.methods[full]; m != nil {
		return m
	}
	return c.newMethod(full)
}

func (c *calls) ended(m *method, err error) {
	if err == nil {
		m.ok.Inc()
		return
	}
	c.total.MustCurryWith(m.labels).WithLabelValues(status.Code(err).String()).Inc()
}

// CountUnary is an interceptor that counts and times calls.
func (m *Metrics) CountUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	began := time.Now()
	response, err := handle(ctx, request)
	called := m.calls.of(info.FullMethod)
	called.duration().Observe(time.Since(began).Seconds())
	m.calls.ended(called, err)
	return response, err
}

// CountStream is an interceptor that counts streams.
func (m *Metrics) CountStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(server, stream)
	m.calls.ended(m.calls.of(info.FullMethod), err)
	return err
}
