package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) quotaCommand() *cobra.Command {
	quota := &cobra.Command{Use: "quota", Short: "See how often tools were used and may be, change it for a user, try it out"}
	quota.AddCommand(c.quotaUsage(), c.quotaOverride(), c.quotaReset(), c.quotaHistory(),
		c.quotaConsume(), c.quotaReserve(), c.quotaCommit(), c.quotaRelease())
	return quota
}

func (c *cli) quotaUsage() *cobra.Command {
	return &cobra.Command{
		Use: "usage USER [TOOL...]", Short: "Show how a user's quotas stand: of all tools, or of those named", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeUserThen("tools"),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.GetQuotaUsageResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).GetQuotaUsage(ctx, &toolgrantv1.GetQuotaUsageRequest{UserId: args[0], ToolIds: args[1:]})
			}, func(w io.Writer, r *toolgrantv1.GetQuotaUsageResponse) {
				t := newTable(w, append([]any{"TOOL"}, stateHeader...)...)
				for _, tool := range r.GetTools() {
					for _, state := range tool.GetRules() {
						t.AppendRow(append(table.Row{tool.GetToolId()}, stateRow(state, time.Now())...))
					}
				}
				if t.Length() == 0 {
					fmt.Fprintln(w, noQuotas)
					return
				}
				t.Render()
			})
		},
	}
}

func (c *cli) quotaOverride() *cobra.Command {
	var limit int64
	var until, reason string
	var clear bool
	command := &cobra.Command{
		Use: "override USER QUOTA (--limit N [--until TIME] | --clear)", Short: "Set a user's own limit of a quota, or the quota's again",
		Example: "  toolctl quota override ann web.day --limit 500 --until 72h\n  toolctl quota override ann web.day --clear",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: c.completeUserThen(""),
		RunE: func(command *cobra.Command, args []string) error {
			request := &toolgrantv1.SetQuotaOverrideRequest{UserId: args[0], QuotaId: args[1]}
			if !clear {
				request.Limit = &limit
			}
			if until != "" {
				end, err := parseTime(until, time.Now())
				if err != nil {
					return fmt.Errorf("--until: %w", err)
				}
				request.ExpireTime = timestamppb.New(end)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SetQuotaOverrideResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).SetQuotaOverride(because(ctx, reason), request)
			}, func(w io.Writer, _ *toolgrantv1.SetQuotaOverrideResponse) {
				if clear {
					fmt.Fprintf(w, "%s has the limit of quota %s again\n", args[0], args[1])
					return
				}
				end := ""
				if request.GetExpireTime() != nil {
					end = " until " + request.GetExpireTime().AsTime().Local().Format(time.DateTime)
				}
				fmt.Fprintf(w, "%s has a limit of %d of quota %s%s\n", args[0], limit, args[1], end)
			})
		},
	}
	command.Flags().Int64Var(&limit, "limit", 0, "the user's limit")
	command.Flags().StringVar(&until, "until", "", "when it ends: how long from now (72h), a day (2026-01-31) or a time (2026-01-31T12:00:00Z) (default: never)")
	command.Flags().BoolVar(&clear, "clear", false, "the quota's own limit again")
	command.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	complete(command, "reason", cobra.NoFileCompletions)
	command.MarkFlagsOneRequired("limit", "clear")
	command.MarkFlagsMutuallyExclusive("limit", "clear")
	command.MarkFlagsMutuallyExclusive("until", "clear")
	return command
}

func (c *cli) quotaReset() *cobra.Command {
	var reason, requestID string
	command := &cobra.Command{
		Use: "reset USER QUOTA --reason TEXT", Short: "Forget what a user has used of a quota; the reason is kept for good",
		Args: cobra.ExactArgs(2), ValidArgsFunction: c.completeUserThen(""),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ResetQuotaUsageResponse, error) {
				return toolgrantv1.NewQuotaServiceClient(conn).ResetQuotaUsage(ctx, &toolgrantv1.ResetQuotaUsageRequest{
					UserId: args[0], QuotaId: args[1], Reason: reason, RequestId: orRandom(requestID)})
			}, func(w io.Writer, r *toolgrantv1.ResetQuotaUsageResponse) { printStates(w, r.GetRule()) })
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, for those who look later")
	_ = command.MarkFlagRequired("reason") // the flag exists
	command.Flags().StringVar(&requestID, "request-id", "", "names the request, so that it can be repeated safely (default: random)")
	return command
}

// completeUserThen offers users, then objects of a kind; none if it is empty.
func (c *cli) completeUserThen(kind string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return c.completeIDs("users", nil)(command, nil, word)
		case kind != "":
			return c.completeIDs(kind, nil)(command, args[1:], word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func orRandom(name string) string {
	if name == "" {
		return rand.Text()
	}
	return name
}

// parseTime reads how long from now, a day (its beginning here), or a time.
func parseTime(text string, now time.Time) (time.Time, error) {
	if length, err := time.ParseDuration(text); err == nil {
		return now.Add(length), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, errors.New("must be like 72h, 2026-01-31 or 2026-01-31T12:00:00Z")
	}
	return at, nil
}
