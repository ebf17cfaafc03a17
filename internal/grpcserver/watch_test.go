package grpcserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// often is a checkpoint interval for tests that wait until a stream has nothing to tell.
const often = 20 * time.Millisecond

// What ann and bob have on the web, as long as nothing changes.
const (
	annsTools = "now slides web_search.basic -web_search.pro:NOT_OFFERED"
	bobsTools = "now slides web_search.pro -web_search.basic:SHADOWED"
)

// start serves a database, or a fresh one with the company in it, as one of its nodes.
func start(t *testing.T, url string, o node.Options) (context.Context, client, *node.Node) {
	t.Helper()
	ctx := testkit.Context(t)
	fresh := url == ""
	if fresh {
		url = testkit.Database(t)
	}
	n := node.Start(t, url, o)
	c := clientOf(n.Conn, url)
	if fresh {
		c.apply(ctx, t, company)
		if err := n.Replica.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return ctx, c, n
}

type watching struct {
	stream grpc.ServerStreamingClient[v1.WatchToolsResponse]
}

func (c client) watch(ctx context.Context, t *testing.T, r *v1.WatchToolsRequest) watching {
	t.Helper()
	if r.Surface == nil {
		r.Surface = web
	}
	stream, err := c.WatchTools(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return watching{stream}
}

// expect reads what is told next.
func (w watching) expect(t *testing.T, want string) *v1.WatchToolsResponse {
	t.Helper()
	for {
		r, err := w.stream.Recv()
		if err != nil {
			t.Fatalf("the stream ended with %v; want %q", err, want)
		}
		if r.GetCheckpoint() {
			continue
		}
		if got := summary(r); got != want || r.GetRevision() == "" {
			t.Fatalf("told %q, complete through %q; want %q", got, r.GetRevision(), want)
		}
		return r
	}
}

// quiet reads checkpoints until one includes a revision. Nothing else may come.
func (w watching) quiet(t *testing.T, token string) {
	t.Helper()
	for {
		r, err := w.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(r, &v1.WatchToolsResponse{Checkpoint: true, Revision: r.GetRevision()}) {
			t.Fatalf("told %v, want checkpoints", r)
		}
		if includes(t, r.GetRevision(), token) {
			return
		}
	}
}

// ended reads how the stream ends.
func (w watching) ended(t *testing.T, code codes.Code, reason string, fields ...string) {
	t.Helper()
	for {
		if _, err := w.stream.Recv(); err != nil {
			expect(t, err, code, reason, fields...)
			return
		}
	}
}

// includes tells whether one revision is at least as fresh as another.
func includes(t *testing.T, later, earlier string) bool {
	t.Helper()
	r, err := revision.Parse(later)
	if err != nil {
		t.Fatal(err)
	}
	return revision.Require(earlier, r) == nil
}

func atLeast(token string) *v1.Consistency {
	return &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: token}}
}

func (c client) set(ctx context.Context, t *testing.T, chat, request string, change *v1.ToolChange, turn int32) {
	t.Helper()
	if _, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: chat, RequestId: request, Turn: proto.Int32(turn),
		Changes: []*v1.ToolChange{change}}); err != nil {
		t.Fatal(err)
	}
}

