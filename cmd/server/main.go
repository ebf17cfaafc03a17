// Command server is Toolgrant: the gRPC service, on a private PostgreSQL unless it is given another.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/telemetry"
	"github.com/toolgrant/toolgrant/internal/version"
)

// ballast is never touched, so it takes no memory. But it counts as live: without it, a server that holds little
// would collect garbage many times a second.
var ballast = make([]byte, 64<<20)

func main() {
	defer runtime.KeepAlive(ballast)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server: "+err.Error())
		os.Exit(1)
	}
}

// run is the server without its process: tests call it. It returns when ctx ends and all is shut down.
func run(ctx context.Context, args []string, log io.Writer) error {
	root := &cobra.Command{
		Use:   "server",
		Short: "Serve Toolgrant",
		Long: "Serve Toolgrant. Every setting has a flag, an environment variable and a name in the file of --config;\n" +
			"a flag beats the environment, which beats the file. --grpc-addr is TOOLGRANT_GRPC_ADDR, and grpc_addr there.",
		Version:       version.Name(),
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	load := config.Flags(root.PersistentFlags())
	root.RunE = func(command *cobra.Command, _ []string) error {
		c, err := load()
		if err != nil {
			return err
		}
		logger, err := telemetry.NewLogger(log, c.LogFormat, slog.Level(c.LogLevel))
		if err != nil {
			return err
		}
		return serve(command.Context(), c, logger)
	}
	root.AddCommand(migrateCommand(load), configCommand(load), doctorCommand(load), readyCommand(load), versionCommand())
	root.SetArgs(args)
	root.SetOut(log)
	return root.ExecuteContext(ctx)
}
