package testkit

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisClusterIsRepaired(t *testing.T) {
	const key = "key"
	t.Run("disturbed", func(t *testing.T) {
		c := RedisCluster(t)
		client := clusterClient(t, c)
		if err := client.Set(Context(t), key, 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		c.Hasten()
		primary := c.Primary(key)
		primary.Kill()
		if err := until(Context(t), func() error { return client.Set(Context(t), key, 2, 0).Err() }); err != nil {
			t.Fatal(err)
		}
		if c.Primary(key) == primary {
			t.Error("no replica took over")
		}
		c.Primary(key).Pause()
	})
	c := RedisCluster(t)
	n, err := clusterClient(t, c).Exists(Context(t), key).Result()
	if err != nil || n != 0 {
		t.Errorf("%d keys, %v", n, err)
	}
}

func clusterClient(t *testing.T, c *Cluster) *redis.ClusterClient {
	var hosts []string
	for _, node := range c.Nodes {
		hosts = append(hosts, node.Address())
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: hosts, ClusterStateReloadInterval: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRedisSentinelReplacesTheMaster(t *testing.T) {
	s := RedisSentinel(t)
	master := s.Master()
	if master != s.Servers[0] {
		t.Fatal("the first server is not the master")
	}
	s.Hasten()
	master.Kill()
	err := until(Context(t), func() error {
		if s.Master() == master {
			return errors.New("no replica took over")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
