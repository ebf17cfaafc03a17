package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/redisstore"
	"github.com/toolgrant/toolgrant/internal/telemetry"
)

// others are the other servers of the database, reached through Redis. A server that was given no Redis has one in its
// process, and is alone: the others find what was written when they poll.
type others struct {
	client  redis.UniversalClient
	private *miniredis.Miniredis
	traffic *redisstore.Traffic
	wakeups *redisstore.Wakeups
	nodes   *redisstore.Nodes
	ledger  *redisstore.Ledger
	slices  *redisstore.Slices
	health  health.Shared     // nil: there are no others
	calls   *redisstore.Calls // nil, too
}

// healthTimeout bounds each exchange about the health of tools. A call that may be a probe waits for one.
const healthTimeout = 250 * time.Millisecond

func newOthers(c *config.Config, store *postgres.Store, log *slog.Logger) (o others, err error) {
	url := string(c.RedisURL)
	if url == "" {
		o.private = miniredis.NewMiniRedis()
		o.private.ClockTTL(true)
		if err := o.private.Start(); err != nil {
			return others{}, fmt.Errorf("private Redis: %w", err)
		}
		log.Info("no redis_url is set: the counters of quotas are in this process; those over less than an hour begin anew with it")
		url = "redis://" + o.private.Addr() + "/0"
	}
	if o.client, err = redisstore.Open(url); err != nil {
		return others{}, fmt.Errorf("redis_url: %w", err)
	}
	o.traffic = redisstore.NewTraffic(o.client)
	o.nodes = redisstore.NewNodes(o.client, store.Database())
	o.ledger = redisstore.NewLedger(o.client, store.Database(), c.QuotaTimeout, redisstore.Archive(store.QuotaCounters(), log))
	o.slices = redisstore.NewSlices(o.ledger)
	if o.private == nil {
		o.wakeups = redisstore.NewWakeups(o.client, store.Database(), log)
		o.health = redisstore.NewHealth(o.client, store.Database(), healthTimeout)
		o.calls = redisstore.NewCalls(o.client, store.Database(), c.QuotaTimeout, log)
	}
	return o, nil
}

// gate returns what decides about quotas.
func (o others) gate(log *slog.Logger) *quota.Gate {
	return quota.NewGate(quota.GateOptions{
		Ledger: o.ledger,
		Slices: o.slices,
		Nodes:  o.nodes.Count,
		Outage: func(begins bool) {
			if begins {
				log.Warn("Redis does not answer: until it does, each quota's on_outage decides")
			} else {
				log.Info("Redis answers again: it counts quotas")
			}
		},
	})
}

// memory remembers which calls were allowed.
func (o others) memory() *call.Memory {
	if o.calls == nil {
		return call.NewMemory(nil)
	}
	return call.NewMemory(o.calls)
}

// watched tells metrics how Redis and the copies of its counters do.
func (o others) watched(m *telemetry.Metrics) {
	m.WatchRedis(func() (commands, failures uint64, pool *redis.PoolStats) {
		s := o.traffic.Stats()
		return s.Commands, s.Failures, s.Pool
	})
	m.WatchArchive(func() (waiting int, dropped uint64) {
		s := o.ledger.ArchiveStats()
		return s.Waiting, s.Dropped
	})
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

// close gives back what was leased of SYSTEM rules, and writes to the database what its counters lack.
func (o others) close(ctx context.Context) error {
	o.slices.Close(ctx)
	if o.calls != nil {
		o.calls.Close(ctx)
	}
	err := o.ledger.Close(ctx)
	if err != nil {
		err = fmt.Errorf("counters of quotas could not be written: %w", err)
	}
	err = errors.Join(err, o.client.Close())
	if o.private != nil {
		o.private.Close()
	}
	return err
}
