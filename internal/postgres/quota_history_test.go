package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func open(t *testing.T) (context.Context, *postgres.Store, string) {
	t.Helper()
	ctx, url := testkit.Context(t), testkit.Database(t)
	store, err := postgres.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return ctx, store, url
}

// day is a day of January 2026.
func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

func used(d int, user id.User, tool id.Tool, calls, tokens int64) quota.Usage {
	return quota.Usage{Day: day(d), User: user, Tool: tool, Calls: calls, Tokens: tokens}
}

func inLines(list []quota.Usage) string {
	var lines []string
	for _, u := range list {
		lines = append(lines, fmt.Sprint(u.Day.Format("02"), " ", u.User, " ", u.Tool, " ", u.Calls, " ", u.Tokens))
	}
	return strings.Join(lines, "; ")
}

func TestABatchOfHistoryCountsOnce(t *testing.T) {
	t.Parallel()
	ctx, store, _ := open(t)
	add := func(node string, batch int64, parts ...quota.Usage) {
		t.Helper()
		if err := store.AddHistory(ctx, node, batch, parts); err != nil {
			t.Error(err)
		}
	}
	var group sync.WaitGroup
	for range 8 { // it is not known whether it was added, and repeated while it may be on its way
		group.Go(func() { add("a", 1, used(1, "ann", "web", 2, 30), used(1, "bob", "web", 1, 0)) })
	}
	group.Wait()
	add("b", 1, used(1, "ann", "web", 1, 5))
	add("a", 2, used(1, "ann", "web", 1, 0), used(2, "ann", "web", 1, 0))
	add("a", 2, used(1, "ann", "web", 1, 0), used(2, "ann", "web", 1, 0))
	add("a", 1, used(1, "ann", "web", 2, 30), used(1, "bob", "web", 1, 0))
	list, err := store.History(ctx, "", "", quota.Usage{Day: day(1)}, day(31), 100)
	if got, want := inLines(list), "01 ann web 4 35; 01 bob web 1 0; 02 ann web 1 0"; err != nil || got != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
}

func TestHistoryIsListedByDayUserAndTool(t *testing.T) {
	t.Parallel()
	ctx, store, _ := open(t)
	var parts []quota.Usage
	for d := 1; d <= 3; d++ {
		for _, user := range []id.User{"B", "a", "b"} { // byte by byte
			for _, tool := range []id.Tool{"x", "y"} {
				parts = append(parts, used(d, user, tool, int64(d), 0))
			}
		}
	}
	if err := store.AddHistory(ctx, "n", 1, parts); err != nil {
		t.Fatal(err)
	}
	for _, user := range []id.User{"", "a", "none"} {
		for _, tool := range []id.Tool{"", "y", "none"} {
			for _, days := range [][2]int{{1, 3}, {2, 3}, {1, 2}, {2, 2}, {3, 2}} {
				var want []quota.Usage
				for _, p := range parts {
					if (user == "" || user == p.User) && (tool == "" || tool == p.Tool) && !p.Day.Before(day(days[0])) && !p.Day.After(day(days[1])) {
						want = append(want, p)
					}
				}
				var got []quota.Usage
				for after := (quota.Usage{Day: day(days[0])}); ; {
					page, err := store.History(ctx, user, tool, after, day(days[1]), 2)
					if err != nil {
						t.Fatal(err)
					}
					if len(page) == 0 {
						break
					}
					got = append(got, page...)
					after = page[len(page)-1]
				}
				if inLines(got) != inLines(want) {
					t.Errorf("%q %q %v: got %s, want %s", user, tool, days, inLines(got), inLines(want))
				}
			}
		}
	}
}

// forgetful adds history, and fails to say so every other time.
type forgetful struct {
	*postgres.Store
	asked int
}

func (f *forgetful) AddHistory(ctx context.Context, node string, batch int64, parts []quota.Usage) error {
	if err := f.Store.AddHistory(ctx, node, batch, parts); err != nil {
		return err
	}
	if f.asked++; f.asked%2 == 1 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestNodesAddToOneHistory(t *testing.T) {
	t.Parallel()
	ctx, store, _ := open(t)
	const nodes, calls, users = 4, 3_000, 100
	begin := time.Now()
	var group sync.WaitGroup
	for range nodes {
		group.Go(func() {
			h := quota.NewHistory(&forgetful{Store: store}, slog.New(slog.DiscardHandler))
			for i := range calls {
				h.Record(id.User(fmt.Sprint("u", i%users)), "web", 1, 3)
				if i%1_000 == 0 {
					time.Sleep(600 * time.Millisecond)
				}
			}
			if err := h.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list, err := store.History(ctx, "", "", quota.Usage{Day: begin.UTC().Truncate(24 * time.Hour)}, time.Now(), 1_000)
	if err != nil {
		t.Fatal(err)
	}
	var sum quota.Cost
	for _, u := range list {
		sum = quota.Cost{Calls: sum.Calls + u.Calls, Tokens: sum.Tokens + u.Tokens}
	}
	if want := (quota.Cost{Calls: nodes * calls, Tokens: nodes * calls * 3}); sum != want {
		t.Errorf("got %v, want %v", sum, want)
	}
}

func TestResetsAreWrittenDownForGood(t *testing.T) {
	t.Parallel()
	ctx, store, url := open(t)
	reset := quota.Reset{ID: "r", User: "ann", Quota: "day", Reason: "she asked nicely"}
	begin := func(r quota.Reset, used int64, want bool) {
		t.Helper()
		if done, err := store.BeginReset(ctx, r, used); err != nil || done != want {
			t.Errorf("got %t %v, want %t", done, err, want)
		}
	}
	begin(reset, 7, false)
	begin(reset, 9, false) // broken off, and repeated
	for range 2 {
		if err := store.EndReset(ctx, "r"); err != nil {
			t.Error(err)
		}
	}
	begin(reset, 3, true)
	other := reset
	other.User = "bob"
	if _, err := store.BeginReset(ctx, other, 0); err == nil {
		t.Error("another reset under the same id was taken")
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var got string
	if err := conn.QueryRow(ctx, "SELECT concat_ws(' ', request_id, user_id, quota_id, reason, used) FROM quota_resets").Scan(&got); err != nil || got != "r ann day she asked nicely 7" {
		t.Errorf("got %q %v", got, err)
	}
	for _, statement := range []string{"UPDATE quota_resets SET used = 0", "DELETE FROM quota_resets", "TRUNCATE quota_resets CASCADE",
		"UPDATE quota_resets_done SET create_time = now()", "DELETE FROM quota_resets_done", "TRUNCATE quota_resets_done"} {
		if _, err := conn.Exec(ctx, statement); err == nil || !strings.Contains(err.Error(), "TG001") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
