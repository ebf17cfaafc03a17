package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// BeginReset writes a request down, with what was used before, unless it was written down earlier.
func (s *Store) BeginReset(ctx context.Context, r quota.Reset, used int64) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		added, err := s.queries.AddReset(ctx, tx, db.AddResetParams{
			RequestID: r.ID, UserID: string(r.User), QuotaID: string(r.Quota), Reason: r.Reason, Used: used})
		if err != nil || added == 0 {
			return err
		}
		return s.addAuditEntries(ctx, tx, []audit.Entry{audit.OfReset(r, used, caller.From(ctx))})
	})
	if err != nil {
		return false, translate(err)
	}
	row, err := s.queries.GetReset(ctx, s.pool, r.ID)
	if err != nil {
		return false, translate(err)
	}
	if r != (quota.Reset{ID: row.RequestID, User: id.User(row.UserID), Quota: id.Quota(row.QuotaID), Reason: row.Reason}) {
		return false, &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused,
			Message: "the request_id was used before, for another reset"}
	}
	return row.Done, nil
}

// EndReset writes down that a request was carried out.
func (s *Store) EndReset(ctx context.Context, request string) error {
	return translate(s.queries.EndReset(ctx, s.pool, request))
}
