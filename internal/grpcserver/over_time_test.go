package grpcserver_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// What the case files cannot tell, since their worlds stand still.

func (c client) resolved(ctx context.Context, t *testing.T, chat, user string) string {
	t.Helper()
	r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: chat, UserId: user, Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	return summary(r)
}

func (c client) create(ctx context.Context, t *testing.T, chat, user string) {
	t.Helper()
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: chat, UserId: user, Surface: web, RequestId: "create"}); err != nil {
		t.Fatal(err)
	}
}

func TestALaterDefaultDoesNotChangeARunningConversation(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "running", "bob")
	const before, after = "now slides web_search.pro -web_search.basic:SHADOWED", "now slides"
	if got := c.resolved(ctx, t, "new", "bob"); got != before {
		t.Errorf("a new chat has %q, want %q", got, before)
	}
	c.apply(ctx, t, "{avatars: [{avatar_id: presenter, tool_ids: [slides]}], default_avatars: [{avatar_id: presenter}]}")
	if got := c.resolved(ctx, t, "running", "bob"); got != before {
		t.Errorf("the running chat has %q, want %q", got, before)
	}
	if got := c.resolved(ctx, t, "new", "bob"); got != after {
		t.Errorf("a new chat has %q, want %q", got, after)
	}
}

func TestADeletedAvatarStaysInTheChatWithoutEffect(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "c", "bob")
	c.apply(ctx, t, "avatars: [{avatar_id: presenter, tool_ids: [slides]}]")
	if _, err := c.SetChatAvatars(ctx, &v1.SetChatAvatarsRequest{ChatId: "c", RequestId: "on", Changes: []*v1.AvatarChange{
		{AvatarId: "presenter", Action: v1.ChatAction_CHAT_ACTION_ENABLE}, {AvatarId: "helper", Action: v1.ChatAction_CHAT_ACTION_DISABLE}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteAvatar(ctx, &v1.DeleteAvatarRequest{AvatarId: "presenter"}); err != nil {
		t.Fatal(err)
	}
	chat, err := c.GetChat(ctx, &v1.GetChatRequest{ChatId: "c"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "bob", Surface: web})
	if err != nil {
		t.Fatal(err)
	}
	if got := chat.GetChat().GetActiveAvatarIds(); len(got) != 1 || got[0] != "presenter" {
		t.Errorf("the chat says %v", got)
	}
	if got := resolved.GetActiveAvatarIds(); len(got) != 0 || summary(resolved) != "now" {
		t.Errorf("it resolves to %q with %v", summary(resolved), got)
	}
}

func TestEndingAnEndedChatWritesNothing(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "c", "bob")
	first, err := c.EndChat(ctx, &v1.EndChatRequest{ChatId: "c", RequestId: "end"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	written := func() (rows int) {
		t.Helper()
		if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM changes) + (SELECT count(*) FROM chat_requests)").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := written()
	again, err := c.EndChat(ctx, &v1.EndChatRequest{ChatId: "c", RequestId: "end-again"})
	if err != nil || !proto.Equal(again.GetChat(), first.GetChat()) || again.GetRevision() < first.GetRevision() {
		t.Errorf("got %v, %v; want %v", again, err, first)
	}
	if after := written(); after != before {
		t.Errorf("it wrote %d rows", after-before)
	}
	if repeated, err := c.EndChat(ctx, &v1.EndChatRequest{ChatId: "c", RequestId: "end"}); err != nil || !proto.Equal(repeated, first) {
		t.Errorf("got %v, %v; want %v", repeated, err, first)
	}
}

func TestAToolTurnedOffBeforeItBecameACoreToolIsOn(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "c", "bob")
	if _, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c", RequestId: "off",
		Changes: []*v1.ToolChange{{ToolId: "slides", Action: v1.ChatAction_CHAT_ACTION_DISABLE}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := c.resolved(ctx, t, "c", "bob"), "now web_search.pro -web_search.basic:SHADOWED"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.apply(ctx, t, "tools: [{tool_id: slides, tool_type_id: slides, name: slides, core: true}]")
	if got, want := c.resolved(ctx, t, "c", "bob"), "now slides web_search.pro -web_search.basic:SHADOWED"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestATurnIsStoredOnlyWhileATTLDependsOnIt(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "c", "ann")
	pass := func(turn, wantStored int32) {
		t.Helper()
		if _, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Turn: proto.Int32(turn)}); err != nil {
			t.Fatal(err)
		}
		r, err := c.GetChat(ctx, &v1.GetChatRequest{ChatId: "c"})
		if err != nil || r.GetChat().GetTurn() != wantStored {
			t.Errorf("after turn %d the chat is in turn %d (%v), want %d", turn, r.GetChat().GetTurn(), err, wantStored)
		}
	}
	pass(5, 0)
	if _, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c", RequestId: "on", Turn: proto.Int32(7),
		Changes: []*v1.ToolChange{{ToolId: "ann.notes", Action: v1.ChatAction_CHAT_ACTION_ENABLE, TtlTurns: proto.Int32(2)}}}); err != nil {
		t.Fatal(err)
	}
	pass(6, 7)
	pass(8, 8)
	pass(9, 9) // the enabling was live in turn 8: others must learn that it is dead
	pass(20, 9)
}
