package redisstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Traffic counts what a client asks of Redis, and how often that fails.
type Traffic struct {
	client           redis.UniversalClient
	commands, failed atomic.Uint64
}

// TrafficStats is what Traffic counted since it began. Subscriptions are not in it, nor what begins a connection.
type TrafficStats struct {
	Commands uint64
	// Failures are commands that were not answered in time, or with an error. Values that are not there and scripts
	// that Redis must be told first are no failures, nor are callers who went away.
	Failures uint64
	// Pool is of the connections; in a Cluster, of all nodes together.
	Pool *redis.PoolStats
}

// NewTraffic counts a client's commands from now on. It must be called before the client is used.
func NewTraffic(client redis.UniversalClient) *Traffic {
	t := &Traffic{client: client}
	client.AddHook((*trafficHook)(t))
	return t
}

// Stats returns what was counted.
func (t *Traffic) Stats() TrafficStats {
	return TrafficStats{t.commands.Load(), t.failed.Load(), t.client.PoolStats()}
}

func (t *Traffic) count(cmds ...redis.Cmder) {
	commands, failed := uint64(0), uint64(0)
	for _, cmd := range cmds {
		if introduces(cmd) {
			continue
		}
		commands++
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, context.Canceled) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			failed++
		}
	}
	t.commands.Add(commands)
	t.failed.Add(failed)
}

// introduces tells whether a command is one of those by which go-redis begins a connection. Older servers know some of
// them not.
func introduces(cmd redis.Cmder) bool {
	switch cmd.Args()[0] {
	case "hello", "client", "auth", "select":
		return true
	}
	return false
}

// trafficHook is how go-redis tells of commands.
type trafficHook Traffic

var _ redis.Hook = (*trafficHook)(nil)

// DialHook implements redis.Hook.
func (h *trafficHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *trafficHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		cmd.SetErr(err) // as go-redis does later
		(*Traffic)(h).count(cmd)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *trafficHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		(*Traffic)(h).count(cmds...)
		return err
	}
}
