package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func loadCommand() *cobra.Command {
	w := &world{}
	var address string
	var concurrency int
	var limit time.Duration
	command := &cobra.Command{
		Use:   "load",
		Short: "Write a generated world to a server",
		Long: "Write a generated world to a server, through its API. What is written depends on the sizes and the seed only: " +
			"a load that was interrupted can be repeated, and another world takes another database.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := errors.Join(checkAddress(address), w.validate(), checkCount("--concurrency", concurrency, 1, 256),
				checkDuration("--timeout", limit, time.Second, 24*time.Hour)); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), limit)
			defer cancel()
			conns, closeAll, err := connect(address, 1)
			if err != nil {
				return err
			}
			defer closeAll()
			err = load(ctx, w, conns[0], concurrency, command.OutOrStdout(), command.ErrOrStderr())
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("not done within --timeout %v: %w", limit, err)
			}
			return err
		},
	}
	f := command.Flags()
	f.StringVar(&address, "addr", defaultAddress, "the server's gRPC address")
	f.Uint64Var(&w.seed, "seed", 1, "another seed makes another world")
	f.IntVar(&concurrency, "concurrency", 16, "chats that are written at a time")
	f.DurationVar(&limit, "timeout", time.Hour, "how long it may take")
	w.flags(f)
	return command
}

// load writes the world, and a line to out for each of its parts.
func load(ctx context.Context, w *world, conn *grpc.ClientConn, concurrency int, out, log io.Writer) error {
	admin := toolgrantv1.NewAdminServiceClient(conn)
	objects := w.toolTypes() + w.tools + w.deviceTypes + w.groups + w.avatars + 1
	err := timed(out, log, "objects of the catalogue", objects, func(done *atomic.Int64) error {
		return apply(ctx, admin, w.catalogue(), done)
	})
	if err != nil {
		return err
	}
	err = timed(out, log, "users", w.users, func(done *atomic.Int64) error {
		return apply(ctx, admin, w.people(), done)
	})
	if err != nil {
		return err
	}
	return timed(out, log, "chats", w.chats, func(done *atomic.Int64) error {
		chats := toolgrantv1.NewChatServiceClient(conn)
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(concurrency)
		for i := 0; i < w.chats && groupCtx.Err() == nil; i++ {
			group.Go(func() error {
				err := writeChat(groupCtx, chats, w.chat(i))
				done.Add(1)
				return err
			})
		}
		return cmp.Or(group.Wait(), ctx.Err())
	})
}

func apply(ctx context.Context, admin toolgrantv1.AdminServiceClient, objects func(func(*toolgrantv1.Manifest) bool), done *atomic.Int64) error {
	for count, manifest := range batches(objects) {
		if _, err := admin.ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: manifest}); err != nil {
			return fmt.Errorf("ApplyManifest: %w", err)
		}
		done.Add(int64(count))
	}
	return nil
}

func writeChat(ctx context.Context, chats toolgrantv1.ChatServiceClient, c chat) error {
	if _, err := chats.CreateChat(ctx, c.create); err != nil {
		return fmt.Errorf("CreateChat %s: %w", c.create.GetChatId(), err)
	}
	if c.avatars != nil {
		if _, err := chats.SetChatAvatars(ctx, c.avatars); err != nil {
			return fmt.Errorf("SetChatAvatars %s: %w", c.create.GetChatId(), err)
		}
	}
	if c.tools != nil {
		if _, err := chats.SetChatTools(ctx, c.tools); err != nil {
			return fmt.Errorf("SetChatTools %s: %w", c.create.GetChatId(), err)
		}
	}
	return nil
}

// timed runs one part, tells its progress every two seconds, and says how long it took.
func timed(out, log io.Writer, what string, count int, part func(done *atomic.Int64) error) error {
	var done atomic.Int64
	start := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				fmt.Fprintf(log, "%d of %d %s\n", done.Load(), count, what)
			}
		}
	}()
	err := part(&done)
	close(stop)
	<-stopped
	if err == nil {
		fmt.Fprintf(out, "%d %s in %.1f s\n", count, what, time.Since(start).Seconds())
	}
	return err
}
