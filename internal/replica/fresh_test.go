package replica_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func usersOnly(users ...availability.User) admin.Manifest { return admin.Manifest{Users: users} }

// The node polls once an hour at most, but has the write that it is asked for at once.
func TestAtLeastAsFreshLooksAtOnce(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	writer, reader := join(t, url, nil), join(t, url, nil)
	small(ctx, t, writer)
	catchUp(ctx, t, reader)
	reader.answer(ctx, t, "c0", "u0", replica.Consistency{})
	for range 20 {
		for _, action := range []enable.Action{enable.ActionEnable, enable.ActionDisable} {
			token, err := writer.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: action})
			if err != nil {
				t.Fatal(err)
			}
			got := reader.answer(ctx, t, "c0", "u0", replica.Consistency{AtLeastAsFresh: token})
			if strings.Contains(got, "t7") != (action == enable.ActionEnable) {
				t.Fatalf("after %s: %s", action, got)
			}
		}
	}
}

func TestRevisionsThatCannotBeWaitedForAreRefused(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	facts, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
	if err != nil {
		t.Fatal(err)
	}
	other, future := facts.Revision, facts.Revision
	other.Database++
	future.Xmax += 1_000_000
	future.Xmin = future.Xmax
	for token, want := range map[string]fault.Reason{
		"r1-nonsense":   fault.ReasonInvalidRequest,
		other.String():  fault.ReasonOtherDatabase,
		future.String(): fault.ReasonFromTheFuture,
	} {
		_, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{AtLeastAsFresh: token})
		if f, ok := fault.As(err); !ok || f.Reason != want {
			t.Errorf("%s: got %v, want %s", token, err, want)
		}
	}
	if _, err := revision.Parse(facts.Token); err != nil {
		t.Error(err)
	}
}

// Nobody wakes the reader. Whatever was acknowledged longer ago than the bound when a question is asked is in its
// answer.
func TestAnswersAreNeverOlderThanTheBound(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	const bound = 100 * time.Millisecond
	writer, reader := join(t, url, nil), join(t, url, func(o *replica.Options) { o.MaxStaleness = bound })
	small(ctx, t, writer)
	catchUp(ctx, t, reader)

	type write struct {
		acknowledged time.Time
		revision     revision.Revision
	}
	var mu sync.Mutex
	var writes []write
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			token, err := writer.append(ctx, "c0", nil, enable.Entry{Tool: id.Tool("t7"), Action: enable.ActionEnable})
			if err != nil {
				t.Error(err)
				return
			}
			now := time.Now()
			r, err := revision.Parse(token)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			writes = append(writes, write{now, r})
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	})
	var oldest time.Duration
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		asked := time.Now()
		facts, err := reader.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		for _, w := range writes {
			if facts.Revision.Includes(w.revision) {
				continue
			}
			if age := asked.Sub(w.acknowledged); age > bound {
				t.Errorf("a write of %s ago is missing", age)
			} else {
				oldest = max(oldest, age)
			}
			break // the writes after it are younger
		}
		mu.Unlock()
	}
	close(stop)
	writing.Wait()
	t.Logf("bound %s; the oldest write that an answer lacked was %s old; %d writes", bound, oldest, len(writes))
}

// The database is away. What is known is served until it is too old, and then, if the operator chose that, as
// stale; when the database is back, all is as before.
func TestAnAwayDatabase(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	const bound = 100 * time.Millisecond
	for _, serveStale := range []bool{false, true} {
		m := join(t, url, func(o *replica.Options) { o.MaxStaleness, o.ServeStale = bound, serveStale })
		if !serveStale {
			small(ctx, t, m)
			catchUp(ctx, t, m)
		}
		want := m.answer(ctx, t, "c0", "u0", replica.Consistency{})
		away := func(context.Context) error {
			return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable, Message: "away", Cause: errors.New("unplugged")}
		}
		m.tap.beforePoll.Store(&away)
		m.tap.beforeLoad.Store(&away)
		_ = m.CatchUp(ctx) // no poll that succeeded is on the way any more
		time.Sleep(2 * bound)
		facts, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		switch f, _ := fault.As(err); {
		case serveStale && (err != nil || !facts.Stale || words(&facts) != want):
			t.Errorf("serving what is stale: %v, %v", facts.Stale, err)
		case !serveStale && (f == nil || f.Kind != fault.Unavailable):
			t.Errorf("got %v, want UNAVAILABLE", err)
		}
		if check := m.Check(); (check == nil) != serveStale {
			t.Errorf("Check: %v", check)
		}
		_, err = m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{AtLeastAsFresh: facts.Token + "0"})
		if err == nil {
			t.Error("what cannot be known is answered")
		}
		m.tap.beforePoll.Store(nil)
		m.tap.beforeLoad.Store(nil)
		catchUp(ctx, t, m)
		facts, err = m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		if err != nil || facts.Stale || words(&facts) != want || m.Check() != nil {
			t.Errorf("back again: %v, %v, %v", facts.Stale, err, m.Check())
		}
	}
}
