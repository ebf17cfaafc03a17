package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) userCommand() *cobra.Command {
	command := &cobra.Command{Use: "user", Short: "Forget users", Args: cobra.NoArgs}
	command.AddCommand(c.userEraseCommand())
	return command
}

func (c *cli) userEraseCommand() *cobra.Command {
	var dryRun, keepHistory, sure bool
	var reason string
	command := &cobra.Command{
		Use: "erase USER", Short: "Delete all that is stored of a user, but for the audit log",
		Long: "Delete all that is stored of a user: devices and memberships, private tools, chats with their logs, approvals, how\n" +
			"calls went, searches and what was learned from them, and what was used of quotas. It cannot be undone, and may be\n" +
			"repeated. The audit log keeps its entries, and gets one that says so.",
		Example: "  toolctl user erase ann --dry-run\n  toolctl user erase ann --yes --reason 'ticket 4711'",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			if !dryRun && !sure {
				return errors.New("this cannot be undone: see with --dry-run what would be deleted, and say --yes to delete it")
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.EraseUserResponse, error) {
				return toolgrantv1.NewPrivacyServiceClient(conn).EraseUser(because(ctx, reason),
					&toolgrantv1.EraseUserRequest{UserId: args[0], DryRun: dryRun, KeepQuotaHistory: keepHistory})
			}, func(w io.Writer, r *toolgrantv1.EraseUserResponse) { printErased(w, r, dryRun) })
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be deleted")
	command.Flags().BoolVar(&sure, "yes", false, "delete it")
	command.Flags().BoolVar(&keepHistory, "keep-quota-history", false, "keep what was used of quotas by day, as bills rest on it")
	command.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	return command
}

func printErased(w io.Writer, r *toolgrantv1.EraseUserResponse, dryRun bool) {
	if len(r.GetErased()) == 0 {
		fmt.Fprintln(w, "nothing is stored of this user")
		return
	}
	t := newTable(w, "KIND", map[bool]string{false: "ROWS DELETED", true: "ROWS TO DELETE"}[dryRun])
	for _, e := range r.GetErased() {
		t.AppendRow(table.Row{e.GetKind(), e.GetCount()})
	}
	t.Render()
}
