package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const (
	approvalStatePrefix = "APPROVAL_STATE_"
	approvalScopePrefix = "APPROVAL_SCOPE_"
)

func (c *cli) approvalsCommand() *cobra.Command {
	approvals := &cobra.Command{Use: "approvals", Short: "Decide about calls that a person must approve, and show what was decided"}
	approvals.AddCommand(c.approvalsList(), c.approvalsApprove(), c.approvalsDeny(), c.approvalsRevoke(), c.approvalsWatch())
	return approvals
}

func (c *cli) approvalsList() *cobra.Command {
	var state string
	limit := 100
	request := &toolgrantv1.ListApprovalsRequest{}
	command := &cobra.Command{
		Use: "list", Short: "Show approvals, newest first", Args: cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if limit < 0 {
				return errors.New("--limit: must not be negative")
			}
			if state != "" {
				number, known := toolgrantv1.ApprovalState_value[approvalStatePrefix+strings.ToUpper(state)]
				if !known || number == 0 {
					return fmt.Errorf("--state: no such state %q: it is one of %s", state, strings.Join(approvalStates(), ", "))
				}
				request.State = toolgrantv1.ApprovalState(number)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListApprovalsResponse, error) {
				return listApprovals(ctx, conn, request, limit)
			}, printApprovals)
		},
	}
	flags := command.Flags()
	flags.StringVar(&state, "state", "", "only those that are "+strings.Join(approvalStates(), ", "))
	flags.StringVar(&request.UserId, "user", "", "only this user's")
	flags.StringVar(&request.ChatId, "chat", "", "only this chat's")
	flags.IntVar(&limit, "limit", limit, "at most so many, 0 for all")
	complete(command, "state", cobra.FixedCompletions(approvalStates(), cobra.ShellCompDirectiveNoFileComp))
	complete(command, "user", c.completeIDs("users", nil))
	complete(command, "chat", cobra.NoFileCompletions)
	complete(command, "limit", cobra.NoFileCompletions)
	return command
}

// approvalStates are the states as people write them.
func approvalStates() []string {
	return words[toolgrantv1.ApprovalState](toolgrantv1.ApprovalState_name, approvalStatePrefix)
}

