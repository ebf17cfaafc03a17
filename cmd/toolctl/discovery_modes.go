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

const routingModePrefix = "ROUTING_MODE_"

// routingModes are the modes as people write them.
var routingModes = []string{"legacy", "hybrid", "v2"}

func (c *cli) discoveryCommand() *cobra.Command {
	command := &cobra.Command{Use: "discovery", Short: "Report how well tools are found, and switch how"}
	command.AddCommand(c.reportCommand(), c.suggestCoreCommand(), c.modesCommand(), c.setModeCommand())
	return command
}

func (c *cli) modesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "modes", Short: "Show by which strategy requests in words are answered",
		Example: "  toolctl discovery modes", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListRoutingModesResponse, error) {
				return listRoutingModes(ctx, toolgrantv1.NewDiscoveryServiceClient(conn))
			}, printRoutingModes)
		},
	}
}

// listRoutingModes reads all pages as one.
func listRoutingModes(ctx context.Context, client toolgrantv1.DiscoveryServiceClient) (*toolgrantv1.ListRoutingModesResponse, error) {
	all := &toolgrantv1.ListRoutingModesResponse{}
	for request := (&toolgrantv1.ListRoutingModesRequest{PageSize: pageSize}); ; {
		page, err := client.ListRoutingModes(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Modes, all.Revision = append(all.Modes, page.GetModes()...), page.GetRevision()
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
}

func printRoutingModes(w io.Writer, r *toolgrantv1.ListRoutingModesResponse) {
	rest, groups := "v2 (nothing is set)", r.GetModes()
	if len(groups) > 0 && groups[0].GetGroupId() == "" {
		rest, groups = word(groups[0].GetMode(), routingModePrefix), groups[1:]
	}
	t := newTable(w, "USERS", "MODE")
	for _, m := range groups {
		t.AppendRow(table.Row{"group " + m.GetGroupId(), word(m.GetMode(), routingModePrefix)})
	}
	t.AppendRow(table.Row{"all others", rest})
	t.Render()
}

func (c *cli) setModeCommand() *cobra.Command {
	request := &toolgrantv1.SetRoutingModeRequest{}
	command := &cobra.Command{
		Use: "set-mode legacy|hybrid|v2|none", Short: "Switch by which strategy requests in words are answered",
		Long: "Switch by which strategy requests in words are answered, at all servers at once.\n\n" +
			"legacy: all enabled tools are told, nothing is searched. hybrid: answers are those of legacy, and what v2 would have answered is recorded.\n" +
			"v2: large sets are narrowed for a query, and tools are found. none: what was set is taken back.\n" +
			"Of a user's groups that of the highest priority counts; of several at one priority the most cautious mode.",
		Example: "  toolctl discovery set-mode hybrid\n  toolctl discovery set-mode v2 --group testers\n  toolctl discovery set-mode none --group testers",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append([]string{"none"}, routingModes...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) (err error) {
			if args[0] != "none" {
				if request.Mode, err = routingModeNamed(args[0]); err != nil {
					return fmt.Errorf("%w, none", err)
				}
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SetRoutingModeResponse, error) {
				return toolgrantv1.NewDiscoveryServiceClient(conn).SetRoutingMode(ctx, request)
			}, func(w io.Writer, _ *toolgrantv1.SetRoutingModeResponse) {
				whose := "all users of whose groups none has a mode"
				if request.GetGroupId() != "" {
					whose = "members of group " + request.GetGroupId()
				}
				fmt.Fprintf(w, "mode of %s: %s\n", whose, args[0])
			})
		},
	}
	command.Flags().StringVar(&request.GroupId, "group", "", "for the members of this group (default: for all users of whose groups none has a mode)")
	complete(command, "group", c.completeIDs("groups", nil))
	return command
}
