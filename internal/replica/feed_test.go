package replica_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Transactions get their numbers, and their changes theirs, before they commit. One that commits late has a
// number below those that were seen already.
func TestASlowTransactionIsNotPassedOver(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	m.answer(ctx, t, "c0", "u0", replica.Consistency{}) // from now on in the cache

	begun, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := m.append(ctx, "c0", func() { close(begun); <-release }, enable.Entry{Tool: "t7", Action: enable.ActionEnable})
		done <- err
	}()
	<-begun
	for i := range 20 { // these come later and commit earlier
		if _, err := m.append(ctx, "c1", nil, enable.Entry{Tool: "t8", Action: enable.ActionEnable}); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			catchUp(ctx, t, m)
		}
	}
	catchUp(ctx, t, m)
	if got := m.answer(ctx, t, "c0", "u0", replica.Consistency{}); strings.Contains(got, "t7") {
		t.Fatalf("uncommitted, but answered: %s", got)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	catchUp(ctx, t, m)
	if got := m.answer(ctx, t, "c0", "u0", replica.Consistency{}); !strings.Contains(got, "t7") {
		t.Errorf("committed, but not answered: %s", got)
	}
}

func catchUp(ctx context.Context, t testing.TB, m *member) {
	t.Helper()
	if err := m.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
}

// A node that was away until the changes were deleted reads everything anew.
func TestPrunedChangesAreNotMissed(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	writer, away := join(t, url, nil), join(t, url, nil)
	small(ctx, t, writer)
	catchUp(ctx, t, away)
	before := away.answer(ctx, t, "c0", "u0", replica.Consistency{})

	writer.edit(ctx, t, admin.Manifest{Definitions: effective.Definitions{Tools: []catalog.Tool{titled(0, "second")}}})
	if _, err := writer.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: enable.ActionEnable}); err != nil {
		t.Fatal(err)
	}
	if err := writer.store.PruneChanges(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	lost := away.Stats().LostChanges
	catchUp(ctx, t, away)
	want := away.answer(ctx, t, "c0", "u0", replica.Consistency{Full: true})
	if got := away.answer(ctx, t, "c0", "u0", replica.Consistency{}); got != want || got == before {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := away.Stats().LostChanges; got != lost+1 {
		t.Errorf("changes were lost %d times, want once more than %d", got, lost)
	}
}

// Young changes stay, and those that have been read already are not missed.
func TestPruningWhatWasReadLosesNothing(t *testing.T) {
	ctx := testkit.Context(t)
	m := join(t, testkit.Database(t), nil)
	small(ctx, t, m)
	catchUp(ctx, t, m)
	lost := m.Stats().LostChanges
	if err := m.store.PruneChanges(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.append(ctx, "c0", nil, enable.Entry{Tool: "t7", Action: enable.ActionEnable}); err != nil {
		t.Fatal(err)
	}
	catchUp(ctx, t, m)
	if got := m.Stats().LostChanges; got != lost {
		t.Errorf("changes were lost %d times, want %d", got, lost)
	}
}

// Several nodes write and read at once, with transactions that stay open for a while, polls that are late, and
// changes that are deleted. What a node answers never goes back, and in the end all answer as the database.
func TestNodesAgreeWithTheDatabase(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	const nodes, writers, writes = 3, 4, 60
	var members []*member
	for i := range nodes {
		m := join(t, url, func(o *replica.Options) { o.MaxStaleness = 40 * time.Millisecond })
		late := rand.New(rand.NewPCG(seed, uint64(i)))
		delay := func(context.Context) error {
			time.Sleep(time.Duration(late.IntN(20)) * time.Millisecond)
			return nil
		}
		m.tap.beforePoll.Store(&delay)
		members = append(members, m)
	}
	small(ctx, t, members[0])

	var writing sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(seed, uint64(100+w)))
		writing.Go(func() {
			for range writes {
				write(ctx, t, random, members[random.IntN(nodes)])
			}
		})
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for _, m := range members {
		reading.Go(func() { readForward(ctx, t, m, stop) })
	}
	writing.Wait()
	close(stop)
	reading.Wait()

	for i, m := range members {
		catchUp(ctx, t, m)
		for _, user := range []id.User{"u0", "u1"} {
			for _, chat := range []id.Chat{"c" + id.Chat(user[1:]), "never created"} {
				got, want := m.answer(ctx, t, chat, user, replica.Consistency{}), members[0].answer(ctx, t, chat, user, replica.Consistency{Full: true})
				if got != want {
					t.Errorf("node %d: %s in chat %s is answered\n%s\nwant\n%s", i, user, chat, got, want)
				}
			}
		}
	}
}

// write makes a random change in a transaction that takes a random time.
func write(ctx context.Context, t *testing.T, random *rand.Rand, m *member) {
	pause := func() { time.Sleep(time.Duration(random.IntN(15)) * time.Millisecond) }
	title := fmt.Sprint("title ", random.Uint32())
	n := random.IntN(2)
	switch random.IntN(6) {
	case 0, 1:
		action := []enable.Action{enable.ActionEnable, enable.ActionDisable}[random.IntN(2)]
		if _, err := m.append(ctx, id.Chat(fmt.Sprint("c", n)), pause, enable.Entry{Tool: id.Tool(fmt.Sprint("t", random.IntN(10))), Action: action}); err != nil {
			t.Error(err)
		}
		return
	case 2:
		if err := m.store.PruneChanges(ctx, time.Now().Add(-time.Duration(random.IntN(100))*time.Millisecond)); err != nil {
			t.Error(err)
		}
		return
	}
	_, _, err := m.store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) {
		pause()
		var part admin.Manifest
		switch random.IntN(4) {
		case 0:
			part.Tools = []catalog.Tool{titled(random.IntN(10), title)}
		case 1:
			part.Tools = []catalog.Tool{titled(10+random.IntN(3), title)}
			part.Avatars = []enable.Avatar{{ID: "avatar", Tools: []id.Tool{"t1", part.Tools[0].ID}}}
		case 2:
			part.DeviceTypes = []availability.DeviceType{{ID: "phone", Tools: []id.Tool{"t1", "t2", id.Tool(fmt.Sprint("t", 3+random.IntN(7)))}}}
		case 3:
			user := availability.User{ID: id.User(fmt.Sprint("u", n))}
			if random.IntN(3) > 0 {
				user.Devices = []availability.Device{{ID: id.Device(fmt.Sprint("d", n)), Type: "phone"}}
			}
			for g := range random.IntN(3) {
				user.Memberships = append(user.Memberships, availability.Membership{Group: id.Group(fmt.Sprint("g", g))})
			}
			part.Users = []availability.User{user}
		}
		return admin.Edit{Manifest: part}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// readForward reads until it is stopped; no answer may lack what an earlier one had.
func readForward(ctx context.Context, t *testing.T, m *member, stop <-chan struct{}) {
	var last replica.Facts
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		user := id.User(fmt.Sprint("u", i%2))
		facts, err := m.Facts(ctx, "c"+id.Chat(user[1:]), user, availability.Web, replica.Consistency{})
		if err != nil {
			t.Error(err)
			return
		}
		if last.Token != "" && !facts.Revision.Includes(last.Revision) {
			t.Errorf("%s came after %s", facts.Token, last.Token)
		}
		last = facts
	}
}
