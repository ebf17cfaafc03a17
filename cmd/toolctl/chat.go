package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) chatCommand() *cobra.Command {
	chat := &cobra.Command{Use: "chat", Short: "Create chats and turn tools and avatars on and off in them"}
	requestID := chat.PersistentFlags().String("request-id", "", "names the request, so that it can be repeated safely (default: random)")
	named := func() string {
		if *requestID == "" {
			return rand.Text()
		}
		return *requestID
	}
	chat.AddCommand(c.chatCreate(named), c.chatTools("enable", toolgrantv1.ChatAction_CHAT_ACTION_ENABLE, named),
		c.chatTools("disable", toolgrantv1.ChatAction_CHAT_ACTION_DISABLE, named), c.chatAvatar(named), c.chatGet(), c.chatLog(), c.chatEnd(named))
	return chat
}

func (c *cli) chatCreate(requestID func() string) *cobra.Command {
	var user, surface string
	command := &cobra.Command{
		Use: "create CHAT --user USER", Short: "Create a chat", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.CreateChatResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).CreateChat(ctx, &toolgrantv1.CreateChatRequest{
					ChatId: args[0], UserId: user, Surface: surfaceOf(surface), RequestId: requestID()})
			}, func(w io.Writer, r *toolgrantv1.CreateChatResponse) { printEntries(w, r.GetEntries()) })
		},
	}
	c.userFlags(command, &user, &surface)
	return command
}

func (c *cli) chatTools(verb string, action toolgrantv1.ChatAction, requestID func() string) *cobra.Command {
	var turn, ttl int32
	command := &cobra.Command{
		Use: verb + " CHAT TOOL...", Short: verb + " tools in a chat", Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: completeAfter(1, c.completeIDs("tools", nil)),
		RunE: func(command *cobra.Command, args []string) error {
			request := &toolgrantv1.SetChatToolsRequest{ChatId: args[0], RequestId: requestID(), Turn: turnOf(command, turn)}
			for _, tool := range args[1:] {
				change := &toolgrantv1.ToolChange{ToolId: tool, Action: action}
				if command.Flags().Changed("ttl-turns") {
					change.TtlTurns = &ttl
				}
				request.Changes = append(request.Changes, change)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SetChatToolsResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).SetChatTools(ctx, request)
			}, func(w io.Writer, r *toolgrantv1.SetChatToolsResponse) { printEntries(w, r.GetEntries()) })
		},
	}
	command.Flags().Int32Var(&turn, "turn", 0, "the turn (default: the chat's)")
	if action == toolgrantv1.ChatAction_CHAT_ACTION_ENABLE {
		command.Flags().Int32Var(&ttl, "ttl-turns", 0, "for how many turns (default: for good)")
	}
	return command
}

func (c *cli) chatAvatar(requestID func() string) *cobra.Command {
	var turn int32
	actions := map[string]toolgrantv1.ChatAction{
		"enable": toolgrantv1.ChatAction_CHAT_ACTION_ENABLE, "disable": toolgrantv1.ChatAction_CHAT_ACTION_DISABLE}
	command := &cobra.Command{
		Use: "avatar CHAT enable|disable AVATAR...", Short: "Turn avatars on or off in a chat", Args: cobra.MinimumNArgs(3),
		ValidArgsFunction: completeAfter(1, func(command *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"enable", "disable"}, cobra.ShellCompDirectiveNoFileComp
			}
			return c.completeIDs("avatars", nil)(command, args, word)
		}),
		RunE: func(command *cobra.Command, args []string) error {
			action, ok := actions[args[1]]
			if !ok {
				return fmt.Errorf("enable or disable, not %q", args[1])
			}
			request := &toolgrantv1.SetChatAvatarsRequest{ChatId: args[0], RequestId: requestID(), Turn: turnOf(command, turn)}
			for _, avatar := range args[2:] {
				request.Changes = append(request.Changes, &toolgrantv1.AvatarChange{AvatarId: avatar, Action: action})
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SetChatAvatarsResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).SetChatAvatars(ctx, request)
			}, func(w io.Writer, r *toolgrantv1.SetChatAvatarsResponse) { printEntries(w, r.GetEntries()) })
		},
	}
	command.Flags().Int32Var(&turn, "turn", 0, "the turn (default: the chat's)")
	return command
}

func (c *cli) chatGet() *cobra.Command {
	return &cobra.Command{
		Use: "get CHAT", Short: "Show a chat", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, args []string) error { return c.getChat(command, args[0]) },
	}
}

func (c *cli) chatEnd(requestID func() string) *cobra.Command {
	return &cobra.Command{
		Use: "end CHAT", Short: "End a chat: nothing more can be written to it or resolved for it", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.EndChatResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).EndChat(ctx, &toolgrantv1.EndChatRequest{ChatId: args[0], RequestId: requestID()})
			}, func(w io.Writer, r *toolgrantv1.EndChatResponse) {
				fmt.Fprintf(w, "chat %s ended at %s\n", r.GetChat().GetChatId(), r.GetChat().GetEndTime().AsTime().Format(time.RFC3339))
			})
		},
	}
}
