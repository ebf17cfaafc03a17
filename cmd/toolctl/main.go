// Command toolctl is the operators' tool: a client of Toolgrant's gRPC API.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"buf.build/go/protoyaml"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "toolctl: "+explainError(err))
		os.Exit(exitStatus(err))
	}
}

// run is toolctl without its process: tests call it.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	return root.ExecuteContext(ctx)
}

// cli is what all commands share.
type cli struct {
	address string
	output  string
}

// maxMessageBytes is the largest manifest that is sent or exported.
const maxMessageBytes = 64 << 20

func newRoot() *cobra.Command {
	c := &cli{}
	root := &cobra.Command{
		Use:           "toolctl",
		Short:         "Administer Toolgrant and ask it what a conversation may use",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	address := os.Getenv("TOOLGRANT_ADDR")
	if address == "" {
		address = "127.0.0.1:7700"
	}
	root.PersistentFlags().StringVar(&c.address, "addr", address, "the server's gRPC address (TOOLGRANT_ADDR)")
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "table", "table, json or yaml")
	root.AddCommand(c.applyCommand(), c.exportCommand(), c.resolveCommand(), c.explainCommand(), c.chatCommand())
	return root
}

// connect returns a connection; calls on it fail while the server is away.
func (c *cli) connect() (*grpc.ClientConn, error) {
	return grpc.NewClient(c.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
}

// call connects, calls and prints: the message as it is, or as a table.
func call[Response proto.Message](c *cli, command *cobra.Command, do func(context.Context, *grpc.ClientConn) (Response, error),
	table func(io.Writer, Response)) error {
	conn, err := c.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	response, err := do(command.Context(), conn)
	if err != nil {
		return err
	}
	return c.print(command.OutOrStdout(), response, func(w io.Writer) { table(w, response) })
}

func (c *cli) print(w io.Writer, message proto.Message, table func(io.Writer)) error {
	var data []byte
	var err error
	switch c.output {
	case "table":
		table(w)
		return nil
	case "json":
		data, err = protojson.MarshalOptions{UseProtoNames: true, Multiline: true}.Marshal(message)
		data = append(data, '\n')
	case "yaml":
		data, err = protoyaml.MarshalOptions{UseProtoNames: true}.Marshal(message)
	default:
		return fmt.Errorf("--output: must be table, json or yaml, not %q", c.output)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// surfaceOf reads a surface from a flag: "web", or a device's id.
func surfaceOf(flag string) *toolgrantv1.Surface {
	if flag == "web" {
		return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
	}
	return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: flag}}
}
