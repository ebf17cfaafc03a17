package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const (
	callDecisionPrefix = "CALL_DECISION_"
	callReasonPrefix   = "CALL_REASON_"
	callOutcomePrefix  = "CALL_OUTCOME_"
)

// refusedCall is that the server answered, and refused.
type refusedCall struct{ reason toolgrantv1.CallReason }

// Error implements error.
func (e *refusedCall) Error() string {
	return "the call may not be made: " + word(e.reason, callReasonPrefix)
}

// status is the exit status that fits the reason.
func (e *refusedCall) status() int {
	switch e.reason {
	case toolgrantv1.CallReason_CALL_REASON_QUOTA_EXHAUSTED:
		return exitExhausted
	case toolgrantv1.CallReason_CALL_REASON_QUOTA_UNAVAILABLE:
		return exitUnavailable
	case toolgrantv1.CallReason_CALL_REASON_UNKNOWN_FUNCTION, toolgrantv1.CallReason_CALL_REASON_UNKNOWN_SOURCE:
		return exitMissing
	}
	return exitRefused
}

func (c *cli) callCommand() *cobra.Command {
	calls := &cobra.Command{Use: "call", Short: "Ask whether a call may be made, as a chat server does, and report it"}
	calls.AddCommand(c.callAuthorize(), c.callReport())
	return calls
}

func (c *cli) callAuthorize() *cobra.Command {
	q, arguments, lease := &conversation{}, "", time.Duration(0)
	var tokens int64
	request := &toolgrantv1.AuthorizeCallRequest{}
	command := &cobra.Command{
		Use: "authorize FUNCTION", Short: "Ask whether a function may be called now, and why not",
		Long: "Ask whether a function may be called now, and why not. What is allowed holds its quotas until it is reported; with --dry-run\n" +
			"nothing is taken, and nobody is asked for an approval. A refusal has exit status 2 (of quotas 4 or 5, of what is unknown 3).",
		Example: "  toolctl call authorize web_search --user ann --chat c1 --dry-run\n" +
			"  toolctl call authorize delete_file --user ann --chat c1 --arguments '{\"path\": \"/a\"}'",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			request.CallId, request.Function = orRandom(request.GetCallId()), args[0]
			request.ChatId, request.UserId, request.Surface, request.Turn = q.chat, q.user, surfaceOf(q.surface), turnOf(command, q.turn)
			if command.Flags().Changed("tokens") {
				request.EstimatedTokens = proto.Int64(tokens)
			}
			if lease != 0 {
				request.Lease = durationpb.New(lease)
			}
			if arguments != "" {
				request.Arguments = &structpb.Struct{}
				if err := protojson.Unmarshal([]byte(arguments), request.GetArguments()); err != nil {
					return errors.New("--arguments: must be a JSON object")
				}
			}
			var refused error
			err := call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.AuthorizeCallResponse, error) {
				r, err := toolgrantv1.NewCallServiceClient(conn).AuthorizeCall(ctx, request)
				if err == nil && r.GetDecision() != toolgrantv1.CallDecision_CALL_DECISION_ALLOW {
					refused = &refusedCall{r.GetReason()}
				}
				return r, err
			}, func(w io.Writer, r *toolgrantv1.AuthorizeCallResponse) { printCall(w, request, r, time.Now()) })
			return errors.Join(err, refused)
		},
	}
	c.conversationFlags(command, q)
	f := command.Flags()
	f.StringVar(&request.CallId, "call-id", "", "names the call, to ask again or to report it (default: random)")
	f.StringVar(&request.Source, "source", "", "what the model named as the source: native, or an MCP server")
	f.StringVar(&arguments, "arguments", "", "a JSON object; without it arguments are not checked")
	f.Int64Var(&tokens, "tokens", 0, "the most tokens that the call is expected to cost")
	f.StringSliceVar(&request.ModelCapabilities, "model-capabilities", nil, "what the model can do")
	f.StringSliceVar(&request.ProviderCapabilities, "provider-capabilities", nil, "what the model's provider supports")
	f.StringVar(&request.Provider, "provider", "", "the model's provider")
	f.DurationVar(&lease, "lease", 0, "how long quotas are held (default: 5m)")
	f.BoolVar(&request.DryRun, "dry-run", false, "take and write nothing")
	for _, flag := range []string{"call-id", "source", "arguments", "tokens", "model-capabilities", "provider-capabilities", "provider", "lease"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	return command
}