func TestAWatcherIsToldWhateverTheCause(t *testing.T) {
	ctx, c := setup(t)
	onPhone := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "c", UserId: "ann", Surface: on("ann-phone")})
	if first := onPhone.expect(t, annsTools); !first.GetNewChat() {
		t.Errorf("the chat is not told to be new: %v", first)
	}
	c.create(ctx, t, "c", "ann")
	if first := onPhone.expect(t, annsTools); first.GetNewChat() {
		t.Errorf("the chat is told to be new: %v", first)
	}

	// Its log, and a TTL that runs out by a turn that another client passes.
	c.set(ctx, t, "c", "on", &v1.ToolChange{ToolId: "ann.notes", Action: v1.ChatAction_CHAT_ACTION_ENABLE, TtlTurns: proto.Int32(2)}, 3)
	onPhone.expect(t, "now ann.notes slides web_search.basic -web_search.pro:NOT_OFFERED")
	onWeb := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "c", UserId: "ann"})
	onWeb.expect(t, "now ann.notes slides web_search.basic -web_search.pro:NOT_OFFERED")
	if _, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Turn: proto.Int32(5)}); err != nil {
		t.Fatal(err)
	}
	onWeb.expect(t, annsTools)
	onPhone.expect(t, annsTools)

	// The device becomes another.
	c.apply(ctx, t, `users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: speaker}, {device_id: ann-speaker, device_type_id: speaker}]}]`)
	onPhone.expect(t, "now web_search.basic -slides:MISSING_CAPABILITY -web_search.pro:NOT_OFFERED")
	// The catalogue.
	c.apply(ctx, t, `device_types: [{device_type_id: speaker, capabilities: [display], tool_ids: [now, web_search.basic, web_search.pro, slides]}]`)
	onPhone.expect(t, "now slides web_search.pro -web_search.basic:SHADOWED")
	// An Avatar.
	c.apply(ctx, t, `avatars: [{avatar_id: helper, tool_ids: [slides]}]`)
	onPhone.expect(t, "now slides")
	// The device becomes another user's.
	c.apply(ctx, t, `users: [{user_id: ann}, {user_id: bob, devices: [{device_id: ann-phone, device_type_id: phone}]}]`)
	onPhone.ended(t, codes.PermissionDenied, "ERROR_REASON_DEVICE_OF_ANOTHER_USER")
	if _, err := c.EndChat(ctx, &v1.EndChatRequest{ChatId: "c", RequestId: "end"}); err != nil {
		t.Fatal(err)
	}
	onWeb.ended(t, codes.FailedPrecondition, "ERROR_REASON_CHAT_ENDED")
}

func TestAMembershipStartsAndExpiresWithoutAWrite(t *testing.T) {
	begin := time.Now().UTC().Truncate(time.Microsecond)
	var clock atomic.Pointer[time.Time]
	clock.Store(&begin)
	const step = 100 * time.Millisecond
	ctx, c, _ := start(t, "", node.Options{Now: func() time.Time { return *clock.Load() }})
	starts, expires := begin.Add(step), begin.Add(2*step)
	c.apply(ctx, t, fmt.Sprintf("users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: premium, start_time: %q, expire_time: %q}]}]",
		starts.Format(time.RFC3339Nano), expires.Format(time.RFC3339Nano)))
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "ann"})
	w.expect(t, annsTools)
	clock.Store(&starts)
	w.expect(t, bobsTools)
	clock.Store(&expires)
	w.expect(t, annsTools)
}

func TestWhatDoesNotMatterIsNotTold(t *testing.T) {
	ctx, c, _ := start(t, "", node.Options{CheckpointInterval: often})
	c.apply(ctx, t, `tools: [{tool_id: web_search.basic, tool_type_id: search, name: web_search, config: {depth: 1}}]
tool_types: [{tool_type_id: slides, source: TOOL_SOURCE_NATIVE, input_schema: {type: object, title: a, description: b, properties: {a: {}, b: {}, c: {}, d: {}}}}]`)
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "ann", View: v1.ToolView_TOOL_VIEW_FULL})
	first := w.expect(t, annsTools)
	w.quiet(t, first.GetRevision())
	for i := range 10 { // of the catalogue and of the user, but nothing that the answer holds
		w.quiet(t, c.apply(ctx, t, fmt.Sprintf(`{tools: [{tool_id: spare, tool_type_id: clock, name: "spare%d"}],
users: [{user_id: ann, devices: [{device_id: "d%d", device_type_id: speaker}]}, {user_id: bob}]}`, i, i)).GetRevision())
	}
}

func TestChangesThatNobodyWasToldAreOne(t *testing.T) {
	ctx, c, n := start(t, "", node.Options{Forgetful: true, MaxStaleness: time.Hour})
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob"})
	w.expect(t, bobsTools)
	for _, tools := range []string{"", "slides", "web_search.basic", "slides, web_search.basic"} {
		c.apply(ctx, t, "avatars: [{avatar_id: helper, tool_ids: ["+tools+"]}]")
	}
	if err := n.Replica.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "now slides web_search.basic")
}

