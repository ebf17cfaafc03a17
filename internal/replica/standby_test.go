package replica_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// readStandby asks for chats that nobody has asked for, until the standby or the primary was asked as wanted: it is let
// alone for a moment when it was behind.
func readStandby(ctx context.Context, t *testing.T, m *member, name string, done func(postgres.StandbyStats) bool) {
	t.Helper()
	for n := 0; ctx.Err() == nil && !done(m.store.StandbyStats()); n++ {
		m.answer(ctx, t, id.Chat(fmt.Sprint(name, n)), "u0", replica.Consistency{})
		time.Sleep(time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Fatalf("%+v", m.store.StandbyStats())
	}
}

func TestAStandbyIsReadWhereItHasReplayedFarEnough(t *testing.T) {
	ctx := testkit.Context(t)
	pair := testkit.PostgresPair(t, false)
	writer := join(t, pair.PrimaryURL(), nil)
	small(ctx, t, writer)
	pair.CatchUp()
	reader := join(t, pair.PrimaryURL(), nil, postgres.WithStandby(pair.StandbyURL()))
	readStandby(ctx, t, reader, "first", func(s postgres.StandbyStats) bool { return s.Served > 0 })

	pair.PauseReplay()
	token, err := writer.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: enable.ActionEnable})
	if err != nil {
		t.Fatal(err)
	}
	before := reader.store.StandbyStats()
	if got := reader.answer(ctx, t, "c0", "u0", replica.Consistency{AtLeastAsFresh: token}); !strings.Contains(got, "t7") {
		t.Errorf("the write that was asked for is missing: %s", got)
	}
	readStandby(ctx, t, reader, "paused", func(s postgres.StandbyStats) bool { return s.Behind > before.Behind })
	if now := reader.store.StandbyStats(); now.Served != before.Served || now.Failed != 0 {
		t.Errorf("%+v, then %+v", before, now)
	}

	pair.ResumeReplay()
	pair.CatchUp()
	readStandby(ctx, t, reader, "resumed", func(s postgres.StandbyStats) bool { return s.Served > before.Served })

	// A transaction that is in progress is not in the standby's snapshots, which do not say so.
	conn, err := pgx.Connect(ctx, pair.PrimaryURL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	long, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := long.Exec(ctx, "INSERT INTO changes (kind, object_id) VALUES ('user', 'nobody')"); err != nil {
		t.Fatal(err)
	}
	if token, err = writer.append(ctx, "c1", nil, enable.Entry{Tool: "t8", Action: enable.ActionEnable}); err != nil {
		t.Fatal(err)
	}
	pair.CatchUp()
	before = reader.store.StandbyStats()
	if got := reader.answer(ctx, t, "c1", "u1", replica.Consistency{AtLeastAsFresh: token}); !strings.Contains(got, "t8") {
		t.Errorf("the write is missing: %s", got)
	}
	readStandby(ctx, t, reader, "long", func(s postgres.StandbyStats) bool { return s.Behind > before.Behind })
	if err := long.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// While a standby follows as well as it can, whoever names a write finds it.
func TestWhoNamesAWriteFindsItWhereverItIsRead(t *testing.T) {
	ctx := testkit.Context(t)
	pair := testkit.PostgresPair(t, false)
	writer := join(t, pair.PrimaryURL(), nil)
	small(ctx, t, writer)
	// Hardly anything is kept, so that nearly all is read.
	reader := join(t, pair.PrimaryURL(), func(o *replica.Options) { o.CacheBytes = 4096 }, postgres.WithStandby(pair.StandbyURL()))
	var group sync.WaitGroup
	for worker := range 4 {
		chat := id.Chat(fmt.Sprint("chat-", worker))
		if _, err := writer.store.CreateChat(ctx, chat, "u0", availability.Web, enable.Request{ID: "create", Fingerprint: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for n := range 100 {
				action := []enable.Action{enable.ActionEnable, enable.ActionDisable}[n%2]
				token, err := writer.append(ctx, chat, nil, enable.Entry{Tool: "t7", Action: action})
				if err != nil {
					t.Error(err)
					return
				}
				facts, err := reader.Facts(ctx, chat, "u0", availability.Web, replica.Consistency{AtLeastAsFresh: token})
				if err != nil {
					t.Error(err)
					return
				}
				if got := words(&facts); strings.Contains(got, "t7") != (action == enable.ActionEnable) {
					t.Errorf("after %s: %s", action, got)
					return
				}
				if n%10 == 0 {
					pair.CatchUp()
				}
			}
		})
	}
	group.Wait()
	readStandby(ctx, t, reader, "last", func(s postgres.StandbyStats) bool { return s.Served > 0 })
	t.Logf("%+v", reader.store.StandbyStats())
}

// eventually asks again while the database is away.
func eventually(ctx context.Context, t *testing.T, do func() error) {
	t.Helper()
	for {
		err := do()
		if err == nil {
			return
		}
		if f, ok := fault.As(err); ctx.Err() != nil || ok && f.Kind != fault.Unavailable {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestWhatWasAcknowledgedOutlivesThePrimary(t *testing.T) {
	ctx := testkit.Context(t)
	pair := testkit.PostgresPair(t, true)
	m := join(t, pair.URL(), func(o *replica.Options) { o.MaxStaleness = 200 * time.Millisecond }, postgres.WithStandby(pair.StandbyURL()))
	small(ctx, t, m)
	var group sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[id.Chat]bool{}
	writing, stop := context.WithCancel(ctx)
	for worker := range 4 {
		group.Go(func() {
			for n := 0; writing.Err() == nil; n++ {
				chat := id.Chat(fmt.Sprintf("chat-%d-%d", worker, n))
				if _, err := m.store.CreateChat(writing, chat, "u0", availability.Web, enable.Request{ID: "create", Fingerprint: []byte("x")}); err == nil {
					mu.Lock()
					acknowledged[chat] = true
					mu.Unlock()
				}
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for count() < 50 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	pair.KillPrimary()
	pair.Promote()
	for before := count(); count() < before+50 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	stop()
	group.Wait()
	var facts replica.Facts
	for chat := range acknowledged {
		eventually(ctx, t, func() (err error) {
			facts, err = m.Facts(ctx, chat, "u0", availability.Web, replica.Consistency{})
			return err
		})
		if facts.Chat == nil {
			t.Errorf("%s was acknowledged, and is lost", chat)
		}
	}
	t.Logf("%d chats; %+v", len(acknowledged), m.store.StandbyStats())
}

// A standby that is promoted without the last writes gives their numbers to others. Nobody goes on answering from what is
// undone.
func TestWhatAPromotedStandbyMissedIsForgotten(t *testing.T) {
	ctx := testkit.Context(t)
	pair := testkit.PostgresPair(t, false)
	m := join(t, pair.URL(), func(o *replica.Options) { o.MaxStaleness = 200 * time.Millisecond })
	small(ctx, t, m)
	pair.CatchUp()
	pair.Disconnect()
	token, err := m.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: enable.ActionEnable})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.answer(ctx, t, "c0", "u0", replica.Consistency{AtLeastAsFresh: token}); !strings.Contains(got, "t7") {
		t.Fatal(got)
	}
	m.edit(ctx, t, usersOnly(availability.User{ID: "u9"})) // a version of the catalogue that is given again, too
	pair.KillPrimary()
	pair.Promote()
	// Numbers of transactions go on past those that are undone.
	for range 5 {
		eventually(ctx, t, func() error {
			_, err := m.append(ctx, "c1", nil, enable.Entry{Tool: "t8", Action: enable.ActionEnable})
			return err
		})
	}
	eventually(ctx, t, func() error { return m.CatchUp(ctx) })
	var facts replica.Facts
	eventually(ctx, t, func() (err error) {
		facts, err = m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		return err
	})
	if got := words(&facts); strings.Contains(got, "t7") {
		t.Errorf("what is undone is answered: %s", got)
	}
	_, err = m.Facts(ctx, "c", "u9", availability.Web, replica.Consistency{})
	if f, ok := fault.As(err); !ok || f.Kind != fault.NotFound {
		t.Errorf("a user that is undone: %v", err)
	}
}
