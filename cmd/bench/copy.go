package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// copier writes users and chats to the database past the server, since one transaction for each write of a
// chat takes hours for a million. The rows are those that the API writes, in transactions of many objects,
// with the changes that servers follow: they may run meanwhile. What exists is left alone, so a load that
// was interrupted can be repeated.
type copier struct {
	world     *world
	pool      *pgxpool.Pool
	queries   *db.Queries
	database  uint64 // as revisions identify it
	superuser bool
}

func newCopier(ctx context.Context, w *world, url string) (*copier, error) {
	store, err := postgres.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	now, err := store.Changes(ctx, revision.Revision{})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	c := &copier{world: w, pool: pool, queries: db.New(), database: now.Revision.Database}
	if err := pool.QueryRow(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&c.superuser); err != nil {
		pool.Close()
		return nil, err
	}
	return c, nil
}

// belongsTo fails unless a revision of the server's is one of this database.
func (c *copier) belongsTo(token string) error {
	r, err := revision.Parse(token)
	if err == nil && r.Database != c.database {
		err = errors.New("--database-url: is not the server's database")
	}
	return err
}

// users writes all users.
func (c *copier) users(ctx context.Context, done *atomic.Int64) error {
	return c.parallel(ctx, c.world.users, 5_000, done, c.copyUsers)
}

// chats writes all chats. Catalogue and users must be there.
func (c *copier) chats(ctx context.Context, done *atomic.Int64) error {
	const rows = 50_000 // about, in a transaction
	return c.parallel(ctx, c.world.chats, max(1, rows/(5+c.world.maxLogEntries)), done, c.copyChats)
}

// settle lets the planner know how much there is now.
func (c *copier) settle(ctx context.Context) error {
	_, err := c.pool.Exec(ctx, "ANALYZE users, devices, memberships, chats, chat_requests, chat_tool_log, chat_avatar_log, changes")
	return err
}

// parallel copies objects, so many in a transaction, in a transaction per CPU at a time.
func (c *copier) parallel(ctx context.Context, count, batch int, done *atomic.Int64, do func(ctx context.Context, tx pgx.Tx, from, to int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.NumCPU(), int(c.pool.Config().MaxConns)))
	for from := 0; from < count && ctx.Err() == nil; from += batch {
		to := min(from+batch, count)
		group.Go(func() error {
			err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
				if c.superuser {
					// Foreign keys are not checked, which takes most of the time: all that rows refer to was written before.
					if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
						return err
					}
				}
				return do(ctx, tx, from, to)
			})
			done.Add(int64(to - from))
			return err
		})
	}
	return group.Wait()
}

// rows are of one table.
type rows struct {
	table   string
	columns []string
	values  [][]any
}

func (r *rows) add(values ...any) { r.values = append(r.values, values) }

// store stores rows in the order of their tables.
func store(ctx context.Context, tx pgx.Tx, tables ...*rows) error {
	for _, t := range tables {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.table}, t.columns, pgx.CopyFromRows(t.values)); err != nil {
			return fmt.Errorf("copy to %s: %w", t.table, err)
		}
	}
	return nil
}

func changesTable() *rows { return &rows{table: "changes", columns: []string{"kind", "object_id"}} }

func (c *copier) copyUsers(ctx context.Context, tx pgx.Tx, from, to int) error {
	users := make([]*toolgrantv1.User, 0, to-from)
	ids := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		u := c.world.user(i)
		users, ids = append(users, u), append(ids, u.GetUserId())
	}
	exists, err := existing(ctx, tx, "SELECT user_id FROM users WHERE user_id = ANY ($1)", ids)
	if err != nil {
		return err
	}
	folded := &rows{table: "users", columns: []string{"user_id", "device_ids", "device_type_ids", "group_ids", "start_times", "expire_times"}}
	devices := &rows{table: "devices", columns: []string{"user_id", "device_id", "device_type_id"}}
	memberships := &rows{table: "memberships", columns: []string{"user_id", "group_id", "start_time", "expire_time"}}
	changes := changesTable()
	for _, u := range users {
		if exists[u.GetUserId()] {
			continue
		}
		deviceIDs, deviceTypes, groups, starts, expires := []string{}, []string{}, []string{}, []time.Time{}, []time.Time{}
		for _, d := range u.GetDevices() {
			devices.add(u.GetUserId(), d.GetDeviceId(), d.GetDeviceTypeId())
			deviceIDs, deviceTypes = append(deviceIDs, d.GetDeviceId()), append(deviceTypes, d.GetDeviceTypeId())
		}
		for _, m := range u.GetMemberships() {
			start, expire := instant(m.GetStartTime()), instant(m.GetExpireTime())
			memberships.add(u.GetUserId(), m.GetGroupId(), orNull(start), orNull(expire))
			groups, starts, expires = append(groups, m.GetGroupId()), append(starts, start), append(expires, expire)
		}
		folded.add(u.GetUserId(), deviceIDs, deviceTypes, groups, starts, expires)
		changes.add("user", u.GetUserId())
	}
	if len(folded.values) == 0 {
		return nil
	}
	if err := store(ctx, tx, folded, devices, memberships, changes); err != nil {
		return err
	}
	// The catalogue's lock, which this takes until the commit, comes last: nothing here depends on the version.
	return c.queries.AdvanceCatalog(ctx, tx)
}

