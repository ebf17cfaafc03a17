package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// stored is all rows of users and chats, but for when and in which transaction they were written.
func stored(t *testing.T, url string) map[string][]string {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	all := map[string][]string{}
	for table, columns := range map[string]string{
		"users":           "user_id",
		"devices":         "device_id, user_id, device_type_id",
		"memberships":     "user_id, group_id, start_time, expire_time",
		"chats":           "chat_id, user_id, turn, entry_count, folded, end_time",
		"chat_requests":   "chat_id, request_id, fingerprint, first_sequence_number, last_sequence_number",
		"chat_tool_log":   "chat_id, sequence_number, tool_id, action, ttl_turns, turn, request_id",
		"chat_avatar_log": "chat_id, sequence_number, avatar_id, action, turn, request_id",
		"changes":         "kind, object_id", // of a chat once for each request, or once
	} {
		found, err := conn.Query(ctx, fmt.Sprintf("SELECT DISTINCT row(%s)::text FROM %s ORDER BY 1", columns, table))
		if err != nil {
			t.Fatal(err)
		}
		if all[table], err = pgx.CollectRows(found, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestCopyingWritesWhatTheAPIWrites(t *testing.T) {
	ctx := testkit.Context(t)
	load := func(url string, flags ...string) {
		t.Helper()
		address := node.Start(t, url, node.Options{}).Address
		for range 2 { // a load can be repeated, in either way
			args := slices.Concat([]string{"load", "--addr", address, "--users=30", "--chats=40", "--max-log-entries=1100"}, flags)
			if err := run(ctx, args, nil, io.Discard, io.Discard); err != nil {
				t.Fatal(err)
			}
			flags = nil
		}
	}
	over, past := testkit.Database(t), testkit.Database(t)
	load(over)
	load(past, "--database-url", past)
	want, got := stored(t, over), stored(t, past)
	for table := range want {
		if len(want[table]) == 0 || !slices.Equal(got[table], want[table]) {
			t.Errorf("%s: %d rows, want %d equal ones", table, len(got[table]), len(want[table]))
		}
	}

	address := node.Start(t, over, node.Options{}).Address
	err := run(ctx, []string{"load", "--addr", address, "--users=1", "--chats=1", "--database-url", past}, nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not the server's database") {
		t.Errorf("another database: %v", err)
	}
}
