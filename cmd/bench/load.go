package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func loadCommand() *cobra.Command {
	l := &loading{}
	var address, databaseURL string
	var limit time.Duration
	command := &cobra.Command{
		Use:   "load",
		Short: "Write a generated world to a server",
		Long: "Write a generated world to a server, through its API. What is written depends on the sizes and the seed only: " +
			"a load that was interrupted can be repeated, and another world takes another database.\n\n" +
			"The biggest worlds take hours that way. With --database-url, users and chats are copied to the server's database past " +
			"the server: the rows that the API would have written, many in a transaction.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := errors.Join(checkAddresses(address), l.world.validate(), checkCount("--concurrency", l.concurrency, 1, 256),
				checkDuration("--timeout", limit, time.Second, 24*time.Hour)); err != nil {
				return err
			}
			conns, closeAll, err := connect([]string{address}, 1)
			if err != nil {
				return err
			}
			defer closeAll()
			l.conn, l.out, l.log = conns[0], command.OutOrStdout(), command.ErrOrStderr()
			return within(command.Context(), limit, func(ctx context.Context) error {
				if databaseURL == "" {
					return l.overAPI(ctx)
				}
				return l.pastServer(ctx, databaseURL)
			})
		},
	}
	f := command.Flags()
	f.StringVar(&address, "addr", defaultAddress, "the server's gRPC address")
	f.Uint64Var(&l.world.seed, "seed", 1, "another seed makes another world")
	f.IntVar(&l.concurrency, "concurrency", 16, "requests that are made at a time")
	f.StringVar(&databaseURL, "database-url", "", "the server's database, to copy users and chats to (password best in PGPASSWORD)")
	f.DurationVar(&limit, "timeout", time.Hour, "how long it may take")
	l.world.flags(f)
	return command
}

// loading is a world that is being written to a server.
type loading struct {
	world       world
	conn        *grpc.ClientConn
	concurrency int
	out, log    io.Writer
}

// overAPI writes the world, and a line for each of its parts.
func (l *loading) overAPI(ctx context.Context) error {
	w := &l.world
	if _, err := l.catalogue(ctx); err != nil {
		return err
	}
	err := timed(l.out, l.log, "users", w.users, func(done *atomic.Int64) error {
		_, err := l.apply(ctx, w.people(), done)
		return err
	})
	if err != nil {
		return err
	}
	return timed(l.out, l.log, "chats", w.chats, func(done *atomic.Int64) error {
		chats := toolgrantv1.NewChatServiceClient(l.conn)
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(l.concurrency)
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

// pastServer writes the catalogue through the API, and the rest to the database.
func (l *loading) pastServer(ctx context.Context, databaseURL string) error {
	revision, err := l.catalogue(ctx)
	if err != nil {
		return err
	}
	c, err := newCopier(ctx, &l.world, databaseURL)
	if err != nil {
		return err
	}
	defer c.pool.Close()
	if err := c.belongsTo(revision); err != nil {
		return err
	}
	if err := timed(l.out, l.log, "users", l.world.users, func(done *atomic.Int64) error { return c.users(ctx, done) }); err != nil {
		return err
	}
	if err := timed(l.out, l.log, "chats", l.world.chats, func(done *atomic.Int64) error { return c.chats(ctx, done) }); err != nil {
		return err
	}
	return c.settle(ctx)
}

// catalogue writes all but users and chats, and returns the last write's revision.
func (l *loading) catalogue(ctx context.Context) (revision string, err error) {
	w := &l.world
	objects := w.toolTypes() + w.tools + w.deviceTypes + w.groups + w.avatars + 1
	err = timed(l.out, l.log, "objects of the catalogue", objects, func(done *atomic.Int64) error {
		revision, err = l.apply(ctx, w.catalogue(), done)
		return err
	})
	return revision, err
}

func (l *loading) apply(ctx context.Context, objects iter.Seq[*toolgrantv1.Manifest], done *atomic.Int64) (revision string, err error) {
	admin := toolgrantv1.NewAdminServiceClient(l.conn)
	for count, manifest := range batches(objects) {
		response, err := admin.ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: manifest})
		if err != nil {
			return "", fmt.Errorf("ApplyManifest: %w", err)
		}
		revision = response.GetRevision()
		done.Add(int64(count))
	}
	return revision, nil
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
	for _, request := range c.tools {
		if _, err := chats.SetChatTools(ctx, request); err != nil {
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
