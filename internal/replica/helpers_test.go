package replica_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// tap stands between a replica and its store: it counts, and can hold answers back.
type tap struct {
	*postgres.Store
	loads       atomic.Int64
	beforePoll  atomic.Pointer[func(context.Context) error]
	beforeLoad  atomic.Pointer[func(context.Context) error]
	beforeReply atomic.Pointer[func()] // when a load was read, but not returned yet
}

func call(hook *atomic.Pointer[func(context.Context) error], ctx context.Context) error {
	if do := hook.Load(); do != nil {
		return (*do)(ctx)
	}
	return nil
}

func (s *tap) Changes(ctx context.Context, since revision.Revision) (replica.Delta, error) {
	if err := call(&s.beforePoll, ctx); err != nil {
		return replica.Delta{}, err
	}
	return s.Store.Changes(ctx, since)
}

func (s *tap) UserAndChat(ctx context.Context, user id.User, chat id.Chat, atLeast revision.Revision) (*availability.User, *enable.Chat, int64, error) {
	s.loads.Add(1)
	if err := call(&s.beforeLoad, ctx); err != nil {
		return nil, nil, 0, err
	}
	u, c, version, err := s.Store.UserAndChat(ctx, user, chat, atLeast)
	if do := s.beforeReply.Load(); do != nil {
		(*do)()
	}
	return u, c, version, err
}

// member is a store with a replica.
type member struct {
	*replica.Replica
	store *postgres.Store
	tap   *tap
}

// join follows a database until the test ends. Nobody wakes the replica.
func join(t testing.TB, url string, change func(*replica.Options), options ...postgres.Option) *member {
	t.Helper()
	ctx := testkit.Context(t)
	store, err := postgres.Open(ctx, url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	m := &member{store: store, tap: &tap{Store: store}}
	o := replica.Options{Source: m.tap, Logger: slog.New(slog.DiscardHandler), MaxStaleness: time.Hour, CacheBytes: 16 << 20, Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	if m.Replica, err = replica.New(ctx, o); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { m.Run(running) })
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	return m
}

func (m *member) edit(ctx context.Context, t testing.TB, part admin.Manifest) revision.Revision {
	t.Helper()
	_, r, err := m.store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) { return admin.Edit{Manifest: part}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var requests atomic.Int64

// append writes entries to a chat; meanwhile is called while the transaction is open.
func (m *member) append(ctx context.Context, chat id.Chat, meanwhile func(), entries ...enable.Entry) (string, error) {
	request := enable.Request{ID: fmt.Sprint("request-", requests.Add(1)), Fingerprint: []byte("x")}
	result, err := m.store.ChangeChat(ctx, chat, nil, request, func(*enable.Chat, *effective.World) ([]enable.Entry, error) {
		if meanwhile != nil {
			meanwhile()
		}
		return entries, nil
	})
	return result.Revision, err
}

// answer words what a replica answers.
func (m *member) answer(ctx context.Context, t testing.TB, chat id.Chat, user id.User, c replica.Consistency) string {
	t.Helper()
	facts, err := m.Facts(ctx, chat, user, availability.Web, c)
	if err != nil {
		t.Fatal(err)
	}
	return words(&facts)
}

func words(facts *replica.Facts) string {
	q, _, err := facts.Ask(availability.Web, nil, time.Now())
	if err != nil {
		return err.Error()
	}
	answer := facts.World.Resolve(q)
	text := ""
	for n := range answer.Effective.EachSet() {
		tool := facts.World.Catalog.Tool(n)
		text += string(tool.ID) + "=" + tool.Title + " "
	}
	for w := range answer.Withheld() {
		text += "-" + string(w.Tool) + ":" + string(w.Reason) + " "
	}
	return text
}

// small is a world of ten tools on one device type, two groups, two users with devices, and their chats c0 and c1.
func small(ctx context.Context, t testing.TB, m *member) {
	t.Helper()
	w := admin.Manifest{Users: []availability.User{
		{ID: "u0", Devices: []availability.Device{{ID: "d0", Type: "phone"}}},
		{ID: "u1", Devices: []availability.Device{{ID: "d1", Type: "phone"}}},
	}}
	w.ToolTypes = []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}
	phone := availability.DeviceType{ID: "phone"}
	avatar := enable.Avatar{ID: "avatar"}
	for i := range 10 {
		tool := titled(i, "first")
		w.Tools = append(w.Tools, tool)
		phone.Tools = append(phone.Tools, tool.ID)
		if i < 5 {
			avatar.Tools = append(avatar.Tools, tool.ID)
		}
	}
	w.DeviceTypes = []availability.DeviceType{phone}
	w.Groups = []availability.Group{{ID: "g0", Revokes: []id.Tool{"t0"}}, {ID: "g1", Priority: 1, Grants: []id.Tool{"t0"}, Revokes: []id.Tool{"t1"}}}
	w.Avatars = []enable.Avatar{avatar}
	w.DefaultAvatars = []enable.DefaultAvatar{{Avatar: "avatar"}}
	m.edit(ctx, t, w)
	for _, n := range []string{"0", "1"} {
		if _, err := m.store.CreateChat(ctx, id.Chat("c"+n), id.User("u"+n), availability.Web, enable.Request{ID: "create", Fingerprint: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

func titled(i int, title string) catalog.Tool {
	name := fmt.Sprint("t", i)
	return catalog.Tool{ID: id.Tool(name), Type: "type", Name: name, Title: title, Status: catalog.StatusActive, Risk: catalog.RiskLow}
}
