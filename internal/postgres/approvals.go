package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Steps of an approval.
const (
	stepGrant  = "GRANT"
	stepDeny   = "DENY"
	stepUse    = "USE"
	stepRevoke = "REVOKE"
)

// AskApproval asks for a person's word on a call. A call that asks again is told how that stands; another call of its
// id is refused.
func (s *Store) AskApproval(ctx context.Context, call approval.Call, now time.Time, wait time.Duration) (a approval.Approval, err error) {
	r := approval.Ask(call, stored(now), wait)
	err = s.write(ctx, func(tx pgx.Tx) error {
		written, err := s.queries.AskApproval(ctx, tx, db.AskApprovalParams{ApprovalID: string(r.ID), CallID: string(r.Call.ID),
			ChatID: string(r.Chat), UserID: string(r.User), ToolID: string(r.Tool), Function: r.Function,
			Arguments: string(r.Arguments), ArgumentsDigest: orNoBytes(r.Digest), CreateTime: r.Create, ExpireTime: r.Expire})
		if err != nil {
			return err
		}
		if written > 0 {
			a = approval.Approval{Request: r}
			return s.recordApproval(ctx, tx, nil, &a, r.Create)
		}
		row, err := s.queries.ApprovalOfCall(ctx, tx, string(call.ID))
		if err != nil {
			return err
		}
		if a, err = s.onlyApproval(ctx, tx, []db.ApprovalRequest{row}); err != nil {
			return err
		}
		if err := a.Again(&call); err != nil {
			return err
		}
		return errNothing
	})
	return a, butNothing(err)
}

// DecideApproval writes a decision at its time, or finds that it was made before.
func (s *Store) DecideApproval(ctx context.Context, name id.Approval, d approval.Decision) (approval.Approval, revision.Revision, error) {
	d.Time = stored(d.Time)
	return s.stepApproval(ctx, name, func(a *approval.Approval) (*db.AddApprovalStepParams, error) {
		made, err := a.Decide(d)
		if made == nil || err != nil {
			return nil, err
		}
		a.Decision = made
		step := &db.AddApprovalStepParams{Step: stepDeny, Actor: made.By, Reason: made.Reason, CreateTime: made.Time}
		if made.Approve {
			step.Step, step.Scope, step.ExpireTime = stepGrant, orNull(made.Scope), timeOrNull(made.Expire)
		}
		return step, nil
	})
}

// RevokeApproval takes a grant back, or finds that it was.
func (s *Store) RevokeApproval(ctx context.Context, name id.Approval, r approval.Revocation) (approval.Approval, revision.Revision, error) {
	r.Time = stored(r.Time)
	return s.stepApproval(ctx, name, func(a *approval.Approval) (*db.AddApprovalStepParams, error) {
		made, err := a.Revoke(r)
		if made == nil || err != nil {
			return nil, err
		}
		a.Revocation = made
		return &db.AddApprovalStepParams{Step: stepRevoke, Actor: made.By, Reason: made.Reason, CreateTime: made.Time}, nil
	})
}

// UseApproval lets a call through on a grant, which is used up if it is for one call; or refuses, if it was taken back
// or has run out meanwhile. It tells whether the grant was used up before: then the call was let through before.
func (s *Store) UseApproval(ctx context.Context, name id.Approval, by string, now time.Time) (before bool, err error) {
	now = stored(now)
	_, _, err = s.stepApproval(ctx, name, func(a *approval.Approval) (*db.AddApprovalStepParams, error) {
		spent, err := a.Spend(now)
		before = err == nil && !a.Use.IsZero()
		if !spent || err != nil {
			return nil, err
		}
		a.Use = now
		return &db.AddApprovalStepParams{Step: stepUse, Actor: by, CreateTime: now}, nil
	})
	return before, err
}

// stepApproval writes the step that take says, if any. One step of an approval is taken at a time.
func (s *Store) stepApproval(ctx context.Context, name id.Approval, take func(*approval.Approval) (*db.AddApprovalStepParams, error)) (
	a approval.Approval, r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.queries.LockApproval(ctx, tx, string(name)); errors.Is(err, pgx.ErrNoRows) {
			return fault.Missing("approval", string(name))
		} else if err != nil {
			return err
		}
		if a, err = s.approval(ctx, tx, name); err != nil {
			return err
		}
		before := a
		step, err := take(&a)
		if err != nil {
			return err
		}
		if step != nil {
			step.ApprovalID = string(name)
			if err := s.queries.AddApprovalStep(ctx, tx, *step); err != nil {
				return err
			}
			if err := s.recordApproval(ctx, tx, &before, &a, step.CreateTime); err != nil {
				return err
			}
		}
		if r, err = s.writeRevision(ctx, tx); err != nil {
			return err
		}
		if step == nil {
			return errNothing
		}
		return nil
	})
	return a, r, butNothing(err)
}

// recordApproval tells those who follow, and the audit log, of a step that was taken; before the first there was nothing.
func (s *Store) recordApproval(ctx context.Context, tx pgx.Tx, before, a *approval.Approval, now time.Time) error {
	if err := s.addAuditEntries(ctx, tx, []audit.Entry{audit.OfApproval(before, a, now, caller.From(ctx))}); err != nil {
		return err
	}
	return s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: kindApproval, ObjectID: string(a.User) + "," + string(a.ID)})
}

// Approval returns an approval.
func (s *Store) Approval(ctx context.Context, name id.Approval) (approval.Approval, error) {
	a, err := s.approval(ctx, s.pool, name)
	return a, translate(err)
}

