package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const (
	rejectionReasonPrefix = "REJECTION_REASON_"
	chatActorPrefix       = "CHAT_ACTOR_"
)

func (c *cli) searchCommand() *cobra.Command {
	q, request := &conversation{}, &toolgrantv1.SearchToolsRequest{}
	command := &cobra.Command{
		Use: "search WORDS... --user USER", Short: "Find the tools that a request in words needs, as a model does",
		Example: "  toolctl search --user ann what is the weather in Lisbon\n" +
			"  toolctl search --user ann --explain 查询天气",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			request.Query = strings.Join(args, " ")
			request.ChatId, request.UserId, request.Surface, request.Turn = q.chat, q.user, surfaceOf(q.surface), turnOf(command, q.turn)
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.SearchToolsResponse, error) {
				return toolgrantv1.NewDiscoveryServiceClient(conn).SearchTools(ctx, request)
			}, printFound)
		},
	}
	c.conversationFlags(command, q)
	f := command.Flags()
	f.Int32Var(&request.TopK, "top", 0, "the most matches (default: 5)")
	f.BoolVar(&request.Explain, "explain", false, "also tell what each score is made of")
	f.StringSliceVar(&request.ModelCapabilities, "model-capabilities", nil, "what the model can do")
	f.StringSliceVar(&request.ProviderCapabilities, "provider-capabilities", nil, "what the model's provider supports")
	f.StringVar(&request.Provider, "provider", "", "the model's provider")
	for _, flag := range []string{"top", "model-capabilities", "provider-capabilities", "provider"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	return command
}

var modelNames = map[toolgrantv1.SearchModel]string{
	toolgrantv1.SearchModel_SEARCH_MODEL_EMBEDDING: "embedding model", toolgrantv1.SearchModel_SEARCH_MODEL_RERANKER: "re-ranker"}

func printFound(w io.Writer, r *toolgrantv1.SearchToolsResponse) {
	if r.GetFallback() != nil {
		_, _ = fmt.Fprintln(w, oneLine(r.GetFallback().GetSuggestion()))
	}
	if fast := r.GetFastPath(); fast != nil {
		_, _ = fmt.Fprintf(w, "%s may be called at once for “%s”.\n", fast.GetToolId(), oneLine(fast.GetTask()))
	}
	if len(r.GetMatches()) > 0 {
		t := newTable(w, "TOOL", "NAME", "SURE", "ON", "WHY")
		for _, m := range r.GetMatches() {
			t.AppendRow(table.Row{m.GetToolId(), m.GetName(), percent(m.GetConfidence()), map[bool]string{true: "on"}[m.GetEnabled()], whyFound(m)})
		}
		t.Render()
	}
	for _, m := range r.GetMatches() {
		if f := m.GetFeatures(); f != nil {
			_, _ = fmt.Fprintf(w, "%s: score %.3f = ranking %.3f × %.3f; words %.2f, sentence %.2f, name %.2f, n-grams %.2f, cold %.2f, history %.2f of which %.2f counts, coverage %.2f, strength %.2f, nearest %.2f, similar %d, unlike %.2f, expansion %.2f, new %.2f\n",
				m.GetToolId(), m.GetScore(), f.GetRanking(), f.GetAdjustment(), f.GetWords(), f.GetSentence(), f.GetNameCoverage(), f.GetGrams(), f.GetCold(),
				f.GetHistory(), f.GetHistoryShare(), f.GetCoverage(), f.GetStrength(), f.GetNearest(), f.GetSimilar(), f.GetUnlike(), f.GetExpansion(), f.GetNewCredit())
		}
	}
	for _, one := range r.GetRelated() {
		_, _ = fmt.Fprintf(w, "%s is often needed with %s.\n", one.GetToolId(), one.GetRelatedToToolId())
	}
	for _, model := range r.GetMissedModels() {
		_, _ = fmt.Fprintf(w, "The %s did not answer in time, or not well: words and past requests tell the matches.\n", modelNames[model])
	}
	_, _ = fmt.Fprintf(w, "%d tools could have been found.\n", r.GetCandidateCount())
}

func percent(share float64) string { return strconv.Itoa(int(share*100+0.5)) + " %" }

func whyFound(m *toolgrantv1.ToolMatch) string {
	var why []string
	for _, r := range m.GetWhyMatched() {
		why = append(why, oneLine(r.GetMessage()))
	}
	if m.GetUnhealthy() {
		why = append(why, "put aside, it fails")
	}
	return strings.Join(why, "; ")
}

func (c *cli) enableCommand() *cobra.Command {
	q, request, ttl, actor := &conversation{}, &toolgrantv1.EnableToolsRequest{}, int32(0), ""
	command := &cobra.Command{
		Use: "enable NAME... --chat CHAT --user USER", Short: "Turn on tools that were found, for some turns, as a model does",
		Long:    "Turn on tools that were found, for some turns, as a model does. What may not be turned on is told; the rest is written.\ntoolctl chat enable turns tools on for good, all or nothing.",
		Example: "  toolctl enable get_weather --chat c1 --user ann",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			number, known := toolgrantv1.ChatActor_value[chatActorPrefix+strings.ToUpper(actor)]
			if !known || number == 0 {
				return fmt.Errorf("--actor: must be model or person, not %q", actor)
			}
			request.Names, request.Actor, request.RequestId = args, toolgrantv1.ChatActor(number), orRandom(request.GetRequestId())
			request.ChatId, request.UserId, request.Surface, request.Turn = q.chat, q.user, surfaceOf(q.surface), turnOf(command, q.turn)
			if command.Flags().Changed("ttl-turns") {
				request.TtlTurns = proto.Int32(ttl)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.EnableToolsResponse, error) {
				return toolgrantv1.NewDiscoveryServiceClient(conn).EnableTools(ctx, request)
			}, printEnabled)
		},
	}
	c.conversationFlags(command, q)
	f := command.Flags()
	f.Int32Var(&ttl, "ttl-turns", 0, "for how many turns, this one included (default: 3)")
	f.StringVar(&request.RequestId, "request-id", "", "names the request, to repeat it (default: random)")
	f.StringVar(&actor, "actor", "person", "who turns them on: model or person")
	complete(command, "ttl-turns", cobra.NoFileCompletions)
	complete(command, "request-id", cobra.NoFileCompletions)
	complete(command, "actor", cobra.FixedCompletions([]string{"model", "person"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func printEnabled(w io.Writer, r *toolgrantv1.EnableToolsResponse) {
	for _, one := range r.GetEnabled() {
		_, _ = fmt.Fprintf(w, "%s is on for %d turns\n", one.GetToolId(), one.GetTtlTurns())
	}
	for _, one := range r.GetRejected() {
		_, _ = fmt.Fprintf(w, "%s: %s: %s %s\n", oneLine(one.GetRequestedName()), word(one.GetReason(), rejectionReasonPrefix), oneLine(one.GetMessage()), oneLine(one.GetNextStep()))
		if len(one.GetNearestNames()) > 0 {
			_, _ = fmt.Fprintf(w, "  near to it: %s\n", strings.Join(one.GetNearestNames(), ", "))
		}
	}
}
