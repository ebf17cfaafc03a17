package main

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Redis's clock jumps while servers spend slices of a SYSTEM rule. Forward, the leases of all slices run out at once, and
// they are charged; back, leases last longer. The limit is not exceeded within an hour by that clock, whoever asks.
func TestRedissClockJumpsWhileSlicesAreSpent(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(t)
	w := newClocked(t, testkit.Database(t), testkit.RedisServerBy(t, clock).URL)
	const limit = 200
	m := clockWorld()
	m.Tools[2].Quotas[0].Limit = limit
	w.apply(m)
	consume := func(times int) (admitted int) {
		t.Helper()
		for range times {
			w.number++
			_, err := w.c[w.number%2].ConsumeQuota(w.ctx, &v1.ConsumeQuotaRequest{OperationId: fmt.Sprint("o-", w.number), UserId: "u", ToolId: "common"})
			switch {
			case err == nil:
				admitted++
			case status.Code(err) != codes.ResourceExhausted:
				t.Fatal(err)
			}
		}
		return admitted
	}
	admitted := consume(limit / 4)
	if admitted != limit/4 {
		t.Fatalf("%d of %d were admitted", admitted, limit/4)
	}
	for _, at := range []time.Duration{10 * time.Minute, -10 * time.Minute, 0} {
		clock.Ahead(at)
		admitted += consume(limit / 2)
		if admitted > limit {
			t.Errorf("%d were admitted within an hour, %v ahead", admitted, at)
		}
	}
	if used, _ := usageOf(w.ctx, t, w.c[0], "common"); used < int64(admitted) {
		t.Errorf("%d were admitted, and %d are used", admitted, used)
	}
	clock.Ahead(2 * time.Hour)
	await(t, "another hour's are admitted", func() bool { return consume(1) == 1 })
	if more := 1 + consume(2*limit); more > limit {
		t.Errorf("%d were admitted within an hour", more)
	}
}
