package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// chatsOf fills a database with chats of one user: open ones, and ones that ended so many days ago.
func chatsOf(ctx context.Context, t *testing.T, conn *pgx.Conn, open int, ended ...int) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO users (user_id) VALUES ('u')")
	add := func(chat string, end any) {
		exec("INSERT INTO chats (chat_id, user_id, entry_count, create_time, end_time) VALUES ($1, 'u', 2, now() - interval '99 days', $2)", chat, end)
		exec("INSERT INTO chat_requests (chat_id, request_id, fingerprint, first_sequence_number, last_sequence_number, revision, create_time) VALUES ($1, 'r', '', 1, 2, '', now())", chat)
		exec("INSERT INTO chat_avatar_log (chat_id, sequence_number, avatar_id, action, turn, request_id, create_time) VALUES ($1, 1, 'a', 'ENABLE', 0, 'r', now())", chat)
		exec("INSERT INTO chat_tool_log (chat_id, sequence_number, tool_id, action, turn, request_id, create_time) VALUES ($1, 2, 't', 'ENABLE', 0, 'r', now())", chat)
	}
	for i := range open {
		add(fmt.Sprint("open-", i), nil)
	}
	for i, days := range ended {
		add(fmt.Sprint("ended-", i), time.Now().AddDate(0, 0, -days))
	}
}

func rowsOf(ctx context.Context, t *testing.T, conn *pgx.Conn) (counts [4]int) {
	t.Helper()
	if err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM chats), (SELECT count(*) FROM chat_requests), (SELECT count(*) FROM chat_tool_log),
		(SELECT count(*) FROM chat_avatar_log)`).Scan(&counts[0], &counts[1], &counts[2], &counts[3]); err != nil {
		t.Fatal(err)
	}
	return counts
}

func openWith(ctx context.Context, t *testing.T) (*postgres.Store, *pgx.Conn) {
	t.Helper()
	url := testkit.Database(t)
	store, err := postgres.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return store, conn
}

// Chats that ended long ago go, each whole; others stay, each whole. Servers that prune at the same time don't meet.
func TestOldChatsGoWhole(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	ended := make([]int, 250) // more than a batch
	for i := range ended {
		ended[i] = 10
	}
	chatsOf(ctx, t, conn, 3, append(ended, 1, 1)...)
	var servers sync.WaitGroup
	for range 3 {
		servers.Go(func() {
			if err := store.PruneChats(ctx, time.Now().AddDate(0, 0, -5)); err != nil {
				t.Error(err)
			}
		})
	}
	servers.Wait()
	if got := rowsOf(ctx, t, conn); got != [4]int{5, 5, 5, 5} {
		t.Errorf("there are %v rows of chats, requests and both logs", got)
	}
	var told int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM changes WHERE kind = 'chat' AND object_id LIKE 'ended-%'").Scan(&told); err != nil || told != 250 {
		t.Errorf("others were told of %d chats: %v", told, err)
	}
}

// Another server has its turn: this one leaves all as it is, and does not wait.
func TestOneServerPrunesAtATime(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	chatsOf(ctx, t, conn, 0, 10)
	other, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(ctx, "SELECT pg_advisory_xact_lock(x'74670001'::bigint)"); err != nil {
		t.Fatal(err)
	}
	if err := store.PruneChats(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := other.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(ctx, t, conn); got[0] != 1 {
		t.Errorf("%d chats are left while another server had the turn", got[0])
	}
	if err := store.PruneChats(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(ctx, t, conn); got != [4]int{} {
		t.Errorf("%v", got)
	}
}

// The database refuses to delete parts of logs, whoever asks and whatever he says before.
func TestNoPartOfALogCanGo(t *testing.T) {
	ctx := testkit.Context(t)
	_, conn := openWith(ctx, t)
	chatsOf(ctx, t, conn, 1, 10)
	refused := func(err error) bool {
		var sql *pgconn.PgError
		return errors.As(err, &sql) && sql.Code == "TG001"
	}
	for _, table := range []string{"chat_requests", "chat_tool_log", "chat_avatar_log"} {
		for _, statement := range []string{"DELETE FROM " + table, "UPDATE " + table + " SET create_time = now()", "TRUNCATE " + table} {
			if _, err := conn.Exec(ctx, statement); !refused(err) {
				t.Errorf("%s: %v", statement, err)
			}
			err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "SELECT set_config('toolgrant.delete', 'whole', true)"); err != nil {
					t.Fatal(err)
				}
				_, err := tx.Exec(ctx, statement+map[bool]string{true: " WHERE chat_id = 'open-0'"}[statement[0] == 'D'])
				return err
			})
			if !refused(err) {
				t.Errorf("%s, allowed to delete whole chats: %v", statement, err)
			}
		}
	}
	if _, err := conn.Exec(ctx, "SET toolgrant.delete = 'whole'"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "DELETE FROM audit_entries"); !refused(err) {
		t.Errorf("the audit log: %v", err)
	}
	if got := rowsOf(ctx, t, conn); got != [4]int{2, 2, 2, 2} {
		t.Errorf("%v", got)
	}
}

func TestOldHistoryGoes(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	if _, err := conn.Exec(ctx, `INSERT INTO quota_history (day, user_id, tool_id, calls, tokens)
		SELECT (now() AT TIME ZONE 'UTC')::date - n, 'u', 't' || m, 1, 1 FROM generate_series(0, 9) n, generate_series(1, 2) m`); err != nil {
		t.Fatal(err)
	}
	if err := store.PruneHistory(ctx, time.Now().AddDate(0, 0, -3)); err != nil {
		t.Fatal(err)
	}
	var left, oldest int
	if err := conn.QueryRow(ctx, "SELECT count(*), (now() AT TIME ZONE 'UTC')::date - min(day) FROM quota_history").Scan(&left, &oldest); err != nil || left != 8 || oldest != 3 {
		t.Errorf("%d rows, the oldest of %d days ago: %v", left, oldest, err)
	}
}

// While another server prunes, nobody waits for it, and nothing is deleted twice.
func TestPrunesInTurns(t *testing.T) {
	ctx := testkit.Context(t)
	store, conn := openWith(ctx, t)
	for _, statement := range []string{
		"INSERT INTO quota_history (day, user_id, tool_id, calls, tokens) VALUES ('2020-01-01', 'u', 't', 1, 1)",
		"INSERT INTO changes (kind, object_id, create_time) VALUES ('user', 'u', '2020-01-01')",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	left := func(table string) (n int) {
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table+" WHERE "+map[string]string{"changes": "create_time < '2021-01-01'", "quota_history": "true"}[table]).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	other, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(ctx, "SELECT pg_advisory_xact_lock(lock) FROM generate_series(x'74670001'::bigint, x'7467000f'::bigint) lock"); err != nil {
		t.Fatal(err)
	}
	prunings := map[string]func(context.Context, time.Time) error{"changes": store.PruneChanges, "quota_history": store.PruneHistory}
	for table, prune := range prunings {
		if err := prune(ctx, time.Now().Add(-time.Hour)); err != nil || left(table) != 1 {
			t.Errorf("%s, while another server prunes: %d rows are left, %v", table, left(table), err)
		}
	}
	if err := other.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for table, prune := range prunings {
		if err := prune(ctx, time.Now().Add(-time.Hour)); err != nil || left(table) != 0 {
			t.Errorf("%s: %d rows are left, %v", table, left(table), err)
		}
	}
}
