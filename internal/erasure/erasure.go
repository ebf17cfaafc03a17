// Package erasure is how all that is known of one user is forgotten on request.
//
// What is deleted is what is the user's own: the user with devices and memberships, private tools with what models made
// of them, chats with their logs whatever their state, approvals, how calls went, searches and what was learned from
// them, what was used of quotas, in PostgreSQL and in Redis. The audit log is not: it is what says that it was done.
package erasure

import (
	"context"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Erased is how much of one kind was deleted, or would be.
type Erased struct {
	// Kind is the name of what was stored: "chats", "chat_tool_log", "quota_history".
	Kind  string
	Count int64
}

// Request says what is to be forgotten.
type Request struct {
	User id.User
	// KeepHistory leaves what was used of quotas by day, which bills rest on.
	KeepHistory bool
	// DryRun says how much would be deleted, and deletes nothing.
	DryRun bool
}

// Store is where users are stored.
type Store interface {
	// EraseUser deletes all that is stored of a user in one transaction, which the audit log tells of, and does nothing if
	// there is nothing. The revision is that of the write, or of what was read.
	EraseUser(context.Context, Request) ([]Erased, revision.Revision, error)
}

// Counters forget what a user used of a rule.
type Counters interface {
	// Reset is quota.Ledger's.
	Reset(context.Context, id.User, quota.Limited) (quota.State, error)
}

// Erase forgets a user. It may be repeated, and must be after a failure.
//
// Counters go first: they are copied to the store soon after each change, and what is copied afterwards holds nothing
// but the user's name, for as long as the store looks for stragglers.
func Erase(ctx context.Context, r Request, store Store, counters Counters, rules []quota.Limited) ([]Erased, revision.Revision, error) {
	if !r.DryRun {
		for _, rule := range rules {
			if _, err := counters.Reset(ctx, r.User, rule); err != nil {
				return nil, revision.Revision{}, err
			}
		}
	}
	return store.EraseUser(ctx, r)
}
