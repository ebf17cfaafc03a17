package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// setup returns a store with ten tools, a user and a chat whose log has so many entries.
func setup(tb testing.TB, entries int) *postgres.Store {
	tb.Helper()
	ctx := testkit.Context(tb)
	store, err := postgres.Open(ctx, testkit.Database(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	m := admin.Manifest{Users: []availability.User{{ID: "u"}}}
	m.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}
	for i := range 10 {
		m.Tools = append(m.Tools, catalog.Tool{ID: id.Tool(fmt.Sprint("t", i)), Type: "type", Name: fmt.Sprint("t", i),
			Status: catalog.StatusActive, Risk: catalog.RiskLow})
	}
	edit := admin.Edit{Manifest: m}
	if _, _, err := store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) { return edit, nil }); err != nil {
		tb.Fatal(err)
	}
	if _, err := store.CreateChat(ctx, "c", "u", availability.Web, enable.Request{ID: "create", Fingerprint: []byte("create")}); err != nil {
		tb.Fatal(err)
	}
	for written := 0; written < entries; {
		var batch []enable.Entry
		for range min(1000, entries-written) {
			action := enable.ActionEnable
			if written%3 == 0 {
				action = enable.ActionDisable
			}
			batch = append(batch, enable.Entry{Tool: id.Tool(fmt.Sprint("t", written%10)), Action: action})
			written++
		}
		_, err := store.ChangeChat(ctx, "c", nil, enable.Request{ID: fmt.Sprint(written), Fingerprint: []byte("entries")},
			func(*enable.Chat, *effective.World) ([]enable.Entry, error) { return batch, nil })
		if err != nil {
			tb.Fatal(err)
		}
	}
	return store
}

func TestTheStoredFoldIsTheFoldOfTheStoredLog(t *testing.T) {
	store := setup(t, 1500)
	ctx := testkit.Context(t)
	facts, err := store.Facts(ctx, "c", "u", availability.Web)
	if err != nil {
		t.Fatal(err)
	}
	log, more, _, err := store.ChatLog(ctx, "c", 0, 2000)
	if err != nil || more || len(log) != 1500 {
		t.Fatalf("%d entries, more: %t, %v", len(log), more, err)
	}
	var folded enable.State
	for _, e := range log {
		folded = folded.Fold(e.Entry)
	}
	if got, want := fmt.Sprint(facts.Chat.State), fmt.Sprint(folded); got != want {
		t.Errorf("stored %s, folded anew %s", got, want)
	}
}

func BenchmarkResolveByLogLength(b *testing.B) {
	for _, entries := range []int{10, 10_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			store := setup(b, entries)
			for b.Loop() {
				facts, err := store.Facts(b.Context(), "c", "u", availability.Web)
				if err != nil {
					b.Fatal(err)
				}
				q, _, err := facts.Ask(availability.Web, nil, time.Now())
				if err != nil {
					b.Fatal(err)
				}
				facts.World.Resolve(q)
			}
		})
	}
}
