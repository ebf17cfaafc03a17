package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Load is how full a server is.
type Load struct {
	Calls, Streams Crowd
	GRPC, HTTP     Door
}

// Crowd is what is under way of one kind, and how much was refused since the server, or since the caller, had too much.
type Crowd struct {
	Inside                        int64
	RefusedServer, RefusedCallers uint64
}

// Door is the connections to one address: how many are open, and how many were closed at once as there were too many.
type Door struct {
	Open    int
	Refused uint64
}

// WatchLoad reads the metrics of how full the server is.
func (m *Metrics) WatchLoad(load func() Load) {
	underWay := func(kind string, of func(Load) float64) reading[Load] {
		return labelled("load_under_way", "Unary calls, and streams, that are under way. At max_calls and max_streams, more are refused.",
			prometheus.Labels{"kind": kind}, prometheus.GaugeValue, of)
	}
	refused := func(kind, limit string, of func(Load) float64) reading[Load] {
		return labelled("load_refused_total", "Calls and streams that were refused: since the server has as many as it takes, or since the caller has.",
			prometheus.Labels{"kind": kind, "limit": limit}, prometheus.CounterValue, of)
	}
	open := func(protocol string, of func(Load) float64) reading[Load] {
		return labelled("connections", "Open connections of clients.", prometheus.Labels{"protocol": protocol}, prometheus.GaugeValue, of)
	}
	closed := func(protocol string, of func(Load) float64) reading[Load] {
		return labelled("connections_refused_total", "Connections that were closed at once: max_connections were open, or half as many of one address.",
			prometheus.Labels{"protocol": protocol}, prometheus.CounterValue, of)
	}
	m.registry.MustRegister(readings[Load]{load, []reading[Load]{
		underWay("call", func(l Load) float64 { return float64(l.Calls.Inside) }),
		underWay("stream", func(l Load) float64 { return float64(l.Streams.Inside) }),
		refused("call", "server", func(l Load) float64 { return float64(l.Calls.RefusedServer) }),
		refused("call", "caller", func(l Load) float64 { return float64(l.Calls.RefusedCallers) }),
		refused("stream", "server", func(l Load) float64 { return float64(l.Streams.RefusedServer) }),
		refused("stream", "caller", func(l Load) float64 { return float64(l.Streams.RefusedCallers) }),
		open("grpc", func(l Load) float64 { return float64(l.GRPC.Open) }),
		open("http", func(l Load) float64 { return float64(l.HTTP.Open) }),
		closed("grpc", func(l Load) float64 { return float64(l.GRPC.Refused) }),
		closed("http", func(l Load) float64 { return float64(l.HTTP.Refused) }),
	}})
}