// instant is the zero time for none.
func instant(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// existing returns those of the ids that a query finds.
func existing(ctx context.Context, tx pgx.Tx, query string, ids []string) (map[string]bool, error) {
	found, err := tx.Query(ctx, query, ids)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	exists := map[string]bool{}
	for _, name := range names {
		exists[name] = true
	}
	return exists, err
}

// chatRows are rows of chats.
type chatRows struct {
	chats, requests, tools, avatars, changes *rows
	now                                      time.Time
	revision                                 string
}

func (c *copier) copyChats(ctx context.Context, tx pgx.Tx, from, to int) error {
	chats := make([]chat, 0, to-from)
	ids := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		one := c.world.chat(i)
		chats, ids = append(chats, one), append(ids, one.create.GetChatId())
	}
	exists, err := existing(ctx, tx, "SELECT chat_id FROM chats WHERE chat_id = ANY ($1)", ids)
	if err != nil || len(exists) == len(ids) {
		return err
	}
	r := &chatRows{
		chats: &rows{table: "chats", columns: []string{"chat_id", "user_id", "turn", "entry_count", "folded", "create_time"}},
		requests: &rows{table: "chat_requests", columns: []string{"chat_id", "request_id", "fingerprint", "first_sequence_number",
			"last_sequence_number", "revision", "create_time"}},
		tools: &rows{table: "chat_tool_log", columns: []string{"chat_id", "sequence_number", "tool_id", "action", "ttl_turns", "turn",
			"request_id", "create_time"}},
		avatars: &rows{table: "chat_avatar_log", columns: []string{"chat_id", "sequence_number", "avatar_id", "action", "turn",
			"request_id", "create_time"}},
		changes: changesTable(),
		now:     time.Now().UTC().Truncate(time.Microsecond),
	}
	if r.revision, err = c.revision(ctx, tx); err != nil {
		return err
	}
	for _, one := range chats {
		if exists[one.create.GetChatId()] {
			continue
		}
		if err := r.add(one); err != nil {
			return err
		}
	}
	return store(ctx, tx, r.chats, r.requests, r.tools, r.avatars, r.changes)
}

// revision names this transaction's writes.
func (c *copier) revision(ctx context.Context, tx pgx.Tx) (string, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil { // which numbers the transaction
		return "", err
	}
	row, err := c.queries.Snapshot(ctx, tx)
	if err != nil {
		return "", err
	}
	r, err := revision.FromSnapshot(c.database, row.Snapshot)
	if err != nil {
		return "", err
	}
	xid, err := strconv.ParseUint(row.Xid, 10, 64)
	return r.With(xid).String(), err
}

// add adds what the requests that make a chat write.
func (r *chatRows) add(c chat) error {
	state := enable.Chat{ID: id.Chat(c.create.GetChatId()), User: id.User(c.create.GetUserId()), CreateTime: r.now}
	first := []enable.Entry{{Avatar: id.Avatar(avatarID(0)), Action: enable.ActionEnable}} // everybody's default
	if err := r.append(&state, c.create.GetRequestId(), c.create, first); err != nil {
		return err
	}
	if c.avatars != nil {
		var entries []enable.Entry
		for _, change := range c.avatars.GetChanges() {
			entries = append(entries, enable.Entry{Avatar: id.Avatar(change.GetAvatarId()), Action: actionOf(change.GetAction())})
		}
		if err := r.append(&state, c.avatars.GetRequestId(), c.avatars, entries); err != nil {
			return err
		}
	}
	for _, request := range c.tools {
		var entries []enable.Entry
		for _, change := range request.GetChanges() {
			entries = append(entries, enable.Entry{Tool: id.Tool(change.GetToolId()), Action: actionOf(change.GetAction()), TTLTurns: change.GetTtlTurns()})
		}
		if err := r.append(&state, request.GetRequestId(), request, entries); err != nil {
			return err
		}
	}
	folded, err := json.Marshal(state.State)
	r.chats.add(c.create.GetChatId(), c.create.GetUserId(), state.Turn, state.EntryCount, folded, r.now)
	r.changes.add("chat", c.create.GetChatId())
	return err
}

// append adds what one request writes.
func (r *chatRows) append(state *enable.Chat, requestID string, request proto.Message, entries []enable.Entry) error {
	first := state.EntryCount + 1
	after, numbered := state.Append(entries, nil)
	*state = after
	for _, e := range numbered {
		if e.Avatar != "" {
			r.avatars.add(string(state.ID), e.Sequence, string(e.Avatar), string(e.Action), e.Turn, requestID, r.now)
			continue
		}
		var ttl *int32
		if e.TTLTurns > 0 {
			ttl = &e.TTLTurns
		}
		r.tools.add(string(state.ID), e.Sequence, string(e.Tool), string(e.Action), ttl, e.Turn, requestID, r.now)
	}
	// As the server fingerprints requests; a load over the API after this one finds them made.
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	fingerprint := sha256.Sum256(append([]byte(request.ProtoReflect().Descriptor().FullName()+"\n"), content...))
	r.requests.add(string(state.ID), requestID, fingerprint[:], first, state.EntryCount, r.revision, r.now)
	return err
}

func actionOf(a toolgrantv1.ChatAction) enable.Action {
	if a == toolgrantv1.ChatAction_CHAT_ACTION_ENABLE {
		return enable.ActionEnable
	}
	return enable.ActionDisable
}
