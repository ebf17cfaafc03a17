package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

const (
	// chatBatch is how many chats are deleted at a time: a log may have thousands of entries.
	chatBatch = 100
	// rowBatch is how many rows are deleted at a time of other things.
	rowBatch = 10_000
)

// turn is the advisory lock of one kind of pruning. The first half is Toolgrant's, so that others of the database are
// not met.
type turn int64

const (
	turnChats turn = 0x7467_0001 + iota
	turnHistory
	turnChanges
	turnSearches
	turnOutcomes
	turnVectors
)

// inTurns prunes a batch after the other until there is nothing left, each in a transaction of its own, as long as no
// other server does the same.
func (s *Store) inTurns(ctx context.Context, t turn, prune func(pgx.Tx) (more bool, err error)) error {
	for {
		more := false
		err := s.write(ctx, func(tx pgx.Tx) error {
			mine, err := s.queries.TryTurn(ctx, tx, int64(t))
			if err != nil || !mine {
				return err
			}
			more, err = prune(tx)
			return err
		})
		if err != nil || !more {
			return err
		}
	}
}

// PruneChats deletes chats that ended before an instant, each with its whole log. Their ids are free again.
func (s *Store) PruneChats(ctx context.Context, before time.Time) error {
	return s.inTurns(ctx, turnChats, func(tx pgx.Tx) (bool, error) {
		names, err := s.queries.OldChats(ctx, tx, db.OldChatsParams{Before: before, AtMost: chatBatch})
		if err != nil || len(names) == 0 {
			return false, err
		}
		if err := s.queries.AllowDeletion(ctx, tx); err != nil {
			return false, err
		}
		if _, err := s.deleteChats(ctx, tx, names); err != nil {
			return false, err
		}
		kinds := make([]string, len(names))
		for i := range kinds {
			kinds[i] = kindChat
		}
		if err := s.queries.RecordChanges(ctx, tx, db.RecordChangesParams{Kinds: kinds, ObjectIds: names}); err != nil {
			return false, err
		}
		return len(names) == chatBatch, nil
	})
}

// deleteChats deletes chats with their logs, in a transaction that may.
func (s *Store) deleteChats(ctx context.Context, tx pgx.Tx, names []string) (int64, error) {
	for _, remove := range []func(context.Context, db.DBTX, []string) (int64, error){s.queries.DeleteChatRequests, s.queries.DeleteChatToolLog,
		s.queries.DeleteChatAvatarLog} {
		if _, err := remove(ctx, tx, names); err != nil {
			return 0, err
		}
	}
	return s.queries.DeleteChats(ctx, tx, names)
}

// PruneHistory deletes what was used of quotas on days before an instant's.
func (s *Store) PruneHistory(ctx context.Context, before time.Time) error {
	return s.inTurns(ctx, turnHistory, func(tx pgx.Tx) (bool, error) {
		n, err := s.queries.PruneHistory(ctx, tx, db.PruneHistoryParams{Before: before.UTC().Truncate(24 * time.Hour), AtMost: rowBatch})
		return n == rowBatch, err
	})
}

// PruneChanges deletes the changes that are older than an instant.
func (s *Store) PruneChanges(ctx context.Context, before time.Time) error {
	return s.inTurns(ctx, turnChanges, func(tx pgx.Tx) (bool, error) {
		n, err := s.queries.PruneChanges(ctx, tx, db.PruneChangesParams{Before: before, AtMost: rowBatch})
		return n == rowBatch, err
	})
}

// PruneSearches deletes searches, and what was learned from them, that are older than an instant.
func (s *Store) PruneSearches(ctx context.Context, before time.Time) error {
	return s.inTurns(ctx, turnSearches, func(tx pgx.Tx) (bool, error) {
		searches, err := s.queries.PruneSearches(ctx, tx, db.PruneSearchesParams{Before: before, AtMost: rowBatch})
		if err != nil {
			return false, err
		}
		uses, err := s.queries.PruneSearchUses(ctx, tx, db.PruneSearchUsesParams{Before: before, AtMost: rowBatch})
		return searches == rowBatch || uses == rowBatch, err
	})
}

// PruneOutcomes deletes the outcomes of calls that are older than an instant.
func (s *Store) PruneOutcomes(ctx context.Context, before time.Time) error {
	return s.inTurns(ctx, turnOutcomes, func(tx pgx.Tx) (bool, error) {
		n, err := s.queries.PruneOutcomes(ctx, tx, db.PruneOutcomesParams{Before: before, AtMost: rowBatch})
		return n == rowBatch, err
	})
}
