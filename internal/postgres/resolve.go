package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// Facts reads all that a question about a chat rests on. Where the compiled catalogue is current that is one
// statement; otherwise all is read in one snapshot.
func (s *Store) Facts(ctx context.Context, chat id.Chat, user id.User, surface availability.Surface) (effective.Facts, error) {
	row, err := s.facts(ctx, s.pool, chat, user, surface)
	if err != nil {
		return effective.Facts{}, translate(err)
	}
	held := s.compiled.Load()
	if held == nil || held.version != row.version {
		err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
			if row, err = s.facts(ctx, tx, chat, user, surface); err != nil {
				return err
			}
			held, err = s.catalogAt(ctx, tx)
			return err
		})
		if err != nil {
			return effective.Facts{}, err
		}
	}
	return row.of(held.world)
}

// UserAndChat implements replica.Source.
func (s *Store) UserAndChat(ctx context.Context, user id.User, chat id.Chat) (*availability.User, *enable.Chat, int64, error) {
	row, err := s.facts(ctx, s.pool, chat, user, availability.Web)
	return row.user, row.chat, row.version, translate(err)
}

// facts is what one statement reads.
type facts struct {
	name         id.User
	user         *availability.User // nil: there is none
	chat         *enable.Chat       // nil: never created
	deviceExists bool
	version      int64 // of the catalogue
	revision     revision.Revision
}

// of returns the facts as a question about the user rests on them.
func (f *facts) of(world *effective.World) (effective.Facts, error) {
	if f.user == nil {
		return effective.Facts{}, fault.Missing("user", string(f.name))
	}
	return effective.Facts{World: world, User: f.user, Chat: f.chat, DeviceExists: f.deviceExists, Revision: f.revision}, nil
}

func (s *Store) facts(ctx context.Context, tx db.DBTX, chat id.Chat, user id.User, surface availability.Surface) (facts, error) {
	row, err := s.queries.ResolveFacts(ctx, tx, db.ResolveFactsParams{
		ChatID: string(chat), UserID: string(user), DeviceID: string(surface.Device)})
	if err != nil {
		return facts{}, err
	}
	f := facts{name: user, deviceExists: row.DeviceExists, version: row.CatalogVersion}
	if row.UserID != nil {
		f.user = userFromRow(user, row.DeviceIds, row.DeviceTypeIds, row.GroupIds, row.StartTimes, row.ExpireTimes)
	}
	if row.ChatUserID != nil {
		f.chat = &enable.Chat{ID: chat, User: id.User(*row.ChatUserID), Turn: *row.ChatTurn}
		if row.ChatEndTime != nil {
			f.chat.EndTime = *row.ChatEndTime
		}
		if err := json.Unmarshal(row.ChatFolded, &f.chat.State); err != nil {
			return facts{}, fmt.Errorf("chat %q: folded: %w", chat, err)
		}
	}
	f.revision, err = s.readRevision(row.Snapshot)
	return f, err
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
