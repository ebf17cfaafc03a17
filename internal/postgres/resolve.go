package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/encoding/json"

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
	row, err := s.facts(ctx, s.pool, chat, user)
	if err != nil {
		return effective.Facts{}, translate(err)
	}
	held := s.compiled.Load()
	if held == nil || held.version != row.version {
		err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
			if row, err = s.facts(ctx, tx, chat, user); err != nil {
				return err
			}
			held, err = s.catalogAt(ctx, tx)
			return err
		})
		if err != nil {
			return effective.Facts{}, err
		}
	}
	return s.on(ctx, s.pool, row, held.world, surface)
}

// on returns facts as a question about a surface rests on them.
func (s *Store) on(ctx context.Context, tx db.DBTX, f facts, world *effective.World, surface availability.Surface) (effective.Facts, error) {
	if f.user == nil {
		return effective.Facts{}, fault.Missing("user", string(f.name))
	}
	q := effective.Facts{World: world, User: f.user, Chat: f.chat, Revision: f.revision}
	var err error
	if _, own := f.user.Device(surface.Device); own {
		q.DeviceExists = true
	} else if !surface.IsWeb() {
		q.DeviceExists, err = s.queries.DeviceExists(ctx, tx, string(surface.Device))
	}
	return q, translate(err)
}

// UserAndChat implements replica.Source. A standby is asked first, if there is one.
func (s *Store) UserAndChat(ctx context.Context, user id.User, chat id.Chat, atLeast revision.Revision) (*availability.User, *enable.Chat, int64, error) {
	row, found := s.standby.facts(ctx, s, chat, user, atLeast)
	if found {
		return row.user, row.chat, row.version, nil
	}
	row, err := s.facts(ctx, s.pool, chat, user)
	return row.user, row.chat, row.version, translate(err)
}

// facts is what one statement reads.
type facts struct {
	name     id.User
	user     *availability.User // nil: there is none
	chat     *enable.Chat       // nil: never created
	version  int64              // of the catalogue
	revision revision.Revision
	standby  bool // a standby told
}

func (s *Store) facts(ctx context.Context, tx db.DBTX, chat id.Chat, user id.User) (facts, error) {
	row, err := s.queries.ResolveFacts(ctx, tx, db.ResolveFactsParams{ChatID: string(chat), UserID: string(user)})
	if err != nil {
		return facts{}, err
	}
	f := facts{name: user, version: row.CatalogVersion, standby: row.Standby}
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
	slices.SortFunc(u.Devices, func(a, b availability.Device) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(u.Memberships, func(a, b availability.Membership) int { return cmp.Compare(a.Group, b.Group) })
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
