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

func (c *cli) conversationFlags(command *cobra.Command, q *conversation) {
	chatFlag(command, &q.chat)
	command.Flags().Int32Var(&q.turn, "turn", 0, "the turn (default: the chat's)")
	complete(command, "turn", cobra.NoFileCompletions)
	c.userFlags(command, &q.user, &q.surface)
}

func chatFlag(command *cobra.Command, chat *string) {
	command.Flags().StringVar(chat, "chat", "new", "the chat; it need not exist")
	complete(command, "chat", cobra.NoFileCompletions)
}

// userFlags are the flags that say who asks, and where.
func (c *cli) userFlags(command *cobra.Command, user, surface *string) {
	command.Flags().StringVar(user, "user", "", "the user")
	complete(command, "user", c.completeIDs("users", nil))
	_ = command.MarkFlagRequired("user") // the flag exists
	command.Flags().StringVar(surface, "surface", "web", "web, or the id of one of the user's devices")
	complete(command, "surface", c.completeIDs("devices", user, "web"))
}

// surfaceOf reads a surface from a flag: "web", or a device's id.
func surfaceOf(flag string) *toolgrantv1.Surface {
	if flag == "web" {
		return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
	}
	return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: flag}}
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
		Use:               "resolve --user USER",
		Short:             "Show what a conversation may use, and why the rest is withheld",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ResolveToolsResponse, error) {
				return toolgrantv1.NewEntitlementServiceClient(conn).ResolveTools(ctx, &toolgrantv1.ResolveToolsRequest{
					ChatId: q.chat, UserId: q.user, Surface: surfaceOf(q.surface), Turn: turnOf(command, q.turn)})
			}, printResolved)
		},
	}
	c.conversationFlags(command, q)
	return command
}

func printResolved(w io.Writer, r *toolgrantv1.ResolveToolsResponse) {
	t := newTable(w, "TOOL", "NAME", "STATE", "WHY")
	for _, tool := range toldTools(r) {
		t.AppendRow(table.Row{tool.id, tool.name, tool.state, tool.why})
	}
	t.Render()
}

// toldTool is what people are told of a tool.
type toldTool struct {
	id, name, state, why string
	effective            bool
	message              proto.Message
}

// toldTools are the tools of an answer: those that are effective, then those that are withheld.
func toldTools(r interface {
	GetTools() []*toolgrantv1.EffectiveTool
	GetWithheld() []*toolgrantv1.WithheldTool
}) []toldTool {
	var told []toldTool
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
		told = append(told, toldTool{tool.GetToolId(), tool.GetName(), "effective", strings.Join(why, ", "), true, tool})
	}
	for _, withheld := range r.GetWithheld() {
		told = append(told, toldTool{withheld.GetToolId(), "", "withheld: " + word(withheld.GetReason(), "WITHHELD_REASON_"),
			withheld.GetMessage(), false, withheld})
	}
	return told
}