func TestAWatcherResumesOnAnotherNode(t *testing.T) {
	ctx, c, _ := start(t, "", node.Options{})
	_, behind, _ := start(t, c.url, node.Options{Forgetful: true, MaxStaleness: time.Hour, CheckpointInterval: often})
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob"})
	w.expect(t, bobsTools)
	behind.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob"}).expect(t, bobsTools)

	c.apply(ctx, t, "avatars: [{avatar_id: helper, tool_ids: [slides]}]")
	last := w.expect(t, "now slides").GetRevision()
	resumed := behind.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob", Consistency: atLeast(last)})
	if told := resumed.expect(t, "now slides").GetRevision(); !includes(t, told, last) {
		t.Errorf("resumed at %s, older than %s", told, last)
	}
	resumed.quiet(t, last)
}

// An answer from the database can be newer than the memory: what follows must not be older.
func TestNothingOlderFollowsAFullyConsistentStart(t *testing.T) {
	ctx, c, _ := start(t, "", node.Options{Forgetful: true, MaxStaleness: time.Hour, CheckpointInterval: often})
	c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob"}).expect(t, bobsTools) // held in memory from here on
	c.apply(ctx, t, "avatars: [{avatar_id: helper, tool_ids: [slides]}]")
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob",
		Consistency: &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}}})
	first := w.expect(t, "now slides")
	w.quiet(t, first.GetRevision())
}

func TestAWatchIsRefusedAsAQuestionIs(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "bobs", "bob")
	for _, test := range []struct {
		request *v1.WatchToolsRequest
		code    codes.Code
		reason  string
		fields  []string
	}{
		{&v1.WatchToolsRequest{}, codes.InvalidArgument, "INVALID_REQUEST", []string{"chat_id", "user_id", "surface"}},
		{&v1.WatchToolsRequest{ChatId: "c", UserId: "no blanks", Surface: web, View: 9}, codes.InvalidArgument, "INVALID_REQUEST", []string{"user_id", "view"}},
		{&v1.WatchToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Consistency: atLeast("x")}, codes.InvalidArgument, "INVALID_REQUEST", []string{"consistency.at_least_as_fresh"}},
		{&v1.WatchToolsRequest{ChatId: "c", UserId: "nobody", Surface: web}, codes.NotFound, "NOT_FOUND", nil},
		{&v1.WatchToolsRequest{ChatId: "c", UserId: "ann", Surface: on("nothing")}, codes.NotFound, "NOT_FOUND", nil},
		{&v1.WatchToolsRequest{ChatId: "c", UserId: "ann", Surface: on("bob-phone")}, codes.PermissionDenied, "DEVICE_OF_ANOTHER_USER", nil},
		{&v1.WatchToolsRequest{ChatId: "bobs", UserId: "ann", Surface: web}, codes.PermissionDenied, "CHAT_OF_ANOTHER_USER", nil},
	} {
		stream, err := c.WatchTools(ctx, test.request)
		if err != nil {
			t.Fatal(err)
		}
		watching{stream}.ended(t, test.code, "ERROR_REASON_"+test.reason, test.fields...)
	}
}

func TestAWatchEndsWithItsUser(t *testing.T) {
	ctx, c := setup(t)
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "new", UserId: "bob"})
	w.expect(t, bobsTools)
	if _, err := c.DeleteUser(ctx, &v1.DeleteUserRequest{UserId: "bob"}); err != nil {
		t.Fatal(err)
	}
	w.ended(t, codes.NotFound, "ERROR_REASON_NOT_FOUND")
}