// listApprovals reads pages until there is nothing more, or as much as asked for; 0: all.
func listApprovals(ctx context.Context, conn *grpc.ClientConn, request *toolgrantv1.ListApprovalsRequest, limit int) (*toolgrantv1.ListApprovalsResponse, error) {
	all := &toolgrantv1.ListApprovalsResponse{}
	for {
		request.PageSize = pageSize
		if limit > 0 {
			request.PageSize = int32(min(pageSize, limit-len(all.GetApprovals())))
		}
		page, err := toolgrantv1.NewApprovalServiceClient(conn).ListApprovals(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Approvals = append(all.Approvals, page.GetApprovals()...)
		all.NextPageToken, request.PageToken = page.GetNextPageToken(), page.GetNextPageToken()
		if page.GetNextPageToken() == "" || limit > 0 && len(all.GetApprovals()) >= limit {
			return all, nil
		}
	}
}

func printApprovals(w io.Writer, r *toolgrantv1.ListApprovalsResponse) {
	t := newTable(w, "APPROVAL", "ASKED", "USER", "CHAT", "CALL", "STATE", "UNTIL", "BY", "REASON")
	for _, a := range r.GetApprovals() {
		t.AppendRow(table.Row{a.GetApprovalId(), a.GetCreateTime().AsTime().Format(time.RFC3339), a.GetUserId(), a.GetChatId(),
			calledBy(a), stateOf(a), untilOf(a), a.GetDecidedBy(), a.GetReason()})
	}
	t.Render()
	if r.GetNextPageToken() != "" {
		fmt.Fprintln(w, "there are older ones: --limit 0 shows all")
	}
}

// calledBy words the call: its tool, its function, and its arguments as far as they fit.
func calledBy(a *toolgrantv1.Approval) string {
	return a.GetToolId() + " " + a.GetFunction() + " " + shorten(a.GetArguments())
}

// stateOf words the state, and what a grant is good for.
func stateOf(a *toolgrantv1.Approval) string {
	state := word(a.GetState(), approvalStatePrefix)
	if a.GetScope() != toolgrantv1.ApprovalScope_APPROVAL_SCOPE_UNSPECIFIED {
		state += " (" + word(a.GetScope(), approvalScopePrefix) + ")"
	}
	return state
}

func untilOf(a *toolgrantv1.Approval) string {
	if a.GetExpireTime() == nil {
		return ""
	}
	return a.GetExpireTime().AsTime().Format(time.RFC3339)
}

func printApproval(w io.Writer, a *toolgrantv1.Approval) {
	printApprovals(w, &toolgrantv1.ListApprovalsResponse{Approvals: []*toolgrantv1.Approval{a}})
}

func (c *cli) approvalsApprove() *cobra.Command {
	var scope, until string
	request := &toolgrantv1.DecideApprovalRequest{Approve: true}
	scopes := []string{"once", "chat", "until"}
	command := &cobra.Command{
		Use: "approve APPROVAL", Short: "Grant what a call asked for: once, in its chat, or to its user until a time", Args: cobra.ExactArgs(1),
		Example: "  toolctl approvals approve QXK3… --reason 'checked with Ann'\n  toolctl approvals approve QXK3… --scope chat\n" +
			"  toolctl approvals approve QXK3… --scope until --until 8h",
		ValidArgsFunction: c.completePending,
		RunE: func(command *cobra.Command, args []string) error {
			if !slices.Contains(scopes, scope) {
				return fmt.Errorf("--scope: no such scope %q: it is one of %s", scope, strings.Join(scopes, ", "))
			}
			request.ApprovalId = args[0]
			request.Scope = toolgrantv1.ApprovalScope(toolgrantv1.ApprovalScope_value[approvalScopePrefix+strings.ToUpper(scope)])
			var err error
			if request.ExpireTime, err = ahead(until, time.Now()); err != nil {
				return fmt.Errorf("--until: %w", err)
			}
			return c.decide(command, request)
		},
	}
	command.Flags().StringVar(&scope, "scope", "once", "once: this call; chat: the function in this chat; until: the function for this user, until --until")
	command.Flags().StringVar(&until, "until", "", "until when the grant holds: a duration (8h) or an RFC 3339 time")
	command.Flags().StringVar(&request.Reason, "reason", "", "why")
	complete(command, "scope", cobra.FixedCompletions(scopes, cobra.ShellCompDirectiveNoFileComp))
	complete(command, "until", cobra.NoFileCompletions)
	complete(command, "reason", cobra.NoFileCompletions)
	return command
}

// ahead reads a time: a duration from now, or an RFC 3339 time; nil for an empty text.
func ahead(text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return timestamppb.New(now.Add(d)), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return timestamppb.New(t), nil
	}
	return nil, fmt.Errorf("%q is no duration (8h) or RFC 3339 time", text)
}

func (c *cli) approvalsDeny() *cobra.Command {
	request := &toolgrantv1.DecideApprovalRequest{}
	command := &cobra.Command{
		Use: "deny APPROVAL", Short: "Refuse what a call asked for", Args: cobra.ExactArgs(1),
		ValidArgsFunction: c.completePending,
		RunE: func(command *cobra.Command, args []string) error {
			request.ApprovalId = args[0]
			return c.decide(command, request)
		},
	}
	command.Flags().StringVar(&request.Reason, "reason", "", "why")
	complete(command, "reason", cobra.NoFileCompletions)
	return command
}

func (c *cli) decide(command *cobra.Command, request *toolgrantv1.DecideApprovalRequest) error {
	return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.DecideApprovalResponse, error) {
		return toolgrantv1.NewApprovalServiceClient(conn).DecideApproval(ctx, request)
	}, func(w io.Writer, r *toolgrantv1.DecideApprovalResponse) { printApproval(w, r.GetApproval()) })
}

func (c *cli) approvalsRevoke() *cobra.Command {
	request := &toolgrantv1.RevokeApprovalRequest{}
	command := &cobra.Command{
		Use: "revoke APPROVAL", Short: "Take a grant back: later calls need another one", Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			request.ApprovalId = args[0]
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.RevokeApprovalResponse, error) {
				return toolgrantv1.NewApprovalServiceClient(conn).RevokeApproval(ctx, request)
			}, func(w io.Writer, r *toolgrantv1.RevokeApprovalResponse) { printApproval(w, r.GetApproval()) })
		},
	}
	command.Flags().StringVar(&request.Reason, "reason", "", "why")
	complete(command, "reason", cobra.NoFileCompletions)
	return command
}

// completePending offers the approvals that wait.
func (c *cli) completePending(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	conn, err := c.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	var offers []string
	request := &toolgrantv1.ListApprovalsRequest{State: toolgrantv1.ApprovalState_APPROVAL_STATE_PENDING}
	if pending, err := listApprovals(ctx, conn, request, pageSize); err == nil {
		for _, a := range pending.GetApprovals() {
			offers = append(offers, a.GetApprovalId())
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
