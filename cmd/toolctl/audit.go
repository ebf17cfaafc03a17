package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

const auditActionPrefix = "AUDIT_ACTION_"

func (c *cli) auditCommand() *cobra.Command {
	var action, kind, since, until string
	limit := 100
	request := &toolgrantv1.ListAuditEntriesRequest{}
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show who administered what, and why: the audit log, newest first",
		Long: "Show who administered what, and why: the audit log, newest first.\n\n" +
			"The table tells what changed; -o json and -o yaml also tell how the objects were before and are after.",
		Example: "  toolctl audit --since 24h\n  toolctl audit --kind tool --id weather -o yaml\n" +
			"  toolctl audit --user ann --action delete\n  toolctl audit --actor claimed:ann --since 2026-05-01 --until 2026-06-01",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if limit < 0 {
				return errors.New("--limit: must not be negative")
			}
			if request.Action, err = auditAction(action); err != nil {
				return err
			}
			if request.Kind, err = auditKind(kind); err != nil {
				return err
			}
			now := time.Now()
			if request.StartTime, err = instant(since, now); err != nil {
				return fmt.Errorf("--since: %w", err)
			}
			if request.EndTime, err = instant(until, now); err != nil {
				return fmt.Errorf("--until: %w", err)
			}
			return call(c, command, func(ctx context.Context, conn *grpc.ClientConn) (*toolgrantv1.ListAuditEntriesResponse, error) {
				return listAudit(ctx, conn, request, limit)
			}, printAudit)
		},
	}
	flags := command.Flags()
	flags.StringVar(&action, "action", "", "what was done: "+strings.Join(auditActions(), ", "))
	flags.StringVar(&kind, "kind", "", "kind of object, as toolctl get has it")
	flags.StringVar(&request.ObjectId, "id", "", "id of the object")
	flags.StringVar(&request.Actor, "actor", "", "who did it, as the log has it: claimed:ann")
	flags.StringVar(&request.UserId, "user", "", "whose object it is")
	flags.StringVar(&since, "since", "", "not before: a duration ago (24h), a day (2026-05-01, in UTC) or an RFC 3339 time")
	flags.StringVar(&until, "until", "", "before: as --since")
	flags.IntVar(&limit, "limit", limit, "at most so many, 0 for all")
	complete(command, "action", cobra.FixedCompletions(auditActions(), cobra.ShellCompDirectiveNoFileComp))
	complete(command, "kind", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for i := range kinds {
			if k := &kinds[i]; !k.unlisted && !k.ofUser() {
				names = append(names, k.singular())
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	complete(command, "user", c.completeIDs("users", nil))
	for _, flag := range []string{"id", "actor", "since", "until", "limit"} {
		complete(command, flag, cobra.NoFileCompletions)
	}
	return command
}

// listAudit reads pages until there is nothing more, or as much as asked for; 0: all.
func listAudit(ctx context.Context, conn *grpc.ClientConn, request *toolgrantv1.ListAuditEntriesRequest, limit int) (*toolgrantv1.ListAuditEntriesResponse, error) {
	all := &toolgrantv1.ListAuditEntriesResponse{}
	for {
		request.PageSize = pageSize
		if limit > 0 {
			request.PageSize = int32(min(pageSize, limit-len(all.GetEntries())))
		}
		page, err := toolgrantv1.NewAuditServiceClient(conn).ListAuditEntries(ctx, request)
		if err != nil {
			return nil, err
		}
		if all.GetRevision() == "" {
			all.Revision = page.GetRevision() // all pages are complete through the first one's
		}
		all.Entries = append(all.Entries, page.GetEntries()...)
		all.NextPageToken, request.PageToken = page.GetNextPageToken(), page.GetNextPageToken()
		if page.GetNextPageToken() == "" || limit > 0 && len(all.GetEntries()) >= limit {
			return all, nil
		}
	}
}

func printAudit(w io.Writer, r *toolgrantv1.ListAuditEntriesResponse) {
	t := newTable(w, "#", "WRITTEN", "ACTOR", "ACTION", "OBJECT", "CHANGED", "REASON")
	for _, e := range r.GetEntries() {
		t.AppendRow(table.Row{e.GetSequenceNumber(), e.GetCreateTime().AsTime().Format(time.RFC3339), e.GetActor(),
			word(e.GetAction(), auditActionPrefix), e.GetKind() + " " + e.GetObjectId(), strings.Join(e.GetChangedFields(), "\n"), e.GetReason()})
	}
	t.Render()
	if r.GetNextPageToken() != "" {
		fmt.Fprintln(w, "there are older ones: --limit 0 shows all")
	}
}

// auditActions are the actions as people write them.
func auditActions() []string {
	return words[toolgrantv1.AuditAction](toolgrantv1.AuditAction_name, auditActionPrefix)
}

func auditAction(name string) (toolgrantv1.AuditAction, error) {
	if name == "" {
		return 0, nil
	}
	action, known := toolgrantv1.AuditAction_value[auditActionPrefix+strings.ToUpper(name)]
	if !known || action == 0 {
		return 0, fmt.Errorf("--action: no such action %q: it is one of %s", name, strings.Join(auditActions(), ", "))
	}
	return toolgrantv1.AuditAction(action), nil
}

// auditKind is a kind as the log names it. The log knows kinds that cannot be got.
func auditKind(name string) (string, error) {
	if k, err := kindNamed(name); err == nil {
		if k.ofUser() {
			return "", fmt.Errorf("--kind: %s are parts of their user, and so are their changes: give --kind user", k.name)
		}
		name = k.singular()
	}
	return strings.ReplaceAll(name, "-", "_"), nil
}

// instant reads a time: a duration before now, a day in UTC, or an RFC 3339 time; nil for an empty text.
func instant(text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return timestamppb.New(now.Add(-ago)), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return timestamppb.New(t), nil
		}
	}
	return nil, fmt.Errorf("%q is no duration (24h), day (2026-05-01) or RFC 3339 time", text)
}
