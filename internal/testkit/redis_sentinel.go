package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

const (
	sentinels  = 3
	masterName = "mymaster"
)

// RedisSentinel returns a Redis of the test's own with a replica, watched by three
// Sentinels. They end with the test.
func RedisSentinel(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	master := RedisServer(t, "--repl-diskless-sync-delay", "0")
	port := strconv.Itoa(master.process.port)
	replica := RedisServer(t, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 "+port)
	s.Servers = []*PrivateRedis{master, replica}
	var hosts []string
	for range sentinels {
		process := startSentinel(t, port)
		s.watchers = append(s.watchers, process)
		hosts = append(hosts, process.address())
	}
	s.URL = "redis-sentinel://" + strings.Join(hosts, ",") + "/" + masterName
	err := s.each(func(ctx context.Context, client *redis.SentinelClient) error {
		return until(ctx, func() error {
			state, err := client.Master(ctx, masterName).Result()
			if err != nil || state["num-slaves"] != "1" || state["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
				return errors.Join(err, fmt.Errorf("%v", state))
			}
			replicas, err := client.Replicas(ctx, masterName).Result()
			if err != nil || replicas[0]["master-link-status"] != "ok" {
				return errors.Join(err, fmt.Errorf("%v", replicas))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatalf("testkit: Sentinels: %v", err)
	}
	return s
}

func startSentinel(t testing.TB, masterPort string) *redisProcess {
	dir := t.TempDir()
	settings := filepath.Join(dir, "sentinel.conf") // where it writes down what it knows
	text := fmt.Sprintf("sentinel monitor %s 127.0.0.1 %s %d\nsentinel down-after-milliseconds %[1]s %[4]s\n",
		masterName, masterPort, sentinels/2+1, patient)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := startRedis(dir, nil, settings, "--sentinel")
	if err != nil {
		t.Fatalf("testkit: a Sentinel: %v", err)
	}
	watcher := lend(t, process)
	t.Cleanup(func() {
		watcher.Kill()
		watcher.logIfFailed()
	})
	return process
}

// Sentinels watch a master and its replica. The methods are for the test's
// goroutine.
type Sentinels struct {
	URL     string
	Servers []*PrivateRedis // the first one was the master at the beginning

	t        testing.TB
	watchers []*redisProcess
}

// Master returns the master, as the first Sentinel knows.
func (s *Sentinels) Master() *PrivateRedis {
	s.t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: s.watchers[0].address()})
	defer func() { _ = client.Close() }()
	at, err := client.GetMasterAddrByName(Context(s.t), masterName).Result()
	if err != nil {
		s.t.Fatalf("testkit: %v", err)
	}
	i := slices.IndexFunc(s.Servers, func(r *PrivateRedis) bool { return strconv.Itoa(r.process.port) == at[1] })
	return s.Servers[i]
}

// Hasten makes the replica take over from a master that says nothing for half a
// second, instead of a minute.
func (s *Sentinels) Hasten() {
	s.t.Helper()
	err := s.each(func(ctx context.Context, client *redis.SentinelClient) error {
		return client.Set(ctx, masterName, "down-after-milliseconds", impatient).Err()
	})
	if err != nil {
		s.t.Fatalf("testkit: %v", err)
	}
}

// each does something on all Sentinels at once.
func (s *Sentinels) each(do func(context.Context, *redis.SentinelClient) error) error {
	ctx := Context(s.t)
	var group errgroup.Group
	for _, watcher := range s.watchers {
		group.Go(func() error {
			client := redis.NewSentinelClient(&redis.Options{Addr: watcher.address(), MaxRetries: -1})
			defer func() { _ = client.Close() }()
			return do(ctx, client)
		})
	}
	return group.Wait()
}
