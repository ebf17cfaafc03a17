package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

var views = map[string]toolgrantv1.ToolView{
	"basic": toolgrantv1.ToolView_TOOL_VIEW_BASIC,
	"full":  toolgrantv1.ToolView_TOOL_VIEW_FULL,
}

func (c *cli) watchCommand() *cobra.Command {
	var chat, user, surface, view string
	command := &cobra.Command{
		Use:   "watch --user USER",
		Short: "Show what a conversation may use, and what of it changes, until interrupted",
		Long: "Show what a conversation may use, and what of it changes, until interrupted.\n\n" +
			"On a terminal it is a table that is kept up to date; elsewhere, the lines that change:\n" +
			"+ became effective, − is withheld or gone, ~ is told otherwise. With -o json each message is a line, with -o yaml\n" +
			"a document. When the server goes away it connects again, and no change is missed.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			chosen, ok := views[view]
			if !ok {
				return fmt.Errorf("--view must be basic or full, not %q", view)
			}
			f := &follower{cli: c, display: c.display(command.OutOrStdout(), command.ErrOrStderr()),
				request: &toolgrantv1.WatchToolsRequest{ChatId: chat, UserId: user, Surface: surfaceOf(surface), View: chosen}}
			return f.run(command.Context())
		},
	}
	chatFlag(command, &chat)
	c.userFlags(command, &user, &surface)
	command.Flags().StringVar(&view, "view", "basic", "basic, or full: also prompts, configs and functions")
	complete(command, "view", cobra.FixedCompletions(slices.Sorted(maps.Keys(views)), cobra.ShellCompDirectiveNoFileComp))
	return command
}

// display shows a watch.
type display interface {
	// show is given each message.
	show(*toolgrantv1.WatchToolsResponse) error
	// notice tells, apart from what is watched, that the server went away or came back. After the former,
	// what is shown may be out of date.
	notice(text string, live bool) error
}

func (c *cli) display(out, notices io.Writer) display {
	if c.output != formatTable {
		return &documents{notices: noticesTo{notices}, out: out, format: c.output}
	}
	if terminal, ok := terminalOf(out); ok {
		return &live{notices: noticesTo{notices}, screen: screen{out: out, size: terminal}}
	}
	return &blocks{notices: noticesTo{notices}, out: out}
}

// noticesTo is where notices go.
type noticesTo struct{ io.Writer }

func (w noticesTo) notice(text string, _ bool) error {
	_, err := fmt.Fprintln(w, "toolctl: "+printable.String(text))
	return err
}

// How long to wait before looking for a server that went away, at first and at most.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

func pauses() retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(longestPause, retry.NewExponential(firstPause)))
}

// follower follows a stream across the servers' absences.
type follower struct {
	cli     *cli
	request *toolgrantv1.WatchToolsRequest
	display display
	begun   bool // a message came
	away    bool
}

// run returns nil when ctx ends. A server that never answered is an error: its address may be wrong.
func (f *follower) run(ctx context.Context) error {
	backoff := pauses()
	for {
		received, err := f.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if status.Code(err) != codes.Unavailable || !f.begun {
			return err
		}
		if received {
			backoff = pauses()
		}
		if !f.away {
			f.away = true
			if err := f.display.notice("the server went away, connecting again: "+status.Convert(err).Message(), false); err != nil {
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

// follow shows one stream until it ends, and remembers where to go on. It connects anew, since a connection
// that was lost waits on its own terms.
func (f *follower) follow(ctx context.Context) (received bool, err error) {
	conn, err := f.cli.connect()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stream, err := toolgrantv1.NewEntitlementServiceClient(conn).WatchTools(ctx, f.request)
	if err != nil {
		return false, err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return received, err
		}
		received, f.begun = true, true
		f.request.Consistency = &toolgrantv1.Consistency{
			Requirement: &toolgrantv1.Consistency_AtLeastAsFresh{AtLeastAsFresh: message.GetRevision()}}
		if f.away {
			f.away = false
			if err := f.display.notice("connected again", true); err != nil {
				return received, err
			}
		}
		if err := f.display.show(message); err != nil {
			return received, err
		}
	}
}
