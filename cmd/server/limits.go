package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/doorkeeper"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/telemetry"
)

const (
	// slowest is how long a client over HTTP may take to send a request's header, to send the rest of it, and to read a
	// piece of an answer.
	headerTime, bodyTime, writeTime = 5 * time.Second, 20 * time.Second, 30 * time.Second
	// webHeaderBytes bounds the header of a request over HTTP.
	webHeaderBytes = 64 << 10
)

// limits is what a server takes on at most.
type limits struct {
	calling, streaming *grpcserver.Crowd
	grpc, web          *doorkeeper.Listener
	http               doorkeeper.Limits
}

// newLimits listens, too.
func newLimits(c *config.Config) (*limits, error) {
	grpc, err := net.Listen("tcp", c.GRPCAddr)
	if err != nil {
		return nil, fmt.Errorf("gRPC: %w", err)
	}
	web, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("HTTP: %w", err), grpc.Close())
	}
	return &limits{
		calling:   grpcserver.NewCrowd("calls", c.MaxCalls, c.MaxCallsPerCaller),
		streaming: grpcserver.NewCrowd("streams", c.MaxStreams, c.MaxStreamsPerCaller),
		grpc:      doorkeeper.NewListener(grpc, c.MaxConnections),
		web:       doorkeeper.NewListener(web, c.MaxConnections),
		http:      doorkeeper.Limits{Body: bodyTime, Write: writeTime, Bytes: int64(c.MaxMessageBytes)},
	}, nil
}

func (l *limits) close() error { return errors.Join(l.grpc.Close(), l.web.Close()) }

// options are the limits of the gRPC server.
func (l *limits) options(c *config.Config, o grpcserver.Options) grpcserver.Options {
	o.Calling, o.Streaming = l.calling, l.streaming
	o.CallTimeout, o.RequireDeadlines = c.CallTimeout, c.RequireDeadlines
	o.MaxMessageBytes, o.MaxStreamsPerConnection, o.MaxConnectionAge = int(c.MaxMessageBytes), c.MaxStreamsPerConnection, c.MaxConnectionAge
	return o
}

// server returns the HTTP server.
func (l *limits) server(handler http.Handler) *http.Server {
	return &http.Server{Handler: l.http.Handler(handler), ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute, MaxHeaderBytes: webHeaderBytes}
}

// watched tells metrics how full the server is.
func (l *limits) watched(m *telemetry.Metrics) {
	m.WatchLoad(func() telemetry.Load {
		calls, streams := l.calling.Stats(), l.streaming.Stats()
		load := telemetry.Load{Calls: telemetry.Crowd(calls), Streams: telemetry.Crowd(streams)}
		load.GRPC.Open, load.GRPC.Refused = l.grpc.Stats()
		load.HTTP.Open, load.HTTP.Refused = l.web.Stats()
		return load
	})
}
