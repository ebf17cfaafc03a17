package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipe sends the commands of many callers together. It takes a third of what a connection for each of them takes, most
// of which is system calls.
//
// Whoever stops waiting before his command is sent has not sent it. That, and deadlines that are the caller's own, is
// why it is not go-redis's AutoPipeline, which sends whatever was once put into its queue, and waits for its answer as
// long as its connection does.
//
// It is for one Redis. In a Cluster, a node that is away would keep waiting who asks the others.
type pipe struct {
	client  *redis.Client
	timeout time.Duration // of a batch
	batches batches[*request]
}

type request struct {
	ctx  context.Context
	cmd  redis.Cmder
	done chan struct{} // closed when cmd has its answer
}

func newPipe(client *redis.Client, timeout time.Duration) *pipe {
	p := &pipe{client: client, timeout: timeout}
	p.batches.send = p.send
	return p
}

// do sends a command and waits for its answer. The command may not be used any more when do fails because ctx ended.
func (p *pipe) do(ctx context.Context, cmd redis.Cmder) error {
	r := &request{ctx: ctx, cmd: cmd, done: make(chan struct{})}
	if err := p.batches.add(r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return cmd.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) send(batch []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	pipeline := p.client.Pipeline()
	for _, r := range batch {
		if r.ctx.Err() == nil {
			_ = pipeline.Process(ctx, r.cmd)
		}
	}
	_, _ = pipeline.Exec(ctx) // each command has its own error
	for _, r := range batch {
		close(r.done)
	}
}
