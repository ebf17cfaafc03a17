package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) chatLog() *cobra.Command {
	return &cobra.Command{
		Use: "log CHAT", Short: "Show a chat's log", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
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
		t.AppendRow(table.Row{e.GetSequenceNumber(), e.GetTurn(), word(e.GetAction(), "CHAT_ACTION_"),
			e.GetToolId() + e.GetAvatarId(), ttl, e.GetRequestId(), e.GetCreateTime().AsTime().Format(time.RFC3339)})
	}
	t.Render()
}