func TestASlowReaderGetsTheNewestStateAndSlowsNobody(t *testing.T) {
	ctx, c := setup(t)
	conn, err := grpc.NewClient(c.conn.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16)) // fixed: what the client takes in unread
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := &v1.WatchToolsRequest{ChatId: "new", UserId: "ann", Surface: web}
	slow := clientOf(conn, c.url).watch(ctx, t, request)
	if _, err := slow.stream.Header(); err != nil { // it is open
		t.Fatal(err)
	}
	fast := c.watch(ctx, t, request)
	describes := func(r *v1.WatchToolsResponse, n int) bool {
		return strings.HasPrefix(r.GetTools()[1].GetDescription(), fmt.Sprint(n, " "))
	}
	fast.expect(t, annsTools)
	const changes, few = 40, 10
	for n := range changes {
		c.apply(ctx, t, fmt.Sprintf("tools: [{tool_id: slides, tool_type_id: slides, name: slides, required_capabilities: [display], description: %q}]",
			fmt.Sprint(n, " ", strings.Repeat("x", 60_000))))
		for !describes(fast.expect(t, annsTools), n) {
		}
	}
	read := 1
	for ; !describes(slow.expect(t, annsTools), changes-1); read++ {
	}
	if read > few {
		t.Errorf("%d messages waited for a reader who was away for %d changes", read, changes)
	}
}

// broken is a source that can be switched off.
type broken struct {
	replica.Source
	off   atomic.Bool
	asked atomic.Int32 // while off
}

var errOff = &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonDatabaseUnavailable, Message: "switched off", Cause: errors.New("by the test")}

func (b *broken) failure() error {
	if !b.off.Load() {
		return nil
	}
	b.asked.Add(1)
	return errOff
}

// UserAndChat implements replica.Source.
func (b *broken) UserAndChat(ctx context.Context, user id.User, chat id.Chat, atLeast revision.Revision) (*availability.User, *enable.Chat, int64, error) {
	if err := b.failure(); err != nil {
		return nil, nil, 0, err
	}
	return b.Source.UserAndChat(ctx, user, chat, atLeast)
}

// restored is a source that can go back in time.
type restored struct {
	replica.Source
	back atomic.Bool
}

// Changes implements replica.Source.
func (r *restored) Changes(ctx context.Context, since revision.Revision) (replica.Delta, error) {
	d, err := r.Source.Changes(ctx, since)
	if r.back.Load() {
		d.Revision, d.Lost = revision.Revision{Database: d.Revision.Database, Xmin: 3, Xmax: 3}, true
	}
	return d, err
}

func TestAWatchEndsWhenTheDatabaseGoesBackInTime(t *testing.T) {
	source := &restored{}
	ctx, c, n := start(t, "", node.Options{Source: func(s *postgres.Store) replica.Source { source.Source = s; return source }})
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "c", UserId: "ann"})
	w.expect(t, annsTools)
	source.back.Store(true)
	if err := n.Replica.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	w.ended(t, codes.OutOfRange, "ERROR_REASON_REVISION_FROM_THE_FUTURE")
}

func TestAnOutageIsSatOut(t *testing.T) {
	source := &broken{}
	begin := time.Now().UTC().Truncate(time.Microsecond)
	var clock atomic.Pointer[time.Time]
	clock.Store(&begin)
	ctx, c, n := start(t, "", node.Options{Now: func() time.Time { return *clock.Load() },
		Source: func(s *postgres.Store) replica.Source { source.Source = s; return source }})
	expires := begin.Add(100 * time.Millisecond)
	c.apply(ctx, t, fmt.Sprintf("users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: premium, expire_time: %q}]}]", expires.Format(time.RFC3339Nano)))
	w := c.watch(ctx, t, &v1.WatchToolsRequest{ChatId: "c", UserId: "ann"})
	w.expect(t, bobsTools)

	// The change is known, but what it is cannot be read; and then time changes the answer as well.
	source.off.Store(true)
	c.apply(ctx, t, "users: [{user_id: ann, devices: [{device_id: ann-speaker, device_type_id: speaker}]}]")
	clock.Store(&expires)
	until := time.Now().Add(3 * time.Second)
	for time.Now().Before(until) {
		if err := n.Replica.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if asked := source.asked.Load(); asked == 0 || asked > 20 {
		t.Errorf("the database was asked %d times while it was away", asked)
	}
	source.off.Store(false)
	w.expect(t, annsTools) // nobody writes any more: it must look again by itself
}
