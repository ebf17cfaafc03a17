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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

const (
	primaries = 3
	slots     = 16384

	// How long nodes of a Cluster wait for one another: short where a test wants a replica to take over, and long
	// where none must only because the machine is busy.
	impatient = "500"
	patient   = "60000"
)

// RedisCluster lends the test the Redis Cluster of this process: three primaries,
// each with a replica, all of them well, and no keys. One test has it at a time;
// the next one gets it repaired. It is started when it is first asked for, ends
// with Main, and on Linux also when the test process is killed.
func RedisCluster(t testing.TB) *Cluster {
	t.Helper()
	sharedCluster.mu.Lock()
	t.Cleanup(sharedCluster.mu.Unlock)
	if err := sharedCluster.ready(Context(t)); err != nil {
		t.Fatalf("testkit: a Redis Cluster: %v", err)
	}
	c := &Cluster{t: t}
	var hosts []string
	for _, process := range sharedCluster.nodes {
		c.Nodes = append(c.Nodes, lend(t, process))
		hosts = append(hosts, process.address())
	}
	c.URL = "redis-cluster://" + strings.Join(hosts, ",")
	t.Cleanup(func() {
		for _, node := range c.Nodes {
			node.logIfFailed()
		}
	})
	return c
}

// Cluster is a Redis Cluster for a test to disturb. Its methods are for the
// test's goroutine.
type Cluster struct {
	URL   string // of all nodes
	Nodes []*PrivateRedis

	t testing.TB
}

// Primary returns the node that serves a key, as the nodes that run know.
func (c *Cluster) Primary(key string) *PrivateRedis {
	c.t.Helper()
	for _, node := range sharedCluster.nodes {
		if node.process == nil {
			continue
		}
		at, err := primaryOf(Context(c.t), node, key)
		if err != nil {
			continue // paused, perhaps
		}
		i := slices.IndexFunc(sharedCluster.nodes, func(n *redisProcess) bool { return n.address() == at })
		return c.Nodes[i]
	}
	c.t.Fatalf("testkit: nobody knows who serves %q", key)
	return nil
}

// Hasten makes replicas take over from a primary that says nothing for half a
// second, instead of a minute.
func (c *Cluster) Hasten() {
	c.t.Helper()
	if err := sharedCluster.setPatience(Context(c.t), impatient); err != nil {
		c.t.Fatalf("testkit: %v", err)
	}
}

func primaryOf(ctx context.Context, node *redisProcess, key string) (address string, err error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.address()}, ReadTimeout: 2 * time.Second, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	primary, err := client.MasterForKey(ctx, key)
	if err != nil {
		return "", err
	}
	return primary.Options().Addr, nil
}

func (r *redisProcess) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.address(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Second})
}

// sharedCluster is the Cluster of this test process.
var sharedCluster cluster

type cluster struct {
	mu    sync.Mutex // held by the test that has it
	nodes []*redisProcess
	dir   string
}

// ready starts the Cluster, or repairs it, and empties it.
func (c *cluster) ready(ctx context.Context) error {
	if !shared.isManaged() {
		return errNoMain
	}
	if c.nodes == nil {
		if err := c.form(ctx); err != nil {
			return errors.Join(err, c.stop())
		}
	} else if err := c.repair(ctx); err != nil {
		return err
	}
	if err := c.awaitHealth(ctx); err != nil {
		return err
	}
	if err := c.setPatience(ctx, patient); err != nil {
		return err
	}
	return c.each(func(client *redis.Client) error {
		role, err := client.Do(ctx, "ROLE").Slice()
		if err != nil || role[0] != "master" {
			return err
		}
		return client.FlushAll(ctx).Err()
	})
}

