package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// cost is the flags that say what a call costs.
type cost struct {
	calls, tokens int64
	command       *cobra.Command
}

func tokensFlag(command *cobra.Command, usage string) *cost {
	k := &cost{command: command}
	command.Flags().Int64Var(&k.tokens, "tokens", 0, usage)
	return k
}

// given returns a flag's value if the flag was given.
func (k *cost) given(flag string, value *int64) *int64 {
	if k.command.Flags().Changed(flag) {
		return value
	}
	return nil
}

func operationFlag(command *cobra.Command, operation *string) {
	command.Flags().StringVar(operation, "operation-id", "", "names the operation, so that it can be repeated safely (default: random)")
}

func (c *cli) quotaConsume() *cobra.Command {
	var operation string
	var k *cost
	command := &cobra.Command{
		Use: "consume USER TOOL", Short: "Take a known cost, as a call of a tool does", Args: cobra.ExactArgs(2),
		ValidArgsFunction: c.completeUserThen("tools"),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ConsumeQuotaResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).ConsumeQuota(ctx, &toolgrantv1.ConsumeQuotaRequest{OperationId: orRandom(operation),
					UserId: args[0], ToolId: args[1], Calls: k.given("calls", &k.calls), Tokens: k.given("tokens", &k.tokens)})
			}, func(w io.Writer, r *toolgrantv1.ConsumeQuotaResponse) { printStates(w, r.GetRules()...) })
		},
	}
	k = tokensFlag(command, "tokens")
	command.Flags().Int64Var(&k.calls, "calls", 1, "calls")
	operationFlag(command, &operation)
	return command
}

func (c *cli) quotaReserve() *cobra.Command {
	var operation string
	var lease time.Duration
	var k *cost
	command := &cobra.Command{
		Use: "reserve USER TOOL", Short: "Hold an estimated cost until it is committed or released", Args: cobra.ExactArgs(2),
		ValidArgsFunction: c.completeUserThen("tools"),
		RunE: func(command *cobra.Command, args []string) error {
			request := &toolgrantv1.ReserveQuotaRequest{OperationId: orRandom(operation), UserId: args[0], ToolId: args[1], Tokens: k.given("tokens", &k.tokens)}
			if command.Flags().Changed("lease") {
				request.Lease = durationpb.New(lease)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ReserveQuotaResponse, error) {
				response, err := toolgrantv1.NewQuotaServiceClient(conn).ReserveQuota(ctx, request)
				if err == nil { // also beside JSON, which does not have it
					fmt.Fprintf(command.ErrOrStderr(), "operation %s\n", request.GetOperationId())
				}
				return response, err
			}, func(w io.Writer, r *toolgrantv1.ReserveQuotaResponse) {
				printStates(w, r.GetRules()...)
				fmt.Fprintf(w, "held for %s\n", wait(time.Until(r.GetExpireTime().AsTime()), time.Now()))
			})
		},
	}
	k = tokensFlag(command, "the most that the call is expected to cost")
	command.Flags().DurationVar(&lease, "lease", 5*time.Minute, "how long it is held")
	operationFlag(command, &operation)
	return command
}

func (c *cli) quotaCommit() *cobra.Command {
	var k *cost
	command := &cobra.Command{
		Use: "commit OPERATION", Short: "Charge a reservation what the call cost", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.CommitQuotaResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).CommitQuota(ctx, &toolgrantv1.CommitQuotaRequest{
					OperationId: args[0], Tokens: k.given("tokens", &k.tokens)})
			}, func(w io.Writer, r *toolgrantv1.CommitQuotaResponse) { printStates(w, r.GetRules()...) })
		},
	}
	k = tokensFlag(command, "what the call cost (default: what was reserved)")
	return command
}

func (c *cli) quotaRelease() *cobra.Command {
	return &cobra.Command{
		Use: "release OPERATION", Short: "Give a reservation back", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ReleaseQuotaResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).ReleaseQuota(ctx, &toolgrantv1.ReleaseQuotaRequest{OperationId: args[0]})
			}, func(w io.Writer, r *toolgrantv1.ReleaseQuotaResponse) { printStates(w, r.GetRules()...) })
		},
	}
}
