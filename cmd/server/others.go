package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/redisstore"
)

// others are the other servers of the database, reached through Redis. Without Redis the zero value does: the
// others find what was written when they poll.
type others struct {
	client  redis.UniversalClient
	wakeups *redisstore.Wakeups
}

func newOthers(c *config.Config, database uint64, log *slog.Logger) (others, error) {
	if c.RedisURL == "" {
		return others{}, nil
	}
	client, err := redisstore.Open(string(c.RedisURL))
	if err != nil {
		return others{}, fmt.Errorf("redis_url: %w", err)
	}
	return others{client, redisstore.NewWakeups(client, database, log)}, nil
}

// tell tells that something was committed here.
func (o others) tell() {
	if o.wakeups != nil {
		o.wakeups.Publish()
	}
}

// listen calls wake whenever something was committed elsewhere, until ctx ends.
func (o others) listen(ctx context.Context, wake func()) error {
	if o.wakeups == nil {
		return nil
	}
	return o.wakeups.Run(ctx, wake)
}

func (o others) close() error {
	if o.client == nil {
		return nil
	}
	return o.client.Close()
}
