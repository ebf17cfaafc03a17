package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// healthKept is how long Redis keeps a record that nobody writes.
	healthKept = 24 * time.Hour
	// healthSubjects is of how many subjects Redis keeps records. Those are forgotten that nobody wrote for the longest
	// time.
	healthSubjects = 10_000
)

var _ health.Shared = (*Health)(nil)

// Health has the records of tools' and servers' health in common for all nodes of a database. Redis knows nothing of
// what is in a record: it takes one if nobody changed it since the node read it, and numbers the writes. One exchange
// is one script.
//
// All is in two keys with one hash tag, so in a Cluster in one place: a node tells and hears of all subjects at once.
// They expire two days after the last write.
//
//	toolgrant:<database>:{health}:records   the records, by subject (hash)
//	toolgrant:<database>:{health}:versions  the versions of their last writes (sorted set)
//
// Nothing here needs to survive: nodes have copies, and write them again when Redis lost them.
type Health struct {
	client  redis.UniversalClient
	script  *redis.Script
	keys    []string
	timeout time.Duration
}

// NewHealth is for the nodes of a database, which the number identifies. The timeout bounds each exchange. A user of
// Redis's access control needs the keys toolgrant:* and EVAL, EVALSHA, TIME, HGET, HMGET, HSET, HDEL, ZADD, ZREM,
// ZSCORE, ZCARD, ZRANGE, ZRANGEBYSCORE, PEXPIRE.
func NewHealth(client redis.UniversalClient, database uint64, timeout time.Duration) *Health {
	prefix := fmt.Sprintf("toolgrant:%016x:{health}:", database)
	return &Health{client: client, script: redis.NewScript(text("health")), keys: []string{prefix + "records", prefix + "versions"}, timeout: timeout}
}

// Exchange implements health.Shared.
func (h *Health) Exchange(ctx context.Context, x health.Exchange) (health.News, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	args := make([]any, 0, 5+3*len(x.Offers))
	args = append(args, x.Epoch, int64(x.Since), rand.Text(), healthKept.Microseconds(), healthSubjects)
	for i := range x.Offers {
		args = append(args, field(x.Offers[i].Subject), int64(x.Offers[i].Version), encodeHealth(&x.Offers[i].Record, x.Offers[i].Mark))
	}
	answer, err := h.script.Run(ctx, h.client, h.keys, args...).Slice()
	if err != nil {
		return health.News{}, fmt.Errorf("health in Redis: %w", err)
	}
	news, err := readNews(answer, len(x.Offers))
	if err != nil {
		return health.News{}, fmt.Errorf("health in Redis: %w", err)
	}
	return news, nil
}

// field is a subject's name in the hash.
func field(s health.Subject) string {
	if s.Server != "" {
		return "s:" + string(s.Server)
	}
	return "t:" + string(s.Tool)
}

func parseField(name string) (s health.Subject, ok bool) {
	if len(name) < 3 || name[1] != ':' {
		return s, false
	}
	switch name[0] {
	case 's':
		s.Server = id.MCPServer(name[2:])
	case 't':
		s.Tool = id.Tool(name[2:])
	default:
		return s, false
	}
	return s, true
}
