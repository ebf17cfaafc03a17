package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// maxAuditBytes bounds the states that are read at once, since a thousand entries could have a hundred megabytes
// of them.
const maxAuditBytes = 2 << 20

// addAuditEntries writes entries in the transaction of what they tell of, many at a time.
func (s *Store) addAuditEntries(ctx context.Context, tx pgx.Tx, entries []audit.Entry) error {
	const batch = 1000
	for some := range slices.Chunk(entries, batch) {
		var p db.AddAuditEntriesParams
		for _, e := range some {
			before, err := textOf(e.Before)
			if err != nil {
				return err
			}
			after, err := textOf(e.After)
			if err != nil {
				return err
			}
			p.Actors, p.Reasons, p.RequestIds = append(p.Actors, e.Actor), append(p.Reasons, e.Reason), append(p.RequestIds, e.RequestID)
			p.Actions, p.Kinds, p.ObjectIds = append(p.Actions, string(e.Action)), append(p.Kinds, e.Kind), append(p.ObjectIds, e.ObjectID)
			p.UserIds = append(p.UserIds, string(e.User))
			p.ChangedFields = append(p.ChangedFields, strings.Join(e.ChangedFields, ","))
			p.Befores, p.Afters = append(p.Befores, before), append(p.Afters, after)
		}
		if err := s.queries.AddAuditEntries(ctx, tx, p); err != nil {
			return err
		}
	}
	return nil
}

// AuditEntries returns the entries that fit, newest first: those that come after one, or, after the zero key, all;
// at most so many, and fewer if they are large. It also tells whether there are more.
func (s *Store) AuditEntries(ctx context.Context, f audit.Filter, after audit.Key, atMost int32) (entries []audit.Entry, more bool, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		if err := s.queries.PlanWithValues(ctx, tx); err != nil {
			return err
		}
		rows, err := s.queries.ListAuditEntries(ctx, tx, db.ListAuditEntriesParams{Action: string(f.Action), Kind: f.Kind,
			ObjectID: f.ObjectID, Actor: f.Actor, UserID: string(f.User), StartTime: timeOrNull(f.Start), EndTime: timeOrNull(f.End),
			BeforeTime: timeOrNull(after.Time), BeforeNumber: after.Sequence,
			AtMost: atMost + 1, AtMostBytes: maxAuditBytes}) // one more, to know whether there are more
		if err != nil {
			return err
		}
		more = len(rows) > 0 && (rows[0].Found > atMost || len(rows) < int(rows[0].Found))
		entries, err = auditEntriesFromRows(rows[:min(len(rows), int(atMost))])
		return err
	})
	return entries, more, r, err
}

func auditEntriesFromRows(rows []db.ListAuditEntriesRow) ([]audit.Entry, error) {
	entries := make([]audit.Entry, len(rows))
	for i, row := range rows {
		e := audit.Entry{Key: audit.Key{Time: row.CreateTime, Sequence: row.SequenceNumber},
			Caller: caller.Caller{Actor: row.Actor, Reason: row.Reason, RequestID: row.RequestID},
			Action: audit.Action(row.Action), Kind: row.Kind, ObjectID: row.ObjectID, User: id.User(row.UserID), ChangedFields: row.ChangedFields}
		for _, state := range []struct {
			data []byte
			into **audit.State
		}{{row.Before, &e.Before}, {row.After, &e.After}} {
			if state.data == nil {
				continue
			}
			if err := json.Unmarshal(state.data, state.into); err != nil {
				return nil, fmt.Errorf("audit entry %d: %w", row.SequenceNumber, err)
			}
		}
		entries[i] = e
	}
	return entries, nil
}

// textOf is a state as it is stored; empty for none.
func textOf(state *audit.State) (string, error) {
	if state == nil {
		return "", nil
	}
	data, err := json.Marshal(state)
	return string(data), err
}
