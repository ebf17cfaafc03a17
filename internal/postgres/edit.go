package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// errNothing rolls back an edit that changes nothing.
var errNothing = errors.New("nothing to change")

// Edit plans what decide makes of the stored objects, and writes it in one transaction. decide is given the
// whole catalogue and those of the named users that exist; it may be called more than once. Writers of the
// catalogue take turns, so what was validated is what is written.
func (s *Store) Edit(ctx context.Context, users []id.User, decide func(admin.Manifest) (admin.Edit, error)) (changes []admin.Change, r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.queries.LockCatalog(ctx, tx); err != nil {
			return err
		}
		if changes, err = s.plan(ctx, tx, users, decide); err != nil {
			return err
		}
		if len(changes) > 0 {
			if err := s.applyChanges(ctx, tx, changes); err != nil {
				return err
			}
			if err := s.addAuditEntries(ctx, tx, audit.OfChanges(changes, caller.From(ctx))); err != nil {
				return err
			}
		}
		if r, err = s.writeRevision(ctx, tx); err != nil {
			return err
		}
		if len(changes) == 0 {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return changes, r, err
}

// Preview says what Edit would change. It writes nothing and keeps nobody waiting.
func (s *Store) Preview(ctx context.Context, decide func(admin.Manifest) (admin.Edit, error)) (changes []admin.Change, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		changes, err = s.plan(ctx, tx, nil, decide)
		return err
	})
	return changes, r, err
}

func (s *Store) plan(ctx context.Context, tx pgx.Tx, users []id.User, decide func(admin.Manifest) (admin.Edit, error)) ([]admin.Change, error) {
	c, err := s.catalogAt(ctx, tx)
	if err != nil {
		return nil, err
	}
	stored := admin.Manifest{Definitions: c.definitions}
	if stored.Users, err = s.usersOf(ctx, tx, as[string](users)); err != nil {
		return nil, err
	}
	edit, err := decide(stored)
	if err != nil {
		return nil, err
	}
	if stored.Users, err = s.usersFor(ctx, tx, stored, edit, users); err != nil {
		return nil, err
	}
	referrers, err := s.referrers(ctx, tx, edit, edit.Gone(stored))
	if err != nil {
		return nil, err
	}
	changes, err := admin.Plan(stored, edit, referrers)
	for i := range changes {
		changes[i].Approval = edit.Approval
	}
	return changes, err
}

// referrers reads who keeps objects from going, besides users that the edit replaces or deletes themselves.
func (s *Store) referrers(ctx context.Context, tx pgx.Tx, edit admin.Edit, gone map[admin.Ref]bool) ([]admin.Referrer, error) {
	of := db.ReferrersParams{GroupIds: []string{}, DeviceTypeIds: []string{}, UserIds: []string{}, Besides: []string{}}
	for ref := range gone {
		switch ref.Section {
		case admin.SectionGroups:
			of.GroupIds = append(of.GroupIds, ref.ID)
		case admin.SectionDeviceTypes:
			of.DeviceTypeIds = append(of.DeviceTypeIds, ref.ID)
		case admin.SectionUsers:
			of.UserIds = append(of.UserIds, ref.ID)
			of.Besides = append(of.Besides, ref.ID)
		}
	}
	if len(of.GroupIds)+len(of.DeviceTypeIds)+len(of.UserIds) == 0 {
		return nil, nil
	}
	for _, u := range edit.Users {
		of.Besides = append(of.Besides, string(u.ID))
	}
	rows, err := s.queries.Referrers(ctx, tx, of)
	if err != nil {
		return nil, err
	}
	referrers := make([]admin.Referrer, len(rows))
	for i, row := range rows {
		referrers[i] = admin.Referrer{To: admin.Ref{Section: admin.Section(row.Section), ID: row.ObjectID}, ID: row.ReferrerID, Total: row.Total}
	}
	return referrers, nil
}

// usersFor reads the users that an edit touches, and those that the catalogue or the edit refer to.
func (s *Store) usersFor(ctx context.Context, tx pgx.Tx, stored admin.Manifest, edit admin.Edit, users []id.User) ([]availability.User, error) {
	if edit.Prune && len(edit.Users) > 0 {
		return s.usersAfter(ctx, tx, "", math.MaxInt32)
	}
	names := as[string](users)
	devices := []string{}
	for _, u := range edit.Users {
		names = append(names, string(u.ID))
		for _, d := range u.Devices {
			devices = append(devices, string(d.ID))
		}
	}
	for _, tools := range [][]catalog.Tool{stored.Tools, edit.Tools} {
		for _, t := range tools {
			if t.Owner != "" {
				names = append(names, string(t.Owner))
			}
		}
	}
	for _, defaults := range [][]enable.DefaultAvatar{stored.DefaultAvatars, edit.DefaultAvatars} {
		for _, d := range defaults {
			if d.User != "" {
				names = append(names, string(d.User))
			}
		}
	}
	owners, err := s.queries.DeviceOwners(ctx, tx, devices)
	if err != nil {
		return nil, err
	}
	for _, o := range owners {
		names = append(names, o.UserID)
	}
	return s.usersOf(ctx, tx, names)
}

// applyChanges writes a plan: references go first, then objects are written in the plan's order, then their
// references and rules, when all that they refer to is there. Deletes come last, when nothing refers to their objects.
func (s *Store) applyChanges(ctx context.Context, tx pgx.Tx, changes []admin.Change) error {
	var recorded db.RecordChangesParams
	for _, c := range changes {
		if c.Action != admin.ActionCreate {
			if err := s.clearReferences(ctx, tx, c.Object); err != nil {
				return err
			}
		}
		recorded.Kinds, recorded.ObjectIds = append(recorded.Kinds, c.Section.Kind()), append(recorded.ObjectIds, c.ID)
	}
	if err := s.queries.RecordChanges(ctx, tx, recorded); err != nil {
		return err
	}
	for _, write := range []func(context.Context, pgx.Tx, any) error{s.putObject, s.addReferences} {
		for _, c := range changes {
			if c.Action != admin.ActionDelete {
				if err := write(ctx, tx, c.Object); err != nil {
					return err
				}
			}
		}
	}
	if err := s.dropQuotas(ctx, tx, changes); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Action == admin.ActionDelete {
			if err := s.deleteObject(ctx, tx, c.Object); err != nil {
				return err
			}
		}
	}
	return s.queries.AdvanceCatalog(ctx, tx)
}
