package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// locked is a tracer that does something whenever a writer gets the catalogue's lock.
type locked struct{ do func() }

type isLock struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (*locked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isLock{}, strings.Contains(data.SQL, "name: LockCatalog"))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *locked) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(isLock{}) == true {
		l.do()
	}
}

// A writer reads the catalogue in its own transaction. If later transactions end before it does so, its snapshot
// looks as if it included what the writer is about to write. The next writer must find that nevertheless.
func TestAWriterFindsWhatTheOneBeforeWrote(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	store, err := postgres.Open(ctx, url, postgres.WithTracer(&locked{func() {
		if _, err := other.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			t.Error(err)
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	last := "none"
	for _, title := range []string{"first", "second", "third", "fourth"} {
		found := ""
		_, _, err := store.Edit(ctx, nil, func(stored admin.Manifest) (e admin.Edit, err error) {
			found = "none"
			if len(stored.Groups) > 0 {
				found = stored.Groups[0].Title
			}
			e.Groups = []availability.Group{{ID: "g", Title: title}}
			return e, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if found != last {
			t.Errorf("%q was written, and then %q found", last, found)
		}
		last = title
	}
}
