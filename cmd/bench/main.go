// Command bench fills a Toolgrant server with a generated world and measures how fast it resolves tools,
// beside a bare gRPC server that answers the same bytes: what is between the two is Toolgrant's share.
package main

import (
	"context"
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
		Short:         "Fill a Toolgrant server with a generated world and measure how fast it resolves tools",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(loadCommand(), resolveCommand(), bareCommand())
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(log)
	return root.ExecuteContext(ctx)
}

const defaultAddress = "127.0.0.1:7700"

// maxMessageBytes bounds answers: one change for every object of a manifest, or very many tools.
const maxMessageBytes = 64 << 20

// connect returns connections to one server, and what closes them.
func connect(address string, count int) (conns []*grpc.ClientConn, closeAll func(), err error) {
	closeAll = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	for range count {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, conn)
	}
	return conns, closeAll, nil
}

func checkAddress(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--addr: must be host:port, not %q", address)
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
