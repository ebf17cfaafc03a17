package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/routing"
)

const kindRoutingMode = "routing_mode"

// refreshRouting reads the routing modes, if any of them may have changed. With a group go its modes.
func (s *Store) refreshRouting(ctx context.Context, tx db.DBTX, since changes, sets *[]routing.Set) error {
	if len(since.ids[kindRoutingMode]) == 0 && len(since.ids["group"]) == 0 && !since.lost {
		return nil
	}
	rows, err := s.queries.ListRoutingModes(ctx, tx)
	*sets = nil
	for _, row := range rows {
		*sets = append(*sets, routing.Set{Group: id.Group(row.GroupID), Mode: routing.Mode(row.Mode)})
	}
	return err
}

// SetRoutingMode sets the mode of a group's users, or of all other users (the empty group); an empty mode takes back what
// was set. If it is so already, nothing is written.
func (s *Store) SetRoutingMode(ctx context.Context, group id.Group, mode routing.Mode) (r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.queries.LockCatalog(ctx, tx); err != nil {
			return err
		}
		if group != "" {
			if _, err := s.queries.LockGroup(ctx, tx, string(group)); errors.Is(err, pgx.ErrNoRows) {
				return fault.Missing("group", string(group))
			} else if err != nil {
				return err
			}
		}
		before, err := s.routingMode(ctx, tx, group)
		if err != nil {
			return err
		}
		if before != mode {
			if err := s.putRoutingMode(ctx, tx, group, before, mode); err != nil {
				return err
			}
		}
		if r, err = s.writeRevision(ctx, tx); err == nil && before == mode {
			err = errNothing
		}
		return err
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return r, err
}

// routingMode returns what is set for a group; empty: nothing.
func (s *Store) routingMode(ctx context.Context, tx pgx.Tx, group id.Group) (routing.Mode, error) {
	rows, err := s.queries.ListRoutingModes(ctx, tx)
	for _, row := range rows {
		if row.GroupID == string(group) {
			return routing.Mode(row.Mode), nil
		}
	}
	return "", err
}

func (s *Store) putRoutingMode(ctx context.Context, tx pgx.Tx, group id.Group, before, after routing.Mode) error {
	if err := s.queries.DeleteRoutingMode(ctx, tx, string(group)); err != nil {
		return err
	}
	if after != "" {
		if err := s.queries.AddRoutingMode(ctx, tx, db.AddRoutingModeParams{GroupID: string(group), Mode: string(after)}); err != nil {
			return err
		}
	}
	entry := audit.OfRoutingMode(group, before, after, caller.From(ctx))
	if err := s.addAuditEntries(ctx, tx, []audit.Entry{entry}); err != nil {
		return err
	}
	if err := s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: kindRoutingMode, ObjectID: entry.ObjectID}); err != nil {
		return err
	}
	return s.queries.AdvanceCatalog(ctx, tx)
}
