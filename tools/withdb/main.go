// Command withdb runs a command while a private PostgreSQL runs, with the URL of a migrated, empty database in
// TOOLGRANT_DATABASE_URL. Checks that need a database need no preparation then.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/toolgrant/toolgrant/internal/embedded"
	"github.com/toolgrant/toolgrant/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withdb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("usage: withdb command [argument ...]")
	}
	dir, err := os.MkdirTemp("", "toolgrant-withdb-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	private, err := embedded.StartPostgres(ctx, embedded.Options{DataDir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, private.Stop(context.WithoutCancel(ctx))) }()
	if err := postgres.Migrate(ctx, private.URL()); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "TOOLGRANT_DATABASE_URL="+private.URL())
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}
