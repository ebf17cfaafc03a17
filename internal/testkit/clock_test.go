package testkit_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// The clocks of a running Redis and a running PostgreSQL jump, forward and back, together.
func TestClocksJump(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	clock := testkit.NewClock(t)
	options, err := redis.ParseURL(testkit.RedisServerBy(t, clock).URL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	conn, err := pgx.Connect(ctx, testkit.DatabaseBy(t, clock))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, by := range []time.Duration{0, time.Hour, -25 * time.Hour, 10 * 8766 * time.Hour, 0} {
		clock.Ahead(by)
		before := time.Now().Add(by)
		inRedis, err := client.Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		var inPostgres time.Time
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&inPostgres); err != nil {
			t.Fatal(err)
		}
		after := time.Now().Add(by)
		for name, at := range map[string]time.Time{"Redis": inRedis, "PostgreSQL": inPostgres} {
			if at.Before(before.Add(-time.Millisecond)) || at.After(after.Add(time.Millisecond)) {
				t.Errorf("%v ahead, %s says %v, not %v to %v", by, name, at, before, after)
			}
		}
	}
}
