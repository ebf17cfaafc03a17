package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
)

// drain ends a server without failing a call. First it says that it is not ready, and goes on as if nothing were,
// until balancers have noticed. Then it takes no more connections, has clients go elsewhere with their next calls, ends
// streams, and waits for the calls that are under way.
type drain struct {
	monitor *monitor
	streams *grpcserver.Drain
	web     *http.Server
	server  *grpc.Server
	mcp     *mcpSide
	log     *slog.Logger
}

// run returns when nothing is under way any more, or when that takes too long. Unless asked to end, it is in a hurry.
func (d *drain) run(ctx context.Context, c *config.Config, asked bool) error {
	d.monitor.drain()
	d.log.InfoContext(ctx, "shutting down")
	if asked {
		time.Sleep(c.DrainDelay)
	}
	limit, cancel := context.WithTimeout(ctx, c.ShutdownTimeout)
	defer cancel()
	d.mcp.gateway.Close()
	d.streams.EndHTTP()
	if err := d.web.Shutdown(limit); err != nil {
		// gRPC's farewell must not meet calls over HTTP.
		d.streams.End()
		d.server.Stop()
		return errors.Join(err, d.web.Close())
	}
	drained := make(chan struct{})
	go func() {
		d.server.GracefulStop()
		close(drained)
	}()
	d.streams.End()
	select {
	case <-drained:
	case <-limit.Done():
		d.log.WarnContext(ctx, "calls were cut off: they took longer than shutdown_timeout")
		d.server.Stop()
	}
	return nil
}
