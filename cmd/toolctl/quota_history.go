package main

import (
	"context"
	"errors"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) quotaHistory() *cobra.Command {
	request := &toolgrantv1.ListQuotaHistoryRequest{}
	var limit int
	command := &cobra.Command{
		Use: "history", Short: "Show what was used, by day, user and tool",
		Long: "Show what was used, by day, user and tool: calls and tokens that were consumed or committed. Days are those of UTC.",
		Example: "  toolctl quota history --user ann --from 2026-01-01 --to 2026-01-31\n" +
			"  toolctl quota history --tool web_search.pro -o json",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if limit < 0 {
				return errors.New("--limit: must not be negative")
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListQuotaHistoryResponse, error) {
				return historyOf(ctx, toolgrantv1.NewQuotaServiceClient(conn), request, limit)
			}, printHistory)
		},
	}
	command.Flags().StringVar(&request.UserId, "user", "", "only this user's")
	command.Flags().StringVar(&request.ToolId, "tool", "", "only of this tool")
	command.Flags().StringVar(&request.FirstDay, "from", "", "the first day, such as 2026-01-01 (default: the first there is)")
	command.Flags().StringVar(&request.LastDay, "to", "", "the last day, included (default: the last there is)")
	command.Flags().IntVar(&limit, "limit", 0, "list at most so many (default: all)")
	complete(command, "user", c.completeIDs("users", nil))
	complete(command, "tool", c.completeIDs("tools", nil))
	for _, free := range []string{"from", "to", "limit"} {
		complete(command, free, cobra.NoFileCompletions)
	}
	return command
}

// historyOf reads all pages, or as many as hold so many lines, as one. It tells the token of the next if there is one.
func historyOf(ctx context.Context, client toolgrantv1.QuotaServiceClient, request *toolgrantv1.ListQuotaHistoryRequest, limit int) (*toolgrantv1.ListQuotaHistoryResponse, error) {
	const pageSize = 1000
	all := &toolgrantv1.ListQuotaHistoryResponse{}
	for {
		request.PageSize = pageSize
		if limit > 0 {
			request.PageSize = int32(min(pageSize, limit-len(all.GetUsage())))
		}
		request.PageToken = all.GetNextPageToken()
		page, err := client.ListQuotaHistory(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Usage = append(all.Usage, page.GetUsage()...)
		all.NextPageToken = page.GetNextPageToken()
		if all.GetNextPageToken() == "" || limit > 0 && len(all.GetUsage()) >= limit {
			return all, nil
		}
	}
}

func printHistory(w io.Writer, r *toolgrantv1.ListQuotaHistoryResponse) {
	t := newTable(w, "DAY", "USER", "TOOL", "CALLS", "TOKENS")
	var calls, tokens int64
	for _, u := range r.GetUsage() {
		t.AppendRow(table.Row{u.GetDay(), u.GetUserId(), u.GetToolId(), u.GetCalls(), u.GetTokens()})
		calls, tokens = calls+u.GetCalls(), tokens+u.GetTokens()
	}
	t.AppendFooter(table.Row{"", "", "SUM", calls, tokens})
	t.Render()
}