// printCall says what a person would ask: may it, why not, what now, and how it was found.
func printCall(w io.Writer, request *toolgrantv1.AuthorizeCallRequest, r *toolgrantv1.AuthorizeCallResponse, now time.Time) {
	line := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "%-10s %s\n", name, oneLine(text))
		}
	}
	decision := strings.ToUpper(word(r.GetDecision(), callDecisionPrefix))
	if r.GetReason() != toolgrantv1.CallReason_CALL_REASON_UNSPECIFIED {
		decision += ": " + word(r.GetReason(), callReasonPrefix)
	}
	line("decision", decision)
	line("call", request.GetCallId())
	line("message", r.GetMessage())
	line("", r.GetMessageZh())
	line("next step", nextStep(r.GetNextStep(), now))
	line("tool", r.GetToolId())
	line("binding", bindingText(r.GetBinding()))
	line("approval", r.GetApprovalId())
	line("fallback", strings.Join(r.GetFallbackToolIds(), ", "))
	if r.GetExpireTime() != nil {
		line("held", "for "+wait(r.GetExpireTime().AsTime().Sub(now), now))
	}
	for i, sentence := range r.GetSourceTrace() {
		line(map[bool]string{true: "source"}[i == 0], sentence)
	}
	if len(r.GetRules()) > 0 {
		printStates(w, r.GetRules()...)
	}
}

func nextStep(next *toolgrantv1.NextStep, now time.Time) string {
	switch kind := next.GetKind().(type) {
	case *toolgrantv1.NextStep_Enable:
		return "enable it: toolctl chat enable " + kind.Enable.GetChatId() + " " + kind.Enable.GetChanges()[0].GetToolId() + " --request-id " + kind.Enable.GetRequestId()
	case *toolgrantv1.NextStep_ApprovalId:
		return "have it approved, then ask again with this call's id: toolctl approvals approve " + kind.ApprovalId
	case *toolgrantv1.NextStep_RetryAfter:
		return "try again in " + wait(kind.RetryAfter.AsDuration(), now)
	case *toolgrantv1.NextStep_UseFallback:
		return "call instead: " + strings.Join(kind.UseFallback.GetFunctions(), ", ")
	case *toolgrantv1.NextStep_FixArguments:
		var faults []string
		for _, f := range kind.FixArguments.GetFaults() {
			faults = append(faults, f.GetPath()+": "+f.GetDescription())
		}
		return "fix the arguments: " + strings.Join(faults, "; ")
	case *toolgrantv1.NextStep_NameSource:
		var sources []string
		for _, s := range kind.NameSource.GetSources() {
			sources = append(sources, fmt.Sprintf("%s (%s, as %s)", s.GetSource(), s.GetToolId(), s.GetUniqueName()))
		}
		return "name a source: " + strings.Join(sources, ", ")
	}
	return ""
}

func bindingText(b *toolgrantv1.CallBinding) string {
	var text string
	var config *structpb.Struct
	switch kind := b.GetKind().(type) {
	case *toolgrantv1.CallBinding_Native:
		text, config = "native "+kind.Native.GetToolClass(), kind.Native.GetConfig()
	case *toolgrantv1.CallBinding_Mcp:
		m := kind.Mcp
		text, config = strings.TrimSpace("MCP "+m.GetMcpServerId()+" "+m.GetFunction()+" "+m.GetEndpoint()), m.GetConfig()
	default:
		return ""
	}
	if len(config.GetFields()) == 0 {
		return text
	}
	data, err := config.MarshalJSON()
	if err != nil {
		return text
	}
	return text + ", configured " + string(data)
}

func (c *cli) callReport() *cobra.Command {
	var latency time.Duration
	var k *cost
	command := &cobra.Command{
		Use: "report CALL OUTCOME", Short: "Report how a call went: " + strings.Join(callOutcomes(), ", "), Args: cobra.ExactArgs(2),
		Example: "  toolctl call report 4f1c success --latency 1.2s --tokens 830",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return callOutcomes(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) error {
			outcome, known := toolgrantv1.CallOutcome_value[callOutcomePrefix+strings.ToUpper(args[1])]
			if !known || outcome == 0 {
				return fmt.Errorf("no such outcome %q: it is one of %s", args[1], strings.Join(callOutcomes(), ", "))
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ReportCallResponse, error) {
				r := &toolgrantv1.ReportCallRequest{CallId: args[0], Outcome: toolgrantv1.CallOutcome(outcome), Tokens: k.given("tokens", &k.tokens)}
				if latency != 0 {
					r.Latency = durationpb.New(latency)
				}
				return toolgrantv1.NewCallServiceClient(conn).ReportCall(ctx, r)
			}, func(w io.Writer, r *toolgrantv1.ReportCallResponse) {
				if r.GetRepeatedReport() {
					_, _ = fmt.Fprintln(w, "reported before, alike")
				} else {
					_, _ = fmt.Fprintln(w, "reported")
				}
				if len(r.GetRules()) > 0 {
					printStates(w, r.GetRules()...)
				}
			})
		},
	}
	k = tokensFlag(command, "tokens that it cost (default: as estimated, or none if it never ran)")
	command.Flags().DurationVar(&latency, "latency", 0, "how long it took")
	complete(command, "latency", cobra.NoFileCompletions)
	return command
}

// callOutcomes are the outcomes as people write them.
func callOutcomes() []string {
	return words[toolgrantv1.CallOutcome](toolgrantv1.CallOutcome_name, callOutcomePrefix)
}
