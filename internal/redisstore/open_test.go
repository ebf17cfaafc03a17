package redisstore

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestOpenUsesTheWholeAddress(t *testing.T) {
	url := testkit.Redis(t)
	ctx := testkit.Context(t)
	if err := open(t, url).ConfigSet(ctx, "requirepass", "s,e/cret").Err(); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0")
	if err := open(t, "redis://:s%2Ce%2Fcret@"+host+"/3").Set(ctx, "key", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	keys, err := open(t, "redis://default:s%2Ce%2Fcret@"+host+"/3").DBSize(ctx).Result()
	if err != nil || keys != 1 {
		t.Errorf("%d keys, %v", keys, err)
	}
	if err := open(t, url).Ping(ctx).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the password: %v", err)
	}
}

func TestOpenKinds(t *testing.T) {
	for _, url := range []string{"redis://u:p@h:1/2", "rediss://h", "unix:///run/redis.sock?db=2"} {
		client, ok := open(t, url).(*redis.Client)
		if !ok {
			t.Fatalf("%s: not a client of one Redis", url)
		}
		o := client.Options()
		if o.DialTimeout != dialTimeout || o.ReadTimeout != readTimeout || o.WriteTimeout != writeTimeout || o.MaxRetries != 0 {
			t.Errorf("%s: unbounded, or tries again: %+v", url, o)
		}
		if unix := strings.HasPrefix(url, "unix"); unix != (o.Network == "unix") || (o.TLSConfig != nil) != strings.HasPrefix(url, "rediss") {
			t.Errorf("%s: network %s, TLS %v", url, o.Network, o.TLSConfig)
		}
	}
	for _, url := range []string{"a:1,b:2", "redis-cluster://a"} {
		client, ok := open(t, url).(*redis.ClusterClient)
		if !ok {
			t.Fatalf("%s: not a client of a Cluster", url)
		}
		if o := client.Options(); o.ClusterStateReloadInterval != clusterAge || o.ReadTimeout != readTimeout || o.MaxRetries > 0 {
			t.Errorf("%s: %+v", url, o)
		}
	}
	if _, err := Open("redis://:secret@h:x"); err == nil || err.Error() != "address of Redis: port: must be a number from 1 to 65535" {
		t.Errorf("got %v", err)
	}
}
