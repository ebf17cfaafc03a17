package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// historyLoss is how long before a server was killed what it acknowledged may be missing in the history: it writes each
// half second, and this is four times as much, since a machine may be busy.
const historyLoss = 2 * time.Second

// A server that is killed loses the last moment of the history, and nothing from before. What is written stays, and is
// never more than was asked for.
func TestHistoryLosesAMomentWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t))
	server.start()
	server.awaitReady()
	if _, err := server.connect().ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: quotaWorld()}); err != nil {
		t.Fatal(err)
	}
	var sent, certain, written int64 // calls, since the first round
	for round := range 3 {
		acknowledged, asked, killed := consumeUntilKilled(ctx, t, server, round)
		sent += asked
		recent := 0
		for _, at := range acknowledged {
			if killed.Sub(at) < historyLoss {
				recent++
			}
		}
		certain = written + int64(len(acknowledged)-recent)
		server.start()
		server.awaitReady()
		history, err := server.connect().ListQuotaHistory(ctx, &v1.ListQuotaHistoryRequest{UserId: "u", ToolId: "tokens"})
		if err != nil {
			t.Fatal(err)
		}
		before := written
		written = 0
		for _, u := range history.GetUsage() { // of two days, perhaps
			written += u.GetCalls()
		}
		lost := min(max(0, int(before)+len(acknowledged)-int(written)), len(acknowledged))
		t.Logf("%d of %d calls are missing, the first of them acknowledged %v before the server was killed", lost, len(acknowledged),
			killed.Sub(append(acknowledged, killed)[len(acknowledged)-lost]))
		if written < certain || written > sent || len(acknowledged) == recent {
			t.Errorf("%d calls are in the history; %d were asked for, %d acknowledged more than %v before the server was killed", written, sent, certain, historyLoss)
		}
	}
}

// consumeUntilKilled consumes a call again and again, and kills the server meanwhile. It returns when each call was
// acknowledged, in order, how many were asked for, and when the server was killed.
func consumeUntilKilled(ctx context.Context, t *testing.T, server *child, round int) (acknowledged []time.Time, asked int64, killed time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	var group sync.WaitGroup
	for worker := range 8 {
		c := server.connect()
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				mu.Lock()
				asked++
				mu.Unlock()
				_, err := c.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: fmt.Sprint("o-", round, "-", worker, "-", i), UserId: "u", ToolId: "tokens"})
				if err != nil {
					return // it was killed
				}
				mu.Lock()
				acknowledged = append(acknowledged, time.Now())
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	time.Sleep(historyLoss + time.Second/2 + time.Duration(round)*200*time.Millisecond)
	killed = time.Now()
	server.kill()
	stop()
	group.Wait()
	return acknowledged, asked, killed
}
