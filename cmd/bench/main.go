// Command bench fills a Toolgrant server with a generated world and measures how fast it resolves tools,
// beside a bare gRPC server that answers the same bytes: what is between the two is Toolgrant's share. It
// also measures how soon watchers are told of a change, and how soon other nodes know of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

// run is bench without its process: tests call it. Results go to out, progress to log.
func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) error {
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Fill a Toolgrant server with a generated world and measure how fast it answers",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(loadCommand(), resolveCommand(), watchCommand(), freshnessCommand(), quotaCommand(), quotaMemoryCommand(), quotaOutageCommand(), callsCommand(), mcpCommand(), mcpServerCommand(), discoveryCommand(), bareCommand())
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(log)
	return root.ExecuteContext(ctx)
}

const defaultAddress = "127.0.0.1:7700"

// maxMessageBytes bounds answers: one change for every object of a manifest, or very many tools.
const maxMessageBytes = 64 << 20

// connect returns so many connections, to each of some servers in turn, and what closes them.
func connect(addresses []string, count int, more ...grpc.DialOption) (conns []*grpc.ClientConn, closeAll func(), err error) {
	closeAll = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes))}, more...)
	for i := range count {
		conn, err := grpc.NewClient(addresses[i%len(addresses)], options...)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, conn)
	}
	return conns, closeAll, nil
}

// within does something that may take so long.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not done within --timeout %v: %w", limit, err)
	}
	return err
}

func checkAddresses(addresses ...string) error {
	if len(addresses) == 0 {
		return errors.New("--addr: must not be empty")
	}
	for _, address := range addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--addr: must be host:port, not %q", address)
		}
	}
	return nil
}

func checkCount(flag string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s: must be from %d to %d, not %d", flag, low, high, value)
	}
	return nil
}

func checkDuration(flag string, value, low, high time.Duration) error {
	if value < low || value > high {
		return fmt.Errorf("%s: must be from %v to %v, not %v", flag, low, high, value)
	}
	return nil
}
