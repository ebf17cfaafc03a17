package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) explainCommand() *cobra.Command {
	q := &conversation{}
	command := &cobra.Command{
		Use:   "explain TOOL --user USER",
		Short: "Walk through every rule for one tool",
		Args:  cobra.ExactArgs(1),
		ValidArgsFunction: func(command *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeIDs("tools", nil)(command, args, word)
		},
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ExplainToolResponse, error) {
				return toolgrantv1.NewEntitlementServiceClient(conn).ExplainTool(ctx, &toolgrantv1.ExplainToolRequest{
					ChatId: q.chat, UserId: q.user, Surface: surfaceOf(q.surface), ToolId: args[0], Turn: turnOf(command, q.turn)})
			}, printExplained)
		},
	}
	c.conversationFlags(command, q)
	return command
}

func printExplained(w io.Writer, r *toolgrantv1.ExplainToolResponse) {
	t := newTable(w, "RULE", "SAYS", "BECAUSE")
	for _, step := range r.GetSteps() {
		because := step.GetMessage()
		for _, row := range step.GetRows() {
			because += "\n" + row.GetKind() + " " + row.GetId()
			if row.GetDetail() != "" {
				because += ": " + row.GetDetail()
			}
		}
		t.AppendRow(table.Row{word(step.GetRule(), "EXPLAIN_RULE_"), word(step.GetOutcome(), "EXPLAIN_OUTCOME_"), because})
	}
	t.Render()
	fmt.Fprintf(w, "available: %t, enabled: %t, effective: %t\n", r.GetAvailable(), r.GetEnabled(), r.GetEffective())
	if r.GetWithheld() != nil {
		fmt.Fprintln(w, r.GetWithheld().GetMessage())
		fmt.Fprintln(w, r.GetWithheld().GetMessageZh())
	}
}
