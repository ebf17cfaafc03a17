package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Definitions returns all that is stored but the users, and the revision that it is complete through.
func (s *Store) Definitions(ctx context.Context) (m admin.Manifest, r revision.Revision, err error) {
	return s.export(ctx, func(pgx.Tx) ([]availability.User, error) { return nil, nil })
}

// Export returns all that is stored, and the revision that it is complete through.
func (s *Store) Export(ctx context.Context) (m admin.Manifest, r revision.Revision, err error) {
	return s.export(ctx, func(tx pgx.Tx) ([]availability.User, error) { return s.usersAfter(ctx, tx, "", math.MaxInt32) })
}

func (s *Store) export(ctx context.Context, users func(pgx.Tx) ([]availability.User, error)) (m admin.Manifest, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		c, err := s.catalogAt(ctx, tx)
		if err != nil {
			return err
		}
		m = admin.Manifest{Definitions: c.definitions}
		m.Users, err = users(tx)
		return err
	})
	return m, r, err
}

// snapshotRevision is the revision of a transaction that reads.
func (s *Store) snapshotRevision(ctx context.Context, tx pgx.Tx) (revision.Revision, error) {
	row, err := s.queries.Snapshot(ctx, tx)
	if err != nil {
		return revision.Revision{}, err
	}
	return s.readRevision(row.Snapshot)
}

// User returns a user, or nil if there is none, and the revision that this is complete through.
func (s *Store) User(ctx context.Context, user id.User) (found *availability.User, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		users, err := s.usersOf(ctx, tx, []string{string(user)})
		if len(users) == 1 {
			found = &users[0]
		}
		return err
	})
	return found, r, err
}

// Users returns the users after one, at most so many, and the revision that this is complete through.
func (s *Store) Users(ctx context.Context, after id.User, atMost int32) (users []availability.User, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		users, err = s.usersAfter(ctx, tx, after, atMost)
		return err
	})
	return users, r, err
}

// usersOf reads those of some users that exist.
func (s *Store) usersOf(ctx context.Context, tx pgx.Tx, names []string) ([]availability.User, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := s.queries.ListUsers(ctx, tx, names)
	return usersFromRows(rows), err
}

// usersAfter reads the users after one, at most so many.
func (s *Store) usersAfter(ctx context.Context, tx pgx.Tx, after id.User, atMost int32) ([]availability.User, error) {
	rows, err := s.queries.ListUsersAfter(ctx, tx, db.ListUsersAfterParams{After: string(after), AtMost: atMost})
	return usersFromRows(rows), err
}

func usersFromRows(rows []db.User) []availability.User {
	users := make([]availability.User, len(rows))
	for i, row := range rows {
		users[i] = *userFromRow(id.User(row.UserID), row.DeviceIds, row.DeviceTypeIds, row.GroupIds, row.StartTimes, row.ExpireTimes)
	}
	return users
}
