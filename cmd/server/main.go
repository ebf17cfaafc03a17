// Command server is Toolgrant: the gRPC service, on a private PostgreSQL unless it is given another.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolgrant/toolgrant/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server: "+err.Error())
		os.Exit(1)
	}
}

// run is the server without its process: tests call it. It returns when ctx ends and all is shut down.
func run(ctx context.Context, args []string, log io.Writer) error {
	c := defaults()
	root := &cobra.Command{
		Use:           "server",
		Short:         "Serve Toolgrant",
		Long:          "Serve Toolgrant. Every flag can be given as an environment variable too: --grpc-addr is TOOLGRANT_GRPC_ADDR.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return serve(command.Context(), c, slog.New(slog.NewTextHandler(log, nil)))
		},
	}
	c.flags(root.PersistentFlags())
	root.AddCommand(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database of --database-url to the newest schema, and exit",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if c.databaseURL == "" {
				return fmt.Errorf("--database-url (TOOLGRANT_DATABASE_URL) is needed: the embedded database migrates at start")
			}
			return postgres.Migrate(command.Context(), c.databaseURL)
		},
	})
	root.SetArgs(args)
	root.SetOut(log)
	return root.ExecuteContext(ctx)
}
