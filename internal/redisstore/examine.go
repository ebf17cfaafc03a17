package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/checkup"
)

// oldestMajor is the oldest Redis that tests run on.
const oldestMajor = 7

// Examine tells what is wrong with a Redis. It writes one key, which expires.
func Examine(ctx context.Context, url string) checkup.Report {
	var r checkup.Report
	client, err := Open(url)
	if err != nil {
		r.Bad("Redis", err.Error(), "redis_url must be a URL such as redis://user:password@host:6379/0")
		return r
	}
	defer func() { _ = client.Close() }()
	if err := client.Ping(ctx).Err(); err != nil {
		r.Bad("Redis", err.Error(), redisAdvice(err))
		return r
	}
	examineInfo(ctx, client, &r)
	examineUse(ctx, client, &r)
	return r
}

func redisAdvice(err error) string {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "WRONGPASS"):
		return "see whether user and password of redis_url are right"
	case strings.HasPrefix(text, "NOPERM"):
		return "give the user the rights that docs/operations.md lists"
	case strings.HasPrefix(text, "CLUSTERDOWN"):
		return "the Cluster has slots without a primary: see CLUSTER INFO at its nodes"
	case strings.HasPrefix(text, "LOADING"):
		return "wait until it has read its file"
	}
	return "see whether it runs, listens on that address, and can be reached from here; until it does, each quota's on_outage decides"
}

// examineInfo reads what Redis says of itself.
func examineInfo(ctx context.Context, client redis.UniversalClient, r *checkup.Report) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		r.Note("Redis: settings", err.Error(), "they can't be looked at; the user needs +info")
		return
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestMajor {
		r.Note("Redis: version", version, fmt.Sprintf("tests run on %d and newer", oldestMajor))
	} else {
		r.OK("Redis: version", "%s", version)
	}
	if info["role"] == "slave" {
		r.Bad("Redis: role", "it is a replica, and takes no writes", "name the master, or Sentinels, or nodes of a Cluster")
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		r.Bad("Redis: maxmemory-policy", policy, "set noeviction: others throw counters of quotas away when memory is short")
	} else {
		r.OK("Redis: maxmemory-policy", "%s", policy)
	}
	if info["aof_enabled"] != "1" {
		r.Note("Redis: appendonly", "no", "set it to yes: otherwise a restart forgets counters over less than an hour, and reservations")
	} else {
		r.OK("Redis: appendonly", "yes")
	}
	if status := info["aof_last_write_status"]; status != "" && status != "ok" {
		r.Bad("Redis: disk", "the last write of its file failed", "see its log")
	}
}

// examineUse does what a server does.
func examineUse(ctx context.Context, client redis.UniversalClient, r *checkup.Report) {
	before := time.Now()
	theirs, err := client.Time(ctx).Result()
	if err != nil {
		r.Bad("Redis: clock", err.Error(), redisAdvice(err))
	} else {
		r.Clock("Redis: clock", before, theirs, time.Now())
	}
	key := fmt.Sprintf("toolgrant:doctor:%x", rand.Uint64())
	script := redis.NewScript("redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000) return redis.call('GET', KEYS[1])")
	value, err := script.Run(ctx, client, []string{key}, "here").Text()
	if err == nil && value != "here" {
		err = errors.New("what was written is not read")
	}
	if err != nil {
		r.Bad("Redis: scripts", err.Error(), redisAdvice(err))
	} else {
		r.OK("Redis: scripts", "run")
	}
	if err := client.Publish(ctx, "toolgrant:doctor", "").Err(); err != nil {
		r.Bad("Redis: wake-ups", err.Error(), redisAdvice(err))
	} else {
		r.OK("Redis: wake-ups", "can be sent")
	}
}
