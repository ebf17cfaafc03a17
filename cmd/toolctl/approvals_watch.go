package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func (c *cli) approvalsWatch() *cobra.Command {
	request := &toolgrantv1.WatchApprovalsRequest{}
	command := &cobra.Command{
		Use: "watch", Short: "Show what waits for a decision, and then what is asked for or decided, until interrupted", Args: cobra.NoArgs,
		Long: "Show what waits for a decision, and then what is asked for or decided, until interrupted.\n\n" +
			"Each change is a line; with -o json or yaml each message, also those that only tell that nothing changed. When the\n" +
			"server goes away it connects again, and is told again what waits.",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			out, notices := command.OutOrStdout(), noticesTo{command.ErrOrStderr()}
			show := func(message *toolgrantv1.WatchApprovalsResponse) error { return printTold(out, message.GetApproval()) }
			if c.output != formatTable {
				documents := &documents{out: out, format: c.output}
				show = func(message *toolgrantv1.WatchApprovalsResponse) error { return documents.write(message) }
			}
			return c.watchApprovals(command.Context(), request, notices, show)
		},
	}
	command.Flags().StringVar(&request.UserId, "user", "", "only this user's")
	complete(command, "user", c.completeIDs("users", nil))
	return command
}

// watchApprovals follows streams until ctx ends. A server that never answered is an error: its address may be wrong.
func (c *cli) watchApprovals(ctx context.Context, request *toolgrantv1.WatchApprovalsRequest, notices noticesTo,
	show func(*toolgrantv1.WatchApprovalsResponse) error) error {
	begun, away := false, false
	backoff := pauses()
	for {
		err := c.followApprovals(ctx, request, func(message *toolgrantv1.WatchApprovalsResponse) error {
			if away {
				if err := notices.notice("connected again", true); err != nil {
					return err
				}
				backoff = pauses()
			}
			begun, away = true, false
			return show(message)
		})
		if ctx.Err() != nil {
			return nil
		}
		if status.Code(err) != codes.Unavailable || !begun {
			return err
		}
		if !away {
			away = true
			if err := notices.notice("the server went away, connecting again: "+status.Convert(err).Message(), false); err != nil {
				return err
			}
		}
		pause, _ := backoff.Next()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (c *cli) followApprovals(ctx context.Context, request *toolgrantv1.WatchApprovalsRequest, show func(*toolgrantv1.WatchApprovalsResponse) error) error {
	conn, err := c.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := toolgrantv1.NewApprovalServiceClient(conn).WatchApprovals(ctx, request)
	if err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := show(message); err != nil {
			return err
		}
	}
}

// printTold prints a change in a line; nothing for a checkpoint.
func printTold(w io.Writer, a *toolgrantv1.Approval) error {
	if a == nil {
		return nil
	}
	line := fmt.Sprintf("%s %s: user %s, chat %s: %s", a.GetApprovalId(), stateOf(a), a.GetUserId(), a.GetChatId(), calledBy(a))
	if until := untilOf(a); until != "" {
		line += ", until " + until
	}
	if a.GetDecidedBy() != "" {
		line += ", by " + a.GetDecidedBy()
	}
	if a.GetReason() != "" {
		line += ": " + a.GetReason()
	}
	_, err := fmt.Fprintln(w, printable.String(oneLine(line)))
	return err
}
