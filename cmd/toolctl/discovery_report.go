package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// spanFlags are those of commands about a span of time.
type spanFlags struct{ since, until string }

func (s *spanFlags) add(command *cobra.Command, defaultSince string) {
	command.Flags().StringVar(&s.since, "since", "", "not before: a duration ago (24h), a day (2026-05-01, in UTC) or an RFC 3339 time (default: "+defaultSince+" before --until)")
	command.Flags().StringVar(&s.until, "until", "", "before: as --since (default: now)")
	complete(command, "since", cobra.NoFileCompletions)
	complete(command, "until", cobra.NoFileCompletions)
}

// read returns what the flags mean; nil: the server's default.
func (s *spanFlags) read() (start, end *timestamppb.Timestamp, err error) {
	now := time.Now()
	if start, err = instant(s.since, now); err != nil {
		return nil, nil, fmt.Errorf("--since: %w", err)
	}
	if end, err = instant(s.until, now); err != nil {
		return nil, nil, fmt.Errorf("--until: %w", err)
	}
	return start, end, nil
}

// routingModeNamed reads a mode; nothing for an empty name.
func routingModeNamed(name string) (toolgrantv1.RoutingMode, error) {
	if name == "" {
		return 0, nil
	}
	number, known := toolgrantv1.RoutingMode_value[routingModePrefix+strings.ToUpper(name)]
	if !known || number == 0 {
		return 0, fmt.Errorf("no such mode %q: it is one of %s", name, strings.Join(routingModes, ", "))
	}
	return toolgrantv1.RoutingMode(number), nil
}

func (c *cli) reportCommand() *cobra.Command {
	request, span, mode := &toolgrantv1.GetDiscoveryReportRequest{}, &spanFlags{}, ""
	command := &cobra.Command{
		Use: "report", Short: "Report how well tools are found and used, by routing mode",
		Long: "Report how well tools are found and used, by routing mode.\n\n" +
			"A route is a search, or a narrowing of a large set of tools for a message. What each figure counts: docs/discovery.md.",
		Example: "  toolctl discovery report\n  toolctl discovery report --since 168h --mode hybrid\n  toolctl discovery report --since 2026-05-01 --until 2026-06-01 -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if request.Mode, err = routingModeNamed(mode); err != nil {
				return fmt.Errorf("--mode: %w", err)
			}
			if request.StartTime, request.EndTime, err = span.read(); err != nil {
				return err
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.GetDiscoveryReportResponse, error) {
				return toolgrantv1.NewDiscoveryServiceClient(conn).GetDiscoveryReport(ctx, request)
			}, printReport)
		},
	}
	span.add(command, "24h")
	command.Flags().StringVar(&mode, "mode", "", "of this mode only: "+strings.Join(routingModes, ", "))
	complete(command, "mode", cobra.FixedCompletions(routingModes, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func printReport(w io.Writer, r *toolgrantv1.GetDiscoveryReportResponse) {
	fmt.Fprintf(w, "from %s to %s\n", r.GetStartTime().AsTime().Format(time.RFC3339), r.GetEndTime().AsTime().Format(time.RFC3339))
	if len(r.GetReports()) == 0 {
		fmt.Fprintln(w, "nothing was searched, narrowed or called")
		return
	}
	header := []any{"FIGURE"}
	for _, p := range r.GetReports() {
		name := "before modes"
		if p.GetMode() != toolgrantv1.RoutingMode_ROUTING_MODE_UNSPECIFIED {
			name = word(p.GetMode(), routingModePrefix)
		}
		header = append(header, name)
	}
	t := newTable(w, header...)
	for _, figure := range []struct {
		name string
		of   func(*toolgrantv1.DiscoveryReport) string
	}{
		{"searches", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetSearches()) }},
		{"searches without matches", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetSearchesWithoutMatches()) }},
		{"search retry count", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetSearchRetryCount()) }},
		{"narrowings", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetNarrowings()) }},
		{"routed calls", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetRoutedCalls()) }},
		{"route top-1 hit", func(p *toolgrantv1.DiscoveryReport) string { return share(p.RouteTop1Hit) }},
		{"route top-3 hit", func(p *toolgrantv1.DiscoveryReport) string { return share(p.RouteTop3Hit) }},
		{"missed by narrowing", func(p *toolgrantv1.DiscoveryReport) string { return share(p.MissedRate) }},
		{"shadow difference", func(p *toolgrantv1.DiscoveryReport) string { return share(p.ShadowDifference) }},
		{"turned on", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetEnabled()) }},
		{"enable unused rate", func(p *toolgrantv1.DiscoveryReport) string { return share(p.EnableUnusedRate) }},
		{"calls", func(p *toolgrantv1.DiscoveryReport) string { return count(p.GetCalls()) }},
		{"tool call error rate", func(p *toolgrantv1.DiscoveryReport) string { return share(p.ToolCallErrorRate) }},
		{"average tool steps", func(p *toolgrantv1.DiscoveryReport) string {
			if p.AverageToolSteps == nil {
				return ""
			}
			return strconv.FormatFloat(p.GetAverageToolSteps(), 'f', 2, 64)
		}},
	} {
		row := table.Row{figure.name}
		for _, p := range r.GetReports() {
			row = append(row, figure.of(p))
		}
		t.AppendRow(row)
	}
	t.Render()
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// share is a rate as a percentage; empty: there was nothing to divide by.
func share(rate *float64) string {
	if rate == nil {
		return ""
	}
	return strconv.FormatFloat(*rate*100, 'f', 1, 64) + " %"
}
