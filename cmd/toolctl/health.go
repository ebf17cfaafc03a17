package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const breakerStatePrefix = "BREAKER_STATE_"

func (c *cli) healthCommand() *cobra.Command {
	var failing bool
	command := &cobra.Command{
		Use: "health", Short: "Show how tools and MCP servers do, and which are put aside because they fail",
		Long: "Show how tools and MCP servers do that were called in the last 24 hours, and which are put aside because they fail.\n\n" +
			"A breaker that is open lets no call through until the time at RETRY; one that is half open lets one through, to see.",
		Example: "  toolctl health\n  toolctl health --failing\n  toolctl health -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListHealthResponse, error) {
				return listHealth(ctx, toolgrantv1.NewCallServiceClient(conn), failing)
			}, func(w io.Writer, r *toolgrantv1.ListHealthResponse) { printHealth(w, r, time.Now()) })
		},
	}
	command.Flags().BoolVar(&failing, "failing", false, "only those whose breaker is not closed")
	return command
}

// listHealth reads all pages as one.
func listHealth(ctx context.Context, client toolgrantv1.CallServiceClient, failing bool) (*toolgrantv1.ListHealthResponse, error) {
	all := &toolgrantv1.ListHealthResponse{}
	for request := (&toolgrantv1.ListHealthRequest{PageSize: pageSize}); ; {
		page, err := client.ListHealth(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, h := range page.GetHealth() {
			if !failing || h.GetBreaker() != toolgrantv1.BreakerState_BREAKER_STATE_CLOSED {
				all.Health = append(all.Health, h)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
}

func printHealth(w io.Writer, r *toolgrantv1.ListHealthResponse, now time.Time) {
	if len(r.GetHealth()) == 0 {
		fmt.Fprintln(w, "nobody reported on such tools or servers in the last 24 hours")
		return
	}
	t := newTable(w, "KIND", "ID", "BREAKER", "SCORE", "FAILURES", "LATENCY", "RETRY", "REPORTED")
	local := false
	for _, h := range r.GetHealth() {
		kind, name := "tool", h.GetToolId()
		if h.GetMcpServerId() != "" {
			kind, name = "server", h.GetMcpServerId()
		}
		latency := ""
		if h.GetLatency() != nil {
			latency = h.GetLatency().AsDuration().Round(time.Millisecond).String()
		}
		t.AppendRow(table.Row{kind, name, word(h.GetBreaker(), breakerStatePrefix), fmt.Sprintf("%.2f", h.GetScore()), h.GetFailuresInARow(),
			latency, from(h.GetRetryTime(), now), from(h.GetReportTime(), now)})
		local = local || h.GetLocal()
	}
	t.Render()
	if local {
		fmt.Fprintln(w, "only this server's own reports count at the moment: what the servers share cannot be reached")
	}
}

// from words a time by how far it is from another.
func from(at *timestamppb.Timestamp, now time.Time) string {
	if at == nil {
		return ""
	}
	d := at.AsTime().Sub(now).Round(time.Second)
	if d > 0 {
		return "in " + d.String()
	}
	return (-d).String() + " ago"
}
