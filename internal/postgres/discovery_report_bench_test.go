package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// BenchmarkDiscoveryReports reports on 100,000 searches, 100,000 narrowings, 100,000 enablings and 200,000 calls, of
// 20,000 chats in a day.
func BenchmarkDiscoveryReports(b *testing.B) {
	ctx := testkit.Context(b)
	url := testkit.Database(b)
	store, err := postgres.Open(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	const of = `'chat-' || i % 20000, 'user-' || i % 5000`
	for _, sql := range []string{
		`INSERT INTO users SELECT 'user-' || i FROM generate_series(0, 4999) i`,
		`INSERT INTO chats (chat_id, user_id, create_time) SELECT ` + of + `, now() FROM generate_series(0, 19999) i`,
		`INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time)
			SELECT ` + of + `, '{}', '{1}', ARRAY['tool-' || i % 1000, 'tool-' || i % 999, 'tool-' || i % 998], now() - i * interval '0.8 s' FROM generate_series(0, 99999) i`,
		`INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time, kind, effective_count, kept_tool_ids)
			SELECT ` + of + `, '{}', '{}', ARRAY['tool-' || i % 997], now() - i * interval '0.8 s', 'NARROWING', 50, ARRAY['tool-' || i % 997] FROM generate_series(0, 99999) i`,
		`INSERT INTO chat_tool_log (chat_id, sequence_number, tool_id, action, turn, request_id, create_time)
			SELECT 'chat-' || i % 20000, i + 1, 'tool-' || i % 1000, 'ENABLE', 0, 'r', now() - (i - 5) * interval '0.8 s' FROM generate_series(0, 99999) i`,
		`INSERT INTO call_outcomes (call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens, report_time, routing_mode, turn)
			SELECT 'call-' || i, ` + of + `, 'tool-' || i % 1000, 'f', 'SUCCESS', 1, 0, now() - (i / 2 - 10) * interval '0.8 s', 'V2', 1 FROM generate_series(0, 199999) i`,
		`ANALYZE`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			b.Fatal(err)
		}
	}
	now := time.Now()
	for name, span := range map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := store.DiscoveryReports(ctx, now.Add(-span), now, now.Add(-5*time.Minute)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("core", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.CoreEvidence(ctx, now.Add(-24*time.Hour), now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