// form starts the nodes and introduces them to one another.
func (c *cluster) form(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", dirPrefix+"redis-"); err != nil {
		return err
	}
	c.nodes = make([]*redisProcess, 2*primaries)
	var group errgroup.Group
	for i := range c.nodes {
		dir := filepath.Join(c.dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		group.Go(func() (err error) {
			c.nodes[i], err = startRedis(dir, nil, append(slices.Clone(withoutDisk), "--cluster-enabled", "yes",
				"--cluster-node-timeout", impatient, "--cluster-migration-barrier", "9", // replicas stay
				"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	ids := make([]string, len(c.nodes))
	err = c.eachNumbered(func(i int, client *redis.Client) (err error) {
		if ids[i], err = client.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
			return err
		}
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if i < primaries {
			if err := client.ClusterAddSlotsRange(ctx, i*slots/primaries, (i+1)*slots/primaries-1).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Only now: a node that has met another one takes no epoch any more.
	err = c.eachNumbered(func(i int, client *redis.Client) error {
		for k, other := range c.nodes {
			if k == i {
				continue // a replica that hears itself late, as the primary it was, takes itself for one for ever
			}
			if err := client.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(other.port)).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.eachNumbered(func(i int, client *redis.Client) error {
		if i < primaries {
			return nil
		}
		return until(ctx, func() error { return client.ClusterReplicate(ctx, ids[i-primaries]).Err() })
	})
}

// repair lets all nodes run.
func (c *cluster) repair(ctx context.Context) error {
	for _, node := range c.nodes {
		if node.process == nil {
			if err := node.start(); err != nil {
				return err
			}
		} else if err := node.signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	return c.setPatience(ctx, impatient)
}

// awaitHealth waits until every slot has a primary, every primary has a replica
// that is up to date, and all nodes agree who has which slots. A replica that
// took over without having heard of it would take back what had moved.
func (c *cluster) awaitHealth(ctx context.Context) error {
	return until(ctx, func() error {
		owners := make([]string, len(c.nodes))
		err := c.eachNumbered(func(i int, client *redis.Client) (err error) {
			owners[i], err = healthyOwners(ctx, client)
			return err
		})
		if err != nil {
			return err
		}
		if different := slices.Compact(owners); len(different) > 1 {
			return fmt.Errorf("nodes disagree who has which slots: %q", different)
		}
		return nil
	})
}

// healthyOwners tells who has which slots, as a node knows. It fails if the node
// is not well, or knows of one that is not.
func healthyOwners(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6", "cluster_size:3"} {
		if !strings.Contains(info, want) {
			return "", fmt.Errorf("not %s: %s", want, info)
		}
	}
	replication, err := client.Info(ctx, "replication").Result()
	if err != nil || !strings.Contains(replication, "connected_slaves:1") && !strings.Contains(replication, "master_link_status:up") {
		return "", errors.Join(err, errors.New(replication))
	}
	nodes, err := client.ClusterNodes(ctx).Result()
	if err != nil || strings.Count(nodes, "slave ") != primaries {
		return "", errors.Join(err, errors.New(nodes))
	}
	for _, bad := range []string{"fail", "handshake", "->-", "-<-"} { // the last two: slots that move
		if strings.Contains(nodes, bad) {
			return "", fmt.Errorf("%s: %s", bad, nodes)
		}
	}
	var owners []string
	for line := range strings.Lines(nodes) {
		if fields := strings.Fields(line); len(fields) > 8 {
			owners = append(owners, fields[0]+" "+strings.Join(fields[8:], " "))
		}
	}
	slices.Sort(owners)
	return strings.Join(owners, ", "), nil
}

func (c *cluster) setPatience(ctx context.Context, milliseconds string) error {
	return c.each(func(client *redis.Client) error {
		return client.ConfigSet(ctx, "cluster-node-timeout", milliseconds).Err()
	})
}

func (c *cluster) each(do func(*redis.Client) error) error {
	return c.eachNumbered(func(_ int, client *redis.Client) error { return do(client) })
}

// eachNumbered does something on all nodes at once.
func (c *cluster) eachNumbered(do func(i int, client *redis.Client) error) error {
	var group errgroup.Group
	for i, node := range c.nodes {
		group.Go(func() error {
			client := node.client()
			defer func() { _ = client.Close() }()
			if err := do(i, client); err != nil {
				return fmt.Errorf("node %d: %w", node.port, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// stop ends all nodes, and removes what they wrote.
func (c *cluster) stop() error {
	var errs []error
	for _, node := range c.nodes {
		if node != nil {
			errs = append(errs, node.kill())
		}
	}
	c.nodes = nil
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// until tries until there is no error, or ctx ends.
func until(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
