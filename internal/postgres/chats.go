package postgres

import (
	"bytes"
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
	"github.com/toolgrant/toolgrant/internal/revision"
)

// CreateChat creates a chat with the entries that its user's default avatar makes.
func (s *Store) CreateChat(ctx context.Context, chat id.Chat, user id.User, surface availability.Surface, request enable.Request) (result enable.Result, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		result = enable.Result{}
		now := time.Now().UTC().Truncate(time.Microsecond)
		if held, err := s.queries.GetChat(ctx, tx, string(chat)); err == nil {
			return s.repeatCreation(ctx, tx, held, request, &result)
		} else if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		row, err := s.facts(ctx, tx, chat, user)
		if err != nil {
			return err
		}
		// The catalogue is read statement by statement here, so a concurrent change of it is kept out.
		world, err := s.lockedWorld(ctx, tx)
		if err != nil {
			return err
		}
		facts, err := s.on(ctx, tx, row, world, surface)
		if err != nil {
			return err
		}
		entries, err := facts.FirstEntries(surface)
		if err != nil {
			return err
		}
		created, err := s.queries.CreateChat(ctx, tx, db.CreateChatParams{ChatID: string(chat), UserID: string(user), Now: now})
		if err != nil {
			return err
		}
		if created == 0 { // somebody else's creation was committed meanwhile
			held, err := s.queries.GetChat(ctx, tx, string(chat))
			if err != nil {
				return err
			}
			return s.repeatCreation(ctx, tx, held, request, &result)
		}
		before := enable.Chat{ID: chat, User: user, CreateTime: now}
		return s.saveChat(ctx, tx, before, entries, nil, time.Time{}, now, request, &result)
	})
	return result, err
}

// ChangeChat appends to a chat's log what decide says, or ends the chat if decide says nothing. decide is
// given the chat, locked, and the catalogue; it may be called more than once.
func (s *Store) ChangeChat(ctx context.Context, chat id.Chat, turn *int32, request enable.Request,
	decide func(*enable.Chat, *effective.World) ([]enable.Entry, error)) (result enable.Result, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		result = enable.Result{}
		now := time.Now().UTC().Truncate(time.Microsecond)
		row, err := s.queries.LockChat(ctx, tx, string(chat))
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.Missing("chat", string(chat))
		}
		if err != nil {
			return err
		}
		before, err := chatFromRow(row)
		if err != nil {
			return err
		}
		repeated, err := s.repeat(ctx, tx, before, request, &result)
		if err != nil || repeated {
			return err
		}
		world, err := s.lockedWorld(ctx, tx)
		if err != nil {
			return err
		}
		entries, err := decide(&before, world)
		if err != nil {
			return err
		}
		end := before.EndTime
		if len(entries) == 0 && end.IsZero() {
			end = now
		}
		return s.saveChat(ctx, tx, before, entries, turn, end, now, request, &result)
	})
	return result, err
}

// lockedWorld returns the compiled catalogue as of now. Where the compiled one is current that is one
// statement; otherwise the catalogue is read while a share of its lock keeps writers out.
func (s *Store) lockedWorld(ctx context.Context, tx pgx.Tx) (*effective.World, error) {
	version, err := s.queries.CatalogVersion(ctx, tx)
	if err != nil {
		return nil, err
	}
	if c := s.compiled.Load(); c != nil && c.version == version {
		return c.world, nil
	}
	if _, err := s.queries.ShareCatalog(ctx, tx); err != nil {
		return nil, err
	}
	c, err := s.catalogAt(ctx, tx)
	if err != nil {
		return nil, err
	}
	return c.world, nil
}

func (s *Store) saveChat(ctx context.Context, tx pgx.Tx, before enable.Chat, entries []enable.Entry, turn *int32,
	end, now time.Time, request enable.Request, result *enable.Result) error {
	after, numbered := before.Append(entries, turn)
	after.EndTime = end
	folded, err := json.Marshal(after.State)
	if err != nil {
		return err
	}
	var tools []db.AddToolEntriesParams
	var avatars []db.AddAvatarEntriesParams
	for _, e := range numbered {
		if e.Avatar != "" {
			avatars = append(avatars, db.AddAvatarEntriesParams{ChatID: string(after.ID), SequenceNumber: e.Sequence,
				AvatarID: string(e.Avatar), Action: string(e.Action), Turn: e.Turn, RequestID: request.ID, CreateTime: now})
			continue
		}
		row := db.AddToolEntriesParams{ChatID: string(after.ID), SequenceNumber: e.Sequence, ToolID: string(e.Tool),
			Action: string(e.Action), Turn: e.Turn, RequestID: request.ID, CreateTime: now}
		if e.TTLTurns > 0 {
			row.TtlTurns = &e.TTLTurns
		}
		if e.Actor != "" {
			actor := string(e.Actor)
			row.Actor = &actor
		}
		tools = append(tools, row)
	}
	if _, err := s.queries.AddToolEntries(ctx, tx, tools); err != nil {
		return err
	}
	if _, err := s.queries.AddAvatarEntries(ctx, tx, avatars); err != nil {
		return err
	}
	var endTime *time.Time
	if !end.IsZero() {
		endTime = &end
	}
	if err := s.queries.UpdateChat(ctx, tx, db.UpdateChatParams{ChatID: string(after.ID), Turn: after.Turn,
		EntryCount: after.EntryCount, Folded: folded, EndTime: endTime}); err != nil {
		return err
	}
	if err := s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: "chat", ObjectID: string(after.ID)}); err != nil {
		return err
	}
	r, err := s.writeRevision(ctx, tx)
	if err != nil {
		return err
	}
	if err := s.queries.AddChatRequest(ctx, tx, db.AddChatRequestParams{ChatID: string(after.ID), RequestID: request.ID,
		Fingerprint: request.Fingerprint, FirstSequenceNumber: before.EntryCount + 1, LastSequenceNumber: after.EntryCount,
		Revision: r.String(), CreateTime: now, Answer: request.Answer}); err != nil {
		return err
	}
	for _, e := range numbered {
		result.Entries = append(result.Entries, enable.LogEntry{Entry: e, RequestID: request.ID, CreateTime: now})
	}
	result.Chat, result.Revision, result.Answer = after, r.String(), request.Answer
	return nil
}

