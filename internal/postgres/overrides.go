package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Overrides implements replica.Source.
func (s *Store) Overrides(ctx context.Context, user id.User) (overrides quota.Overrides, exists bool, version int64, err error) {
	row, err := s.queries.UserOverrides(ctx, s.pool, string(user))
	if err != nil {
		return nil, false, 0, translate(err)
	}
	for i := range row.QuotaIds {
		overrides = append(overrides, quota.Override{Rule: id.Quota(row.QuotaIds[i]), Limit: row.Limits[i], Expire: instant(row.ExpireTimes[i])})
	}
	return overrides, row.UserID != nil, row.CatalogVersion, nil
}

// SetOverride sets a user's own limit of a USER rule; nil: there is none any more.
func (s *Store) SetOverride(ctx context.Context, user id.User, rule id.Quota, limit *int64, expire time.Time) (r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if err := s.lockOverridden(ctx, tx, user, rule); err != nil {
			return err
		}
		before, err := s.override(ctx, tx, user, rule)
		if err != nil {
			return err
		}
		var after *quota.Override
		if limit == nil {
			err = s.queries.DeleteOverride(ctx, tx, db.DeleteOverrideParams{UserID: string(user), QuotaID: string(rule)})
		} else {
			row := db.PutOverrideParams{UserID: string(user), QuotaID: string(rule), QuotaLimit: *limit}
			after = &quota.Override{Rule: rule, Limit: *limit, Expire: expire}
			if !expire.IsZero() {
				row.ExpireTime = &expire
			}
			err = s.queries.PutOverride(ctx, tx, row)
		}
		if err != nil {
			return err
		}
		if err := s.addAuditEntries(ctx, tx, audit.OfOverride(user, rule, before, after, caller.From(ctx))); err != nil {
			return err
		}
		if err := s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: kindUser, ObjectID: string(user)}); err != nil {
			return err
		}
		r, err = s.writeRevision(ctx, tx)
		return err
	})
	return r, err
}

// override returns a user's own limit of a rule; nil: there is none.
func (s *Store) override(ctx context.Context, tx pgx.Tx, user id.User, rule id.Quota) (*quota.Override, error) {
	row, err := s.queries.GetOverride(ctx, tx, db.GetOverrideParams{UserID: string(user), QuotaID: string(rule)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &quota.Override{Rule: rule, Limit: row.QuotaLimit, Expire: instant(orEmpty(row.ExpireTime))}, err
}

// lockOverridden keeps what an override refers to as it is, and refuses it if that is not there.
func (s *Store) lockOverridden(ctx context.Context, tx pgx.Tx, user id.User, rule id.Quota) error {
	if _, err := s.queries.LockUser(ctx, tx, string(user)); errors.Is(err, pgx.ErrNoRows) {
		return fault.Missing("user", string(user))
	} else if err != nil {
		return err
	}
	scope, err := s.queries.LockQuota(ctx, tx, string(rule))
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Missing("quota", string(rule))
	}
	if err == nil && quota.Scope(scope) != quota.ScopeUser {
		return fault.Invalid(fault.Violation{Field: "quota_id", Description: "it counts all users together: only a USER rule has limits of single users"})
	}
	return err
}
