package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) suggestCoreCommand() *cobra.Command {
	request, span := &toolgrantv1.SuggestCoreToolsRequest{}, &spanFlags{}
	var minUsers, minDays int32
	var minShare, maxErrors float64
	command := &cobra.Command{
		Use: "suggest-core", Short: "Suggest tools that so many users call that they might be core tools",
		Long: "Suggest tools that so many users call that they might be core tools, with the evidence.\n\n" +
			"It changes nothing. Who agrees sets core: true of the tool. A core tool is told to the model in every chat, which costs tokens in each.",
		Example: "  toolctl discovery suggest-core\n  toolctl discovery suggest-core --since 168h --min-user-share 0.5",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if request.StartTime, request.EndTime, err = span.read(); err != nil {
				return err
			}
			changed := command.Flags().Changed
			if changed("min-users") {
				request.MinUsers = &minUsers
			}
			if changed("min-user-share") {
				request.MinUserShare = &minShare
			}
			if changed("min-days") {
				request.MinDays = &minDays
			}
			if changed("max-error-rate") {
				request.MaxErrorRate = &maxErrors
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SuggestCoreToolsResponse, error) {
				return toolgrantv1.NewDiscoveryServiceClient(conn).SuggestCoreTools(ctx, request)
			}, printCoreSuggestions)
		},
	}
	span.add(command, "30 days")
	f := command.Flags()
	f.Int32Var(&minUsers, "min-users", 5, "so many users must have called it with success")
	f.Float64Var(&minShare, "min-user-share", 0.2, "they must be this share of all users who called a tool, from 0 to 1")
	f.Int32Var(&minDays, "min-days", 3, "on so many days")
	f.Float64Var(&maxErrors, "max-error-rate", 0.2, "no larger share of its calls may have failed, from 0 to 1")
	f.Int32Var(&request.Limit, "limit", 10, "at most so many")
	for _, flag := range []string{"min-users", "min-user-share", "min-days", "max-error-rate", "limit"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	return command
}

func printCoreSuggestions(w io.Writer, r *toolgrantv1.SuggestCoreToolsResponse) {
	fmt.Fprintf(w, "%d users called tools, in %d chats\n", r.GetUsers(), r.GetChats())
	if len(r.GetSuggestions()) == 0 {
		fmt.Fprintln(w, "no tool meets the criteria")
		return
	}
	t := newTable(w, "TOOL", "USERS", "CHATS", "DAYS", "CALLS", "FAILED", "SEARCHES")
	for _, s := range r.GetSuggestions() {
		of := func(n int64, share float64) string { return strconv.FormatInt(n, 10) + " (" + percent(share) + ")" }
		t.AppendRow(table.Row{s.GetToolId(), of(s.GetUsers(), s.GetUserShare()), of(s.GetChats(), s.GetChatShare()), s.GetDays(), s.GetCalls(), percent(s.GetErrorRate()), s.GetSearches()})
	}
	t.Render()
	fmt.Fprintln(w, "nothing was changed: who agrees sets core: true of the tool")
}
