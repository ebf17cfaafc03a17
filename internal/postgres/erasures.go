package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/erasure"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// EraseUser implements erasure.Store.
func (s *Store) EraseUser(ctx context.Context, r erasure.Request) (erased []erasure.Erased, at revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		e := eraser{store: s, tx: tx, request: r}
		if err := e.run(ctx); err != nil {
			return err
		}
		erased = e.erased
		if len(erased) > 0 && !r.DryRun {
			entry := audit.Entry{Caller: caller.From(ctx), Action: audit.ActionErase, Kind: "user", ObjectID: string(r.User), User: r.User}
			if err := s.addAuditEntries(ctx, tx, []audit.Entry{entry}); err != nil {
				return err
			}
		}
		if at, err = s.writeRevision(ctx, tx); err != nil {
			return err
		}
		if len(erased) == 0 || r.DryRun {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return erased, at, err
}

// eraser deletes what there is of a user in a transaction.
type eraser struct {
	store   *Store
	tx      pgx.Tx
	request erasure.Request
	erased  []erasure.Erased
	changed db.RecordChangesParams
}

func (e *eraser) count(kind string, n int64) {
	if n > 0 {
		e.erased = append(e.erased, erasure.Erased{Kind: kind, Count: n})
	}
}

func (e *eraser) change(kind, object string) {
	e.changed.Kinds, e.changed.ObjectIds = append(e.changed.Kinds, kind), append(e.changed.ObjectIds, object)
}

// erasing is one kind of rows.
type erasing struct {
	kind   string
	delete func(context.Context, db.DBTX, string) (int64, error)
}

func (e *eraser) run(ctx context.Context) error {
	q, user := e.store.queries, string(e.request.User)
	if _, err := q.LockCatalog(ctx, e.tx); err != nil {
		return err
	}
	if err := q.AllowDeletion(ctx, e.tx); err != nil {
		return err
	}
	if err := e.chats(ctx); err != nil {
		return err
	}
	if err := e.telemetry(ctx); err != nil {
		return err
	}
	if err := e.all(ctx, erasing{"approval_decisions", q.EraseApprovalDecisions}, erasing{"approval_requests", q.EraseApprovals},
		erasing{"quota_resets_done", q.EraseResetsDone}, erasing{"quota_resets", q.EraseResets}, erasing{"quota_overrides", q.EraseOverrides}); err != nil {
		return err
	}
	if err := e.all(ctx, erasing{"private_vectors", q.ErasePrivateVectors}); err != nil {
		return err
	}
	catalog, err := e.catalog(ctx)
	if err != nil {
		return err
	}
	before := len(e.erased)
	if err := e.all(ctx, erasing{"memberships", q.EraseMemberships}, erasing{"devices", q.EraseDevices}, erasing{"users", q.EraseUser}); err != nil {
		return err
	}
	if len(e.erased) > before {
		e.change(kindUser, user)
	}
	if len(e.erased) == 0 {
		return nil
	}
	if err := q.RecordChanges(ctx, e.tx, e.changed); err != nil {
		return err
	}
	if catalog {
		if err := q.AdvanceCatalog(ctx, e.tx); err != nil {
			return err
		}
	}
	return q.AddErasure(ctx, e.tx, db.AddErasureParams{UserID: user, KeepHistory: e.request.KeepHistory})
}

func (e *eraser) all(ctx context.Context, kinds ...erasing) error {
	for _, k := range kinds {
		n, err := k.delete(ctx, e.tx, string(e.request.User))
		if err != nil {
			return err
		}
		e.count(k.kind, n)
	}
	return nil
}

// telemetry is what servers write a moment after it happened.
func (e *eraser) telemetry(ctx context.Context) error {
	q := e.store.queries
	kinds := []erasing{{"search_uses", q.EraseSearchUses}, {"searches", q.EraseSearches}, {"call_outcomes", q.EraseOutcomes}, {"quota_counters", q.EraseCounters}}
	if !e.request.KeepHistory {
		kinds = append(kinds, erasing{"quota_history", q.EraseHistory})
	}
	return e.all(ctx, kinds...)
}

func (e *eraser) chats(ctx context.Context) error {
	for {
		names, err := e.store.queries.ChatsOfUser(ctx, e.tx, db.ChatsOfUserParams{UserID: string(e.request.User), AtMost: chatBatch})
		if err != nil || len(names) == 0 {
			return err
		}
		n, err := e.store.deleteChats(ctx, e.tx, names)
		if err != nil {
			return err
		}
		e.count("chats", n)
		for _, name := range names {
			e.change(kindChat, name)
		}
	}
}

// catalog deletes what of the catalogue is the user's: private tools, from wherever they are named, and default avatars.
func (e *eraser) catalog(ctx context.Context) (changed bool, err error) {
	q, user := e.store.queries, string(e.request.User)
	defaults, err := q.EraseDefaultAvatars(ctx, e.tx, &user)
	if err != nil {
		return false, err
	}
	for _, device := range defaults {
		if device == "" {
			device = "*"
		}
		e.change("default_avatar", user+","+device)
	}
	e.count("default_avatars", int64(len(defaults)))
	tools, err := q.PrivateTools(ctx, e.tx, &user)
	if err != nil || len(tools) == 0 {
		return len(defaults) > 0, err
	}
	for _, remove := range []func(context.Context, db.DBTX, []string) (int64, error){q.ErasePrivateToolsOfAvatars, q.ErasePrivateToolRelations,
		q.ErasePrivateToolFallbacks, q.ErasePrivateToolQuotas, q.ErasePrivateTools} {
		if _, err := remove(ctx, e.tx, tools); err != nil {
			return false, err
		}
	}
	for _, tool := range tools {
		e.change("tool", tool)
	}
	e.count("tools", int64(len(tools)))
	return true, nil
}

// Straggling is how long after an erasure what servers had in memory may still be written.
const Straggling = 2 * time.Minute

// SweepErasures deletes what was written of users after they were erased, before an instant, and forgets that they
// were. Those who are there again are left alone.
func (s *Store) SweepErasures(ctx context.Context, before time.Time) error {
	const batch = 100
	due, err := s.queries.DueErasures(ctx, s.pool, db.DueErasuresParams{Before: before, AtMost: batch})
	if err != nil {
		return translate(err)
	}
	for _, one := range due {
		if err := s.write(ctx, func(tx pgx.Tx) error {
			if !one.Again {
				e := eraser{store: s, tx: tx, request: erasure.Request{User: id.User(one.UserID), KeepHistory: one.KeepHistory}}
				if err := e.telemetry(ctx); err != nil {
					return err
				}
			}
			return s.queries.ForgetErasure(ctx, tx, one.UserID)
		}); err != nil {
			return err
		}
	}
	return nil
}

// LastErasure is when a user was erased last: whoever learned from what was deleted must forget it.
func (s *Store) LastErasure(ctx context.Context) (time.Time, error) {
	last, err := s.queries.LastErasure(ctx, s.pool)
	return last, translate(err)
}
