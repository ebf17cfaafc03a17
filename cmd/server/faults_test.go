package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	server := newChild(t, "TOOLGRANT_DATA_DIR="+newDataDir(t))
	server.start()
	server.awaitReady()
	w := newWorkload(ctx, t, server.connect())
	for range 3 {
		stop := w.start(ctx, serverAway, server.connect())
		w.awaitWrites(20)
		server.kill()
		stop()

		server.start()
		time.Sleep(rand.N(500 * time.Millisecond))
		server.kill() // while it starts, or just after
		server.start()
		server.awaitReady()
		w.check(ctx, server.connect())
		w.repeat(ctx, server.connect())
	}
	w.report()
}

func TestNothingAcknowledgedIsLostWhenPostgresIsKilled(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	dir := newDataDir(t)
	server := newChild(t, "TOOLGRANT_DATA_DIR="+dir)
	server.start()
	server.awaitReady()
	c := server.connect()
	w := newWorkload(ctx, t, c)
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "quiet", UserId: "u", Surface: web, RequestId: "create"}); err != nil {
		t.Fatal(err)
	}
	quiet, err := resolve(ctx, c, "quiet")
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		stop := w.start(ctx, databaseAway, c)
		w.awaitWrites(20)
		failed := w.failed.Load()
		refused := false
		await(t, "it says that PostgreSQL is away", func() bool {
			killPostgres(t, dir, server.process.Process.Pid)
			answer, err := resolve(ctx, c, "quiet")
			switch {
			case err == nil:
				answer.Revision = quiet.Revision
				if !proto.Equal(answer, quiet) {
					t.Fatalf("a wrong answer: %v, not %v", answer, quiet)
				}
			case databaseAway(err):
				refused = true
			default:
				t.Fatalf("a read failed: %v", err)
			}
			return refused && w.failed.Load() > failed && server.saysNotReady(ctx, c)
		})
		await(t, "it says that PostgreSQL is back", func() bool { return server.saysReady(ctx, c) })
		w.awaitWrites(20)
		stop()
		w.check(ctx, c)
		w.repeat(ctx, c)
	}
	w.report()
}

func TestTwoServersStartedTogetherServeAsOne(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	url := testkit.EmptyDatabase(t)
	servers := []*child{newChild(t, "TOOLGRANT_DATABASE_URL="+url), newChild(t, "TOOLGRANT_DATABASE_URL="+url)}
	var clients []client
	for _, server := range servers {
		server.start()
	}
	for _, server := range servers {
		server.awaitReady()
		clients = append(clients, server.connect())
	}
	w := newWorkload(ctx, t, clients[0])
	stop := w.start(ctx, nothing, clients...)
	w.awaitWrites(50)

	// The same request, at both at once: one write, one answer.
	both(t, clients, func(c client) (*v1.CreateChatResponse, error) {
		return c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "twin", UserId: "u", Surface: web, RequestId: "create"})
	})
	const twins = 20
	for i := range twins {
		both(t, clients, func(c client) (*v1.SetChatToolsResponse, error) {
			return c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "twin", RequestId: fmt.Sprint("twin-", i),
				Changes: []*v1.ToolChange{{ToolId: "t5", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}})
		})
	}
	if got := len(w.log(ctx, clients[0], "twin")); got != 1+twins {
		t.Errorf("%d entries of %d requests made twice", got, 1+twins)
	}

	// What one was told of the catalogue, the other answers with.
	for i := range 20 {
		title := fmt.Sprint("title ", i)
		applied, err := clients[i%2].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{Tools: []*v1.Tool{tool("t5", title)}}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := clients[(i+1)%2].ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "twin", UserId: "u", Surface: web,
			Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: applied.GetRevision()}}})
		if err != nil {
			t.Fatal(err)
		}
		if tools := answer.GetTools(); len(tools) != 3 || tools[2].GetTitle() != title {
			t.Errorf("after %q on one, the other answers %v", title, tools)
		}
	}
	stop()

	for _, c := range clients {
		w.check(ctx, c)
	}
	for i := range chats {
		both(t, clients, func(c client) (*v1.ResolveToolsResponse, error) {
			answer, err := resolve(ctx, c, fmt.Sprint("c", i))
			answer.Revision = "" // others may be writing to this PostgreSQL
			return answer, err
		})
	}

	// One dies at work; the other goes on, and both are one again.
	stop = w.start(ctx, serverAway, clients...)
	w.awaitWrites(20)
	servers[0].kill()
	w.awaitWrites(20)
	stop()
	w.check(ctx, clients[1])
	w.repeat(ctx, clients[1])
	servers[0].start()
	servers[0].awaitReady()
	w.check(ctx, servers[0].connect())
	w.report()
}

// both makes the same request to all servers at once; the answers must be equal.
func both[Response proto.Message](t *testing.T, clients []client, call func(client) (Response, error)) {
	t.Helper()
	answers := make([]Response, len(clients))
	var calls sync.WaitGroup
	for i, c := range clients {
		calls.Go(func() {
			var err error
			if answers[i], err = call(c); err != nil {
				t.Errorf("server %d: %v", i, err)
			}
		})
	}
	calls.Wait()
	if !proto.Equal(answers[0], answers[1]) {
		t.Errorf("two answers: %v and %v", answers[0], answers[1])
	}
}
