package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// Facts reads all that a question about a chat rests on. Where the compiled catalogue is current that is one
// statement; otherwise all is read in one snapshot.
func (s *Store) Facts(ctx context.Context, chat id.Chat, user id.User, surface availability.Surface) (effective.Facts, error) {
	facts, version, err := s.facts(ctx, s.pool, chat, user, surface)
	if err != nil {
		return effective.Facts{}, translate(err)
	}
	if c := s.compiled.Load(); c != nil && c.version == version {
		facts.World = c.world
		return facts, nil
	}
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if facts, _, err = s.facts(ctx, tx, chat, user, surface); err != nil {
			return err
		}
		c, err := s.catalogAt(ctx, tx)
		if err != nil {
			return err
		}
		facts.World = c.world
		return nil
	})
	return facts, err
}

func (s *Store) facts(ctx context.Context, tx db.DBTX, chat id.Chat, user id.User, surface availability.Surface) (effective.Facts, int64, error) {
	row, err := s.queries.ResolveFacts(ctx, tx, db.ResolveFactsParams{
		ChatID: string(chat), UserID: string(user), DeviceID: string(surface.Device)})
	if errors.Is(err, pgx.ErrNoRows) {
		return effective.Facts{}, 0, fault.Missing("user", string(user))
	}
	if err != nil {
		return effective.Facts{}, 0, err
	}
	f := effective.Facts{DeviceExists: row.DeviceExists}
	f.User = userFromRow(user, row.DeviceIds, row.DeviceTypeIds, row.GroupIds, row.StartTimes, row.ExpireTimes)
	if row.ChatUserID != nil {
		f.Chat = &enable.Chat{ID: chat, User: id.User(*row.ChatUserID), Turn: *row.ChatTurn}
		if row.ChatEndTime != nil {
			f.Chat.EndTime = *row.ChatEndTime
		}
		if err := json.Unmarshal(row.ChatFolded, &f.Chat.State); err != nil {
			return effective.Facts{}, 0, fmt.Errorf("chat %q: folded: %w", chat, err)
		}
	}
	f.Revision, err = s.readRevision(row.Snapshot)
	return f, row.CatalogVersion, err
}

func userFromRow(user id.User, devices, deviceTypes, groups []string, starts, expires []time.Time) *availability.User {
	u := &availability.User{ID: user}
	for i := range devices {
		u.Devices = append(u.Devices, availability.Device{ID: id.Device(devices[i]), Type: id.DeviceType(deviceTypes[i])})
	}
	for i := range groups {
		u.Memberships = append(u.Memberships, availability.Membership{Group: id.Group(groups[i]), Start: instant(starts[i]), Expire: instant(expires[i])})
	}
	return u
}

// instant drops the connection's time zone; the zero time, which stands for none, stays zero.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// AdvanceTurn raises a chat's turn, if it is not as high already.
func (s *Store) AdvanceTurn(ctx context.Context, chat id.Chat, turn int32) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		raised, err := s.queries.AdvanceChatTurn(ctx, tx, db.AdvanceChatTurnParams{ChatID: string(chat), Turn: turn})
		if err != nil || raised == 0 {
			return err
		}
		return s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: "chat", ObjectID: string(chat)})
	})
}
