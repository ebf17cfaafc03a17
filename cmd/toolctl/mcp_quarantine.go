package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const differencePrefix = "MCP_DIFFERENCE_"

func (c *cli) mcpQuarantine() *cobra.Command {
	return &cobra.Command{
		Use: "quarantine [TOOL_TYPE]", Short: "Show what MCP servers changed since it was approved",
		Long: "Show what MCP servers changed since it was approved. Nobody can use what is new or changed, until it is approved with\n" +
			"toolctl mcp approve. What was removed is gone; to approve that is to forget it.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListMcpObservationsResponse, error) {
				return listObservations(ctx, conn, strings.Join(args, ""))
			}, printObservations)
		},
	}
}

// listObservations reads all pages as one.
func listObservations(ctx context.Context, conn *grpc.ClientConn, toolType string) (*toolgrantv1.ListMcpObservationsResponse, error) {
	client, all := toolgrantv1.NewCatalogServiceClient(conn), &toolgrantv1.ListMcpObservationsResponse{}
	for request := (&toolgrantv1.ListMcpObservationsRequest{ToolTypeId: toolType, PageSize: pageSize}); ; {
		page, err := client.ListMcpObservations(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Observations, all.Revision = append(all.Observations, page.GetObservations()...), page.GetRevision()
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return all, nil
		}
	}
}

func printObservations(w io.Writer, r *toolgrantv1.ListMcpObservationsResponse) {
	signs := map[toolgrantv1.McpDifference]string{
		toolgrantv1.McpDifference_MCP_DIFFERENCE_NEW:     "+",
		toolgrantv1.McpDifference_MCP_DIFFERENCE_CHANGED: "~",
		toolgrantv1.McpDifference_MCP_DIFFERENCE_REMOVED: "-",
	}
	for _, o := range r.GetObservations() {
		fmt.Fprintf(w, "%s %s %s (%s)\n", signs[o.GetDifference()], o.GetToolTypeId(), o.GetName(), word(o.GetDifference(), differencePrefix))
		if o.GetObserved() != nil {
			for _, line := range functionDifference(o.GetPinned(), o.GetObserved()) {
				fmt.Fprintln(w, "    "+line)
			}
		}
		for _, finding := range o.GetFindings() {
			fmt.Fprintf(w, "    warning: %s\n", finding)
		}
	}
	if len(r.GetObservations()) == 0 {
		fmt.Fprintln(w, "nothing: the servers that were asked are as they were approved")
	}
}

// functionDifference shows how what a server says of a function differs from what is pinned.
func functionDifference(pinned, observed *toolgrantv1.McpFunction) []string {
	shown := func(f *toolgrantv1.McpFunction) map[string]any {
		said := proto.CloneOf(f)
		if said == nil {
			said = &toolgrantv1.McpFunction{}
		}
		said.Digest, said.Risk = "", toolgrantv1.ToolRisk_TOOL_RISK_UNSPECIFIED
		data, err := toJSON(said)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		fields, _ := value(string(data)).(map[string]any)
		delete(fields, "name")
		return fields
	}
	before, after := shown(pinned), shown(observed)
	var lines []string
	for _, key := range []string{"title", "description", "input_schema", "output_schema", "annotations", "error"} {
		if show(before[key]) != show(after[key]) {
			lines = append(lines, difference(key, before[key], after[key])...)
		}
	}
	return lines
}

func (c *cli) mcpApprove() *cobra.Command {
	var all bool
	var reason string
	command := &cobra.Command{
		Use: "approve TOOL_TYPE (FUNCTION... | --all)", Short: "Let what an MCP server changed be used",
		Long: "Let what an MCP server changed be used. Look at it first, with toolctl mcp quarantine. What is shown is what is approved: if the\n" +
			"server changes it again meanwhile, nothing is.",
		Example: "  toolctl mcp quarantine maps\n  toolctl mcp approve maps route --reason 'new parameter, read the diff'\n  toolctl mcp approve maps --all",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			toolType, names := args[0], args[1:]
			if all == (len(names) > 0) {
				return errors.New("name functions, or say --all")
			}
			var approved toolgrantv1.ListMcpObservationsResponse
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ApproveMcpFunctionsResponse, error) {
				seen, err := listObservations(ctx, conn, toolType)
				if err != nil {
					return nil, err
				}
				request := &toolgrantv1.ApproveMcpFunctionsRequest{ToolTypeId: toolType}
				for _, o := range seen.GetObservations() {
					if all || slices.Contains(names, o.GetName()) {
						approved.Observations = append(approved.Observations, o)
						request.Functions = append(request.Functions, &toolgrantv1.McpApproval{Name: o.GetName(), Digest: o.GetObserved().GetDigest()})
					}
				}
				if all && len(request.GetFunctions()) == 0 || len(request.GetFunctions()) < len(names) {
					return nil, errors.New("some of that is not in quarantine: see toolctl mcp quarantine " + toolType)
				}
				return toolgrantv1.NewCatalogServiceClient(conn).ApproveMcpFunctions(because(ctx, reason), request)
			}, func(w io.Writer, _ *toolgrantv1.ApproveMcpFunctionsResponse) {
				printObservations(w, &approved)
				fmt.Fprintf(w, "%d approved\n", len(approved.GetObservations()))
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, "all that the server changed")
	command.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	complete(command, "reason", cobra.NoFileCompletions)
	return command
}
