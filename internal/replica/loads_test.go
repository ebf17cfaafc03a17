package replica_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestAColdQuestionTakesOneRoundTripAndAWarmOneNone(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	for _, step := range []struct {
		user  id.User
		chat  id.Chat
		loads int64
	}{{"u0", "c0", 1}, {"u0", "c0", 1}, {"u0", "new", 2}, {"u0", "new", 2}, {"u1", "c1", 3}} {
		m.answer(ctx, t, step.chat, step.user, replica.Consistency{})
		if got := m.tap.loads.Load(); got != step.loads {
			t.Errorf("after %s in %s: %d loads, want %d", step.user, step.chat, got, step.loads)
		}
	}
}

func TestAnUnknownUserIsNotFoundAndNotKept(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	_, err := m.Facts(ctx, "c", "nobody", availability.Web, replica.Consistency{})
	if f, ok := fault.As(err); !ok || f.Kind != fault.NotFound || f.ID != "nobody" {
		t.Fatalf("got %v", err)
	}
	small(ctx, t, m)
	catchUp(ctx, t, m)
	m.edit(ctx, t, usersOnly(availability.User{ID: "nobody"}))
	catchUp(ctx, t, m)
	m.answer(ctx, t, "c", "nobody", replica.Consistency{})
}

// hold makes loads wait until release is called, and tells when the first waits.
func (s *tap) hold() (held <-chan struct{}, release func()) {
	waiting, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	wait := func(ctx context.Context) error {
		once.Do(func() { close(waiting) })
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.beforeLoad.Store(&wait)
	return waiting, func() { s.beforeLoad.Store(nil); close(open) }
}

func TestConcurrentQuestionsShareOneLoad(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	held, release := m.tap.hold()
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if _, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{}); err != nil {
				t.Error(err)
			}
		})
	}
	<-held
	release()
	asking.Wait()
	if got := m.tap.loads.Load(); got != 1 {
		t.Errorf("%d loads, want 1", got)
	}
}

func TestTheFirstWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	held, release := m.tap.hold()
	impatient, giveUp := context.WithCancel(ctx)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.Facts(impatient, "c0", "u0", availability.Web, replica.Consistency{})
		first <- err
	}()
	<-held
	go func() {
		_, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		second <- err
	}()
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first got %v", err)
	}
	release()
	if err := <-second; err != nil {
		t.Errorf("the second got %v", err)
	}
	if got := m.tap.loads.Load(); got != 1 {
		t.Errorf("%d loads, want 1", got)
	}
}

func TestALoadThatHangsIsGivenUpAndMadeAgain(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), func(o *replica.Options) { o.Timeout = 200 * time.Millisecond })
	small(ctx, t, m)
	catchUp(ctx, t, m)
	_, release := m.tap.hold()
	_, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
	if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	release()
	m.answer(ctx, t, "c0", "u0", replica.Consistency{})
}

// A load reads a chat; before its result arrives, the chat is changed and the change is read. The result is old,
// and must not be kept.
func TestALoadThatWasOvertakenByAChangeIsNotKept(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	read, reply := make(chan struct{}), make(chan struct{})
	wait := func() { close(read); <-reply }
	m.tap.beforeReply.Store(&wait)
	early := make(chan error, 1)
	go func() {
		_, err := m.Facts(ctx, "c0", "u0", availability.Web, replica.Consistency{})
		early <- err
	}()
	<-read
	m.tap.beforeReply.Store(nil)
	if _, err := m.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: enable.ActionEnable}); err != nil {
		t.Fatal(err)
	}
	catchUp(ctx, t, m)
	close(reply)
	if err := <-early; err != nil {
		t.Error(err)
	}
	if got := m.answer(ctx, t, "c0", "u0", replica.Consistency{}); !strings.Contains(got, "t7") {
		t.Errorf("the change is missing: %s", got)
	}
}

// A user and the rules change in one transaction. The user is read after it, the rules were compiled before it:
// the answer must not mix them.
func TestAUserIsNotMixedWithOlderRules(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	writer, m := join(t, url, nil), join(t, url, nil)
	small(ctx, t, writer)
	catchUp(ctx, t, m)
	before := m.answer(ctx, t, "c1", "u1", replica.Consistency{})

	part := usersOnly(availability.User{ID: "u0", Devices: []availability.Device{{ID: "d0", Type: "phone"}}, Memberships: []availability.Membership{{Group: "g1"}}})
	part.Groups = []availability.Group{{ID: "g1", Revokes: []id.Tool{"t3"}}} // and t1 no more
	writer.edit(ctx, t, part)
	got := m.answer(ctx, t, "c0", "u0", replica.Consistency{})
	if want := m.answer(ctx, t, "c0", "u0", replica.Consistency{Full: true}); got != want || !strings.Contains(got, "-t3:REVOKED") {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := m.answer(ctx, t, "c1", "u1", replica.Consistency{}); got != before {
		t.Errorf("the other user's answer was %s, is %s", before, got)
	}
}

func TestTheCacheStaysInItsBounds(t *testing.T) {
	ctx := testkit.Context(t)
	const bound = 20_000
	m := join(t, testkit.Database(t), func(o *replica.Options) { o.CacheBytes = bound })
	small(ctx, t, m)
	catchUp(ctx, t, m)
	for i := range 500 {
		m.answer(ctx, t, id.Chat("new-"+string(rune('a'+i%26))+strings.Repeat("x", i%50)), "u0", replica.Consistency{})
	}
	m.Settle()
	if s := m.Stats(); s.CacheBytes > bound || s.CacheEntries == 0 || s.Evictions == 0 {
		t.Errorf("%+v", s)
	}
}