// repeatCreation fills in what a request to create a chat returned that was made before, or refuses: the
// chat exists.
func (s *Store) repeatCreation(ctx context.Context, tx pgx.Tx, row db.Chat, request enable.Request, result *enable.Result) error {
	chat, err := chatFromRow(row)
	if err != nil {
		return err
	}
	repeated, err := s.repeat(ctx, tx, chat, request, result)
	if err != nil {
		return err
	}
	if !repeated {
		return fault.Exists("chat", string(chat.ID))
	}
	// As it was created, whatever was appended since.
	result.Chat = enable.Chat{ID: chat.ID, User: chat.User, CreateTime: chat.CreateTime}
	for _, e := range result.Entries {
		result.Chat.EntryCount = e.Sequence
		result.Chat.State = result.Chat.State.Fold(e.Entry)
	}
	return nil
}

// repeat fills in the first result of a request that was made before. The chat in it is as it is now; an
// ended chat does not change any more.
func (s *Store) repeat(ctx context.Context, tx pgx.Tx, chat enable.Chat, request enable.Request, result *enable.Result) (bool, error) {
	first, err := s.queries.GetChatRequest(ctx, tx, db.GetChatRequestParams{ChatID: string(chat.ID), RequestID: request.ID})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !bytes.Equal(first.Fingerprint, request.Fingerprint) {
		return false, &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused,
			Message: fmt.Sprintf("request_id %q was used before in this chat, with another content", request.ID)}
	}
	entries, err := s.queries.ListChatLog(ctx, tx, db.ListChatLogParams{ChatID: string(chat.ID),
		First: first.FirstSequenceNumber, Last: first.LastSequenceNumber})
	if err != nil {
		return false, err
	}
	*result = enable.Result{Chat: chat, Entries: entriesFromRows(entries), Revision: first.Revision, Answer: first.Answer}
	return true, nil
}

// Chat returns a chat and the revision that this is complete through.
func (s *Store) Chat(ctx context.Context, chat id.Chat) (c enable.Chat, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		c, r, err = s.chat(ctx, tx, chat)
		return err
	})
	return c, r, err
}

func (s *Store) chat(ctx context.Context, tx pgx.Tx, chat id.Chat) (enable.Chat, revision.Revision, error) {
	r, err := s.snapshotRevision(ctx, tx)
	if err != nil {
		return enable.Chat{}, r, err
	}
	row, err := s.queries.GetChat(ctx, tx, string(chat))
	if errors.Is(err, pgx.ErrNoRows) {
		return enable.Chat{}, r, fault.Missing("chat", string(chat))
	}
	if err != nil {
		return enable.Chat{}, r, err
	}
	c, err := chatFromRow(row)
	return c, r, err
}

// ChatLog returns the entries of a chat after one, at most so many, and whether there are more.
func (s *Store) ChatLog(ctx context.Context, chat id.Chat, after, atMost int32) (entries []enable.LogEntry, more bool, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		var c enable.Chat
		if c, r, err = s.chat(ctx, tx, chat); err != nil {
			return err
		}
		last := min(int64(after)+int64(atMost), int64(c.EntryCount))
		rows, err := s.queries.ListChatLog(ctx, tx, db.ListChatLogParams{ChatID: string(chat), First: after + 1, Last: int32(last)})
		entries, more = entriesFromRows(rows), last < int64(c.EntryCount)
		return err
	})
	return entries, more, r, err
}

func chatFromRow(row db.Chat) (enable.Chat, error) {
	c := enable.Chat{ID: id.Chat(row.ChatID), User: id.User(row.UserID), Turn: row.Turn, EntryCount: row.EntryCount, CreateTime: row.CreateTime}
	if row.EndTime != nil {
		c.EndTime = *row.EndTime
	}
	if err := json.Unmarshal(row.Folded, &c.State); err != nil {
		return enable.Chat{}, fmt.Errorf("chat %q: folded: %w", row.ChatID, err)
	}
	return c, nil
}

func entriesFromRows(rows []db.ListChatLogRow) []enable.LogEntry {
	var entries []enable.LogEntry
	for _, row := range rows {
		e := enable.LogEntry{RequestID: row.RequestID, CreateTime: row.CreateTime, Entry: enable.Entry{
			Sequence: row.SequenceNumber, Tool: id.Tool(row.ToolID), Avatar: id.Avatar(row.AvatarID),
			Action: enable.Action(row.Action), Turn: row.Turn, Actor: enable.Actor(row.Actor)}}
		if row.TtlTurns != nil {
			e.TTLTurns = *row.TtlTurns
		}
		entries = append(entries, e)
	}
	return entries
}
