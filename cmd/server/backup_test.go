package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// shell runs one of PostgreSQL's tools.
func shell(ctx context.Context, t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// chatLog is a chat's whole log.
func chatLog(ctx context.Context, t *testing.T, c client, chat string) *v1.ListChatLogResponse {
	t.Helper()
	log, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: chat, PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	log.Revision = ""
	return log
}

func refusedAs(err error, code codes.Code, reason v1.ErrorReason) bool {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == reason.String() {
			return status.Code(err) == code
		}
	}
	return false
}

// A database is dumped while it is written to, and restored into another one. What a client was handed by the server of
// the old one is honoured or refused as docs/operations.md says.
func TestABackupIsRestoredIntoANewServer(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	url, restored := testkit.Database(t), testkit.EmptyDatabase(t)
	redis := "TOOLGRANT_REDIS_URL=" + testkit.RedisServer(t).URL
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url, redis)
	server.start()
	server.awaitReady()
	c := server.connect()
	w := newWorkload(ctx, t, c)
	stop := w.start(ctx, nothing, c)
	w.awaitWrites(50)
	dump := filepath.Join(t.TempDir(), "toolgrant.dump")
	shell(ctx, t, "pg_dump", "--format=custom", "--file="+dump, "--dbname="+url)
	w.awaitWrites(10)
	stop()
	answer, err := resolve(ctx, c, "c0")
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: "c0", PageSize: 2})
	if err != nil || page.GetNextPageToken() == "" {
		t.Fatal(page, err)
	}
	old := map[string]*v1.ListChatLogResponse{}
	for i := range chats {
		old[fmt.Sprint("c", i)] = chatLog(ctx, t, c, fmt.Sprint("c", i))
	}

	shell(ctx, t, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+restored, dump)
	if out, err := command(t, "doctor", "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--redis-url=", "--database-url="+restored); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	second := newChild(t, "TOOLGRANT_DATABASE_URL="+restored, redis)
	second.start()
	second.awaitReady()
	c = second.connect()
	for chat, before := range old {
		after := chatLog(ctx, t, c, chat)
		if len(after.GetEntries()) == 0 || len(after.GetEntries()) > len(before.GetEntries()) {
			t.Fatalf("chat %s: %d entries, %d when the backup was over", chat, len(after.GetEntries()), len(before.GetEntries()))
		}
		for i, e := range after.GetEntries() {
			if !proto.Equal(e, before.GetEntries()[i]) {
				t.Fatalf("chat %s, entry %d: %v, was %v", chat, i+1, e, before.GetEntries()[i])
			}
		}
	}
	_, err = c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c0", UserId: "u", Surface: web,
		Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: answer.GetRevision()}}})
	if !refusedAs(err, codes.FailedPrecondition, v1.ErrorReason_ERROR_REASON_REVISION_OF_ANOTHER_DATABASE) {
		t.Errorf("a revision of the old database: %v", err)
	}
	rest, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: "c0", PageSize: 2, PageToken: page.GetNextPageToken()})
	if err != nil || len(rest.GetEntries()) == 0 || !proto.Equal(rest.GetEntries()[0], old["c0"].GetEntries()[2]) {
		t.Errorf("a page token of the old one: %v, %v", rest, err)
	}
	// Requests are known as far as the backup knows them, and all may be repeated: then nothing is missing.
	for _, writer := range w.chats {
		for _, a := range writer.attempts {
			again, err := c.SetChatTools(ctx, a.request)
			if err != nil || len(again.GetEntries()) != len(a.request.GetChanges()) {
				t.Fatalf("%v again: %v, %v", a.request, again, err)
			}
			a.acknowledged = again
		}
	}
	for _, writer := range w.catalogue {
		writer.acknowledged = 0 // some were lost, and manifests are not repeated
	}
	w.check(ctx, c)

	conn, err := pgx.Connect(ctx, restored)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range []string{"DELETE FROM chat_tool_log", "UPDATE audit_entries SET reason = ''", "TRUNCATE approval_decisions"} {
		if _, err := conn.Exec(ctx, statement); err == nil {
			t.Errorf("%s: the restored database lets it", statement)
		}
	}
}

// Restored in place, or copied on the same cluster, a database has another identity if it is made from a template.
func TestACopyFromATemplateHasAnIdentityOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	server := newChild(t, "TOOLGRANT_DATABASE_URL="+url)
	server.start()
	server.awaitReady()
	c := server.connect()
	written, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: world()})
	if err != nil {
		t.Fatal(err)
	}
	server.stop()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	for _, statement := range []string{"ALTER DATABASE " + name + " RENAME TO " + name + "_old", "CREATE DATABASE " + name + " TEMPLATE " + name + "_old"} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+"_old") })
	server.start()
	server.awaitReady()
	_, err = server.connect().ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "u", Surface: web,
		Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: written.GetRevision()}}})
	if !refusedAs(err, codes.FailedPrecondition, v1.ErrorReason_ERROR_REASON_REVISION_OF_ANOTHER_DATABASE) {
		t.Errorf("a revision of the database before: %v", err)
	}
}
