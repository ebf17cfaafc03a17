package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

func pipeTo(t *testing.T, url string) *pipe {
	return newPipe(openFor(t, url).(*redis.Client), 20*time.Second)
}

func TestPipeAnswersEachItsOwn(t *testing.T) {
	p := pipeTo(t, testkit.Redis(t))
	ctx := testkit.Context(t)
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			want := numbered("value ", i)
			cmd := redis.NewCmd(ctx, "ECHO", want)
			if err := p.do(ctx, cmd); err != nil || cmd.Val() != want {
				t.Errorf("%v, %v; want %s", cmd.Val(), err, want)
			}
			if err := p.do(ctx, redis.NewCmd(ctx, "NOCOMMAND")); !redis.HasErrorPrefix(err, "unknown command") {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
}

// Who stops waiting before his command is sent has not sent it; those who wait get their answers when Redis goes on.
func TestPipeSendsNothingForWhoLeft(t *testing.T) {
	server := testkit.RedisServer(t)
	p := pipeTo(t, server.URL)
	ctx := testkit.Context(t)
	add := func(ctx context.Context) error { return p.do(ctx, redis.NewCmd(ctx, "INCR", "n")) }
	server.Pause()
	sent := make(chan error, 1+enough)
	for batch, many := range []int{1, enough} {
		for range many {
			go func() { sent <- add(ctx) }()
		}
		for p.batches.queued() > 0 || p.batches.sent() <= batch {
			time.Sleep(time.Millisecond)
		}
	}
	left, leave := context.WithCancel(ctx)
	for range queueSize {
		go func() { _ = add(left) }()
	}
	for p.batches.queued() < queueSize {
		time.Sleep(time.Millisecond)
	}
	if err := add(ctx); !errors.Is(err, errQueueFull) {
		t.Errorf("got %v", err)
	}
	leave()
	server.Resume()
	for range cap(sent) {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
	for p.batches.queued() > 0 {
		time.Sleep(time.Millisecond)
	}
	cmd := redis.NewCmd(ctx, "INCR", "n")
	if err := p.do(ctx, cmd); err != nil || cmd.Val() != int64(cap(sent)+1) {
		t.Errorf("%v, %v", cmd.Val(), err)
	}
}
