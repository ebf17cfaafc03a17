package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// conversation is the flags that name a conversation.
type conversation struct {
	chat, user, surface string
	turn                int32
}

func (q *conversation) flags(command *cobra.Command) {
	command.Flags().StringVar(&q.chat, "chat", "new", "the chat; it need not exist")
	command.Flags().StringVar(&q.user, "user", "", "the user")
	command.Flags().StringVar(&q.surface, "surface", "web", "web, or the id of one of the user's devices")
	command.Flags().Int32Var(&q.turn, "turn", 0, "the turn (default: the chat's)")
	_ = command.MarkFlagRequired("user") // the flag exists
}

func turnOf(command *cobra.Command, turn int32) *int32 {
	if command.Flags().Changed("turn") {
		return proto.Int32(turn)
	}
	return nil
}

func (c *cli) resolveCommand() *cobra.Command {
	q := &conversation{}
	command := &cobra.Command{
		Use:   "resolve --user USER",
		Short: "Show what a conversation may use, and why the rest is withheld",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ResolveToolsResponse, error) {
				return toolgrantv1.NewEntitlementServiceClient(conn).ResolveTools(ctx, &toolgrantv1.ResolveToolsRequest{
					ChatId: q.chat, UserId: q.user, Surface: surfaceOf(q.surface), Turn: turnOf(command, q.turn)})
			}, printResolved)
		},
	}
	q.flags(command)
	return command
}

func printResolved(w io.Writer, r *toolgrantv1.ResolveToolsResponse) {
	t := newTable(w, "TOOL", "NAME", "STATE", "WHY")
	for _, tool := range r.GetTools() {
		var why []string
		if tool.GetEnabledBy().GetCore() {
			why = append(why, "core")
		}
		if tool.GetEnabledBy().GetChat() {
			why = append(why, "chat")
		}
		for _, avatar := range tool.GetEnabledBy().GetAvatarIds() {
			why = append(why, "avatar "+avatar)
		}
		if tool.ExpiresAfterTurns != nil {
			why = append(why, fmt.Sprintf("for %d more turns", tool.GetExpiresAfterTurns()))
		}
		t.AppendRow(table.Row{tool.GetToolId(), tool.GetName(), "effective", strings.Join(why, ", ")})
	}
	for _, withheld := range r.GetWithheld() {
		reason := strings.TrimPrefix(withheld.GetReason().String(), "WITHHELD_REASON_")
		t.AppendRow(table.Row{withheld.GetToolId(), "", "withheld: " + reason, withheld.GetMessage()})
	}
	t.Render()
}

func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(header)
	return t
}

func (c *cli) explainCommand() *cobra.Command {
	q := &conversation{}
	command := &cobra.Command{
		Use:   "explain TOOL --user USER",
		Short: "Walk through every rule for one tool",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ExplainToolResponse, error) {
				return toolgrantv1.NewEntitlementServiceClient(conn).ExplainTool(ctx, &toolgrantv1.ExplainToolRequest{
					ChatId: q.chat, UserId: q.user, Surface: surfaceOf(q.surface), ToolId: args[0], Turn: turnOf(command, q.turn)})
			}, printExplained)
		},
	}
	q.flags(command)
	return command
}

func printExplained(w io.Writer, r *toolgrantv1.ExplainToolResponse) {
	t := newTable(w, "RULE", "SAYS", "BECAUSE")
	for _, step := range r.GetSteps() {
		because := step.GetMessage()
		for _, row := range step.GetRows() {
			because += "\n" + strings.TrimSpace(row.GetKind()+" "+row.GetId()+": "+row.GetDetail())
		}
		t.AppendRow(table.Row{strings.TrimPrefix(step.GetRule().String(), "EXPLAIN_RULE_"),
			strings.ToLower(strings.TrimPrefix(step.GetOutcome().String(), "EXPLAIN_OUTCOME_")), because})
	}
	t.Render()
	fmt.Fprintf(w, "available: %t, enabled: %t, effective: %t\n", r.GetAvailable(), r.GetEnabled(), r.GetEffective())
	if r.GetWithheld() != nil {
		fmt.Fprintln(w, r.GetWithheld().GetMessage())
		fmt.Fprintln(w, r.GetWithheld().GetMessageZh())
	}
}
