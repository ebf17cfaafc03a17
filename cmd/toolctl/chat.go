package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
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
		c.chatTools("disable", toolgrantv1.ChatAction_CHAT_ACTION_DISABLE, named), c.chatAvatar(named), c.chatLog())
	return chat
}

func (c *cli) chatCreate(requestID func() string) *cobra.Command {
	var user, surface string
	command := &cobra.Command{
		Use: "create CHAT --user USER", Short: "Create a chat", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.CreateChatResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).CreateChat(ctx, &toolgrantv1.CreateChatRequest{
					ChatId: args[0], UserId: user, Surface: surfaceOf(surface), RequestId: requestID()})
			}, func(w io.Writer, r *toolgrantv1.CreateChatResponse) { printEntries(w, r.GetEntries()) })
		},
	}
	command.Flags().StringVar(&user, "user", "", "the user")
	command.Flags().StringVar(&surface, "surface", "web", "web, or the id of one of the user's devices")
	_ = command.MarkFlagRequired("user") // the flag exists
	return command
}

func (c *cli) chatTools(verb string, action toolgrantv1.ChatAction, requestID func() string) *cobra.Command {
	var turn, ttl int32
	command := &cobra.Command{
		Use: verb + " CHAT TOOL...", Short: verb + " tools in a chat", Args: cobra.MinimumNArgs(2),
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
	return &cobra.Command{
		Use: "avatar CHAT enable|disable AVATAR...", Short: "Turn avatars on or off in a chat", Args: cobra.MinimumNArgs(3),
		RunE: func(command *cobra.Command, args []string) error {
			action, ok := toolgrantv1.ChatAction_value["CHAT_ACTION_"+strings.ToUpper(args[1])]
			if !ok || action == 0 {
				return fmt.Errorf("enable or disable, not %q", args[1])
			}
			request := &toolgrantv1.SetChatAvatarsRequest{ChatId: args[0], RequestId: requestID()}
			for _, avatar := range args[2:] {
				request.Changes = append(request.Changes, &toolgrantv1.AvatarChange{AvatarId: avatar, Action: toolgrantv1.ChatAction(action)})
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SetChatAvatarsResponse, error) {
				return toolgrantv1.NewChatServiceClient(conn).SetChatAvatars(ctx, request)
			}, func(w io.Writer, r *toolgrantv1.SetChatAvatarsResponse) { printEntries(w, r.GetEntries()) })
		},
	}
}

func (c *cli) chatLog() *cobra.Command {
	return &cobra.Command{
		Use: "log CHAT", Short: "Show a chat's log", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListChatLogResponse, error) {
				all := &toolgrantv1.ListChatLogResponse{}
				for {
					page, err := toolgrantv1.NewChatServiceClient(conn).ListChatLog(ctx, &toolgrantv1.ListChatLogRequest{
						ChatId: args[0], PageSize: 1000, PageToken: all.GetNextPageToken()})
					if err != nil {
						return nil, err
					}
					all.Entries = append(all.Entries, page.GetEntries()...)
					all.NextPageToken, all.Revision = page.GetNextPageToken(), page.GetRevision()
					if page.GetNextPageToken() == "" {
						return all, nil
					}
				}
			}, func(w io.Writer, r *toolgrantv1.ListChatLogResponse) { printEntries(w, r.GetEntries()) })
		},
	}
}

func printEntries(w io.Writer, entries []*toolgrantv1.ChatLogEntry) {
	t := newTable(w, "#", "TURN", "ACTION", "TOOL OR AVATAR", "TTL", "REQUEST", "WRITTEN")
	for _, e := range entries {
		ttl := ""
		if e.TtlTurns != nil {
			ttl = fmt.Sprint(e.GetTtlTurns(), " turns")
		}
		t.AppendRow(table.Row{e.GetSequenceNumber(), e.GetTurn(), strings.ToLower(strings.TrimPrefix(e.GetAction().String(), "CHAT_ACTION_")),
			e.GetToolId() + e.GetAvatarId(), ttl, e.GetRequestId(), e.GetCreateTime().AsTime().Format(time.RFC3339)})
	}
	t.Render()
}
