// Command toolctl is the operators' tool: a client of Toolgrant's gRPC API.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolctl: "+printable.String(explainError(err)))
		os.Exit(exitStatus(err))
	}
}

// run is toolctl without its process: tests call it.
func run(ctx context.Context, args []string, in io.Reader, out, notices io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(notices)
	return root.ExecuteContext(ctx)
}

// cli is what all commands share.
type cli struct {
	address string
	output  format
	trust   trust
}

// maxMessageBytes is the largest manifest that is sent or exported.
const maxMessageBytes = 64 << 20

func newRoot() *cobra.Command {
	c := &cli{output: formatTable}
	root := &cobra.Command{
		Use:   "toolctl",
		Short: "Administer Toolgrant and ask it what a conversation may use",
		Long: "Administer Toolgrant and ask it what a conversation may use.\n\n" +
			exitStatuses,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	address := os.Getenv("TOOLGRANT_ADDR")
	if address == "" {
		address = "127.0.0.1:7700"
	}
	root.PersistentFlags().StringVar(&c.address, "addr", address, "the server's gRPC address (TOOLGRANT_ADDR)")
	root.PersistentFlags().VarP(&c.output, "output", "o", "table, json or yaml")
	c.trust.flags(root)
	complete(root, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	complete(root, "addr", cobra.NoFileCompletions)
	root.AddCommand(c.applyCommand(), c.exportCommand(), c.getCommand(), c.resolveCommand(), c.watchCommand(), c.explainCommand(), c.chatCommand(),
		c.quotaCommand(), c.callCommand(), c.approvalsCommand(), c.healthCommand(), c.auditCommand(), c.keysCommand(), c.searchCommand(), c.enableCommand(), c.discoveryCommand(), c.mcpCommand(), c.userCommand())
	return root
}

// connect returns a connection; calls on it fail while the server is away.
func (c *cli) connect() (*grpc.ClientConn, error) {
	transport, err := c.trust.transport()
	if err != nil {
		return nil, err
	}
	bearer, err := c.trust.bearer()
	if err != nil {
		return nil, err
	}
	var options []grpc.DialOption
	if bearer != nil {
		options = append(options, grpc.WithPerRPCCredentials(bearer))
	}
	if !c.trust.proves() {
		options = append(options, grpc.WithUnaryInterceptor(named()))
	}
	return grpc.NewClient(c.address, append(options, grpc.WithTransportCredentials(transport),
		// Who watches notices when the network is gone without a word.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))...)
}

// call connects, calls and prints: the message as it is, or for people.
func call[Response proto.Message](c *cli, command *cobra.Command, do func(context.Context, *grpc.ClientConn) (Response, error),
	forPeople func(io.Writer, Response)) error {
	conn, err := c.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	response, err := do(command.Context(), conn)
	if err != nil {
		return err
	}
	return c.print(command.OutOrStdout(), func(w io.Writer) { forPeople(w, response) }, response)
}