func (s *Store) approval(ctx context.Context, tx db.DBTX, name id.Approval) (approval.Approval, error) {
	rows, err := s.queries.ApprovalsByID(ctx, tx, []string{string(name)})
	if err == nil && len(rows) == 0 {
		err = fault.Missing("approval", string(name))
	}
	if err != nil {
		return approval.Approval{}, err
	}
	return s.onlyApproval(ctx, tx, rows)
}

// ApprovalsByID returns those approvals that exist, the oldest first.
func (s *Store) ApprovalsByID(ctx context.Context, names []id.Approval) ([]approval.Approval, error) {
	rows, err := s.queries.ApprovalsByID(ctx, s.pool, as[string](names))
	return s.approvalsFromRows(ctx, rows, err)
}

// ApprovalsFor returns the approvals that a call may rest on at an instant: the one that it asked for itself, and the
// newest of those that were granted for more than one call.
func (s *Store) ApprovalsFor(ctx context.Context, call *approval.Call, now time.Time) ([]approval.Approval, error) {
	const atMost = 10 // any one is enough
	rows, err := s.queries.LastingApprovals(ctx, s.pool, db.LastingApprovalsParams{UserID: string(call.User), ToolID: string(call.Tool),
		Function: call.Function, ChatID: string(call.Chat), Now: &now, AtMost: atMost})
	if err != nil {
		return nil, translate(err)
	}
	own, err := s.queries.ApprovalOfCall(ctx, s.pool, string(call.ID))
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	} else if err == nil {
		rows = append([]db.ApprovalRequest{own}, rows...)
	}
	return s.approvalsFromRows(ctx, rows, err)
}

// Approvals returns approvals, newest first, those that come after a key, or, after the zero key, the newest; at most
// so many. The filter's state is not looked at, but for PENDING, of which there are few.
func (s *Store) Approvals(ctx context.Context, f approval.Filter, after approval.Key, now time.Time, atMost int32) ([]approval.Approval, error) {
	if after == (approval.Key{}) {
		after.Create = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	var rows []db.ApprovalRequest
	var err error
	switch before := string(after.ID); {
	case f.State == approval.Pending:
		rows, err = s.queries.PendingApprovals(ctx, s.pool, db.PendingApprovalsParams{Now: now, UserID: string(f.User),
			BeforeTime: after.Create, BeforeID: before, AtMost: atMost})
	case f.Chat != "":
		rows, err = s.queries.ListApprovalsOfChat(ctx, s.pool, db.ListApprovalsOfChatParams{ChatID: string(f.Chat),
			BeforeTime: after.Create, BeforeID: before, AtMost: atMost})
	case f.User != "":
		rows, err = s.queries.ListApprovalsOfUser(ctx, s.pool, db.ListApprovalsOfUserParams{UserID: string(f.User),
			BeforeTime: after.Create, BeforeID: before, AtMost: atMost})
	default:
		rows, err = s.queries.ListApprovals(ctx, s.pool, db.ListApprovalsParams{BeforeTime: after.Create, BeforeID: before, AtMost: atMost})
	}
	return s.approvalsFromRows(ctx, rows, err)
}

func (s *Store) approvalsFromRows(ctx context.Context, rows []db.ApprovalRequest, err error) ([]approval.Approval, error) {
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	approvals, err := s.foldApprovals(ctx, s.pool, rows)
	return approvals, translate(err)
}

func (s *Store) onlyApproval(ctx context.Context, tx db.DBTX, rows []db.ApprovalRequest) (approval.Approval, error) {
	approvals, err := s.foldApprovals(ctx, tx, rows[:1])
	if err != nil {
		return approval.Approval{}, err
	}
	return approvals[0], nil
}

// foldApprovals adds to requests what became of them. That is read after them, so it is no older.
func (s *Store) foldApprovals(ctx context.Context, tx db.DBTX, rows []db.ApprovalRequest) ([]approval.Approval, error) {
	approvals, names, place := make([]approval.Approval, len(rows)), make([]string, len(rows)), make(map[string]int, len(rows))
	for i, r := range rows {
		names[i], place[r.ApprovalID] = r.ApprovalID, i
		approvals[i].Request = approval.Request{ID: id.Approval(r.ApprovalID), Call: approval.Call{ID: id.Call(r.CallID),
			Chat: id.Chat(r.ChatID), User: id.User(r.UserID), Tool: id.Tool(r.ToolID), Function: r.Function, Arguments: []byte(r.Arguments)},
			Digest: r.ArgumentsDigest, Create: instant(r.CreateTime), Expire: instant(r.ExpireTime)}
	}
	steps, err := s.queries.ApprovalSteps(ctx, tx, names)
	for _, step := range steps {
		a, made := &approvals[place[step.ApprovalID]], instant(step.CreateTime)
		switch step.Step {
		case stepGrant, stepDeny:
			a.Decision = &approval.Decision{Approve: step.Step == stepGrant, Scope: approval.Scope(orEmpty(step.Scope)),
				Expire: instant(orEmpty(step.ExpireTime)), By: step.Actor, Reason: step.Reason, Time: made}
		case stepUse:
			a.Use = made
		case stepRevoke:
			a.Revocation = &approval.Revocation{By: step.Actor, Reason: step.Reason, Time: made}
		}
	}
	return approvals, err
}

// stored is an instant as it is stored.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func orNoBytes(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// butNothing drops the error that rolls back what changes nothing.
func butNothing(err error) error {
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}
