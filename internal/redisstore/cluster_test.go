package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func onCluster(t testing.TB) *suite {
	s := newSuite(t, openFor(t, testkit.RedisCluster(t).URL))
	// No key would be on the node of every user, so the time is written into the scripts.
	s.clock = func(at time.Time) {
		clock := fmt.Sprintf("{%d, %d}", at.Unix(), at.Nanosecond()/1000)
		s.scripts = newScripts(strings.NewReplacer(readsTheTime, clock))
	}
	s.set(s.now)
	return s
}

// slot is one of a Cluster, to be moved from node to node.
type slot struct {
	t      *testing.T
	number int
	nodes  []*redis.Client // all of them
	ids    []string
	hosts  []string
	at     int // the node that has it
}

// slotOf is the slot of all keys of a user of the first database.
func slotOf(t *testing.T, c *testkit.Cluster, user string) *slot {
	t.Helper()
	return slotOfTag(t, c, "{u:"+user+"}")
}

// slotOfTag is the slot of all keys with a tag.
func slotOfTag(t *testing.T, c *testkit.Cluster, tag string) *slot {
	t.Helper()
	ctx := testkit.Context(t)
	s := &slot{t: t}
	primary := c.Primary(tag)
	for i, node := range c.Nodes {
		client := openFor(t, node.URL).(*redis.Client)
		number, err := client.ClusterKeySlot(ctx, tag).Result()
		if err != nil {
			t.Fatal(err)
		}
		id, err := client.Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		s.number, s.nodes, s.ids, s.hosts = int(number), append(s.nodes, client), append(s.ids, id), append(s.hosts, node.Address())
		if node == primary {
			s.at = i
		}
	}
	return s
}

// another returns a primary that does not have the slot, another one with each number.
func (s *slot) another(number int) int {
	var others []int
	for i, node := range s.nodes {
		role, err := node.Do(testkit.Context(s.t), "ROLE").Slice()
		if err != nil {
			s.t.Fatal(err)
		}
		if role[0] == "master" && i != s.at {
			others = append(others, i)
		}
	}
	return others[number%len(others)]
}

func (s *slot) set(node int, how ...any) {
	s.t.Helper()
	if err := s.nodes[node].Do(testkit.Context(s.t), append([]any{"CLUSTER", "SETSLOT", s.number}, how...)...).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// begin begins to move the slot.
func (s *slot) begin(to int) {
	s.t.Helper()
	s.set(to, "IMPORTING", s.ids[s.at])
	s.set(s.at, "MIGRATING", s.ids[to])
}

// moveKeys moves some keys, and tells whether there were any.
func (s *slot) moveKeys(to, most int) bool {
	s.t.Helper()
	ctx := testkit.Context(s.t)
	keys, err := s.nodes[s.at].ClusterGetKeysInSlot(ctx, s.number, most).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	if len(keys) == 0 {
		return false
	}
	host, port, _ := strings.Cut(s.hosts[to], ":")
	args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	if err := s.nodes[s.at].Do(ctx, args...).Err(); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// end tells all primaries who has the slot now.
func (s *slot) end(to int) {
	s.t.Helper()
	s.set(to, "NODE", s.ids[to])
	s.set(s.at, "NODE", s.ids[to])
	s.at = to
}

// abandon leaves the slot where it is. No key may have been moved.
func (s *slot) abandon(to int) {
	s.t.Helper()
	s.set(s.at, "STABLE")
	s.set(to, "STABLE")
}

// allow makes a user of Redis's access control, password p, on every server.
func allow(t *testing.T, name string, urls []string, rules ...any) {
	t.Helper()
	for _, url := range urls {
		command := append([]any{"ACL", "SETUSER", name, "reset", "on", ">p"}, rules...)
		if err := openFor(t, url).Do(testkit.Context(t), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually repeats what fails, until it does not, and returns how long that took.
func eventually(ctx context.Context, t *testing.T, what func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		err := what()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Errorf("it still fails: %v", err)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begin)
}
