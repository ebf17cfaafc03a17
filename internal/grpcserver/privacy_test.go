package grpcserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// The user who is to be forgotten, by a name that stands nowhere else, and one who stays.
const forgotten, stays = "zoe-q7x", "bob"

// privacyWorld has something of everything for both.
func privacyWorld() *v1.Manifest {
	m := &v1.Manifest{
		ToolTypes:   []*v1.ToolType{{ToolTypeId: "t", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}},
		Tools:       []*v1.Tool{{ToolId: "shared", ToolTypeId: "t", Name: "shared"}},
		DeviceTypes: []*v1.DeviceType{{DeviceTypeId: "phone", ToolIds: []string{"shared"}}},
		Groups:      []*v1.Group{{GroupId: "g"}},
		Avatars:     []*v1.Avatar{{AvatarId: "a", ToolIds: []string{"shared"}}},
	}
	m.Tools[0].Quotas = []*v1.Quota{{QuotaId: "calls", Scope: v1.QuotaScope_QUOTA_SCOPE_USER, Unit: v1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: 100,
		Window: &v1.QuotaWindow{Kind: &v1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Hour)}}}}
	for _, user := range []string{forgotten, stays} {
		m.Tools = append(m.Tools, &v1.Tool{ToolId: user + "-own", ToolTypeId: "t", Name: "own", OwnerUserId: user, RelatedToolIds: []string{"shared"}})
		m.Avatars[0].ToolIds = append(m.Avatars[0].ToolIds, user+"-own")
		m.DefaultAvatars = append(m.DefaultAvatars, &v1.DefaultAvatar{AvatarId: "a", UserId: user})
		m.Users = append(m.Users, &v1.User{UserId: user, Devices: []*v1.Device{{DeviceId: user + "-phone", DeviceTypeId: "phone"}},
			Memberships: []*v1.Membership{{GroupId: "g"}}})
	}
	return m
}

// traces counts the rows of each table that name a user, in whatever column.
func traces(ctx context.Context, t *testing.T, conn *pgx.Conn, user string) map[string]int {
	t.Helper()
	rows, err := conn.Query(ctx, `SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, table := range tables {
		var n int
		if err := conn.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM %s AS row WHERE to_json(row)::text LIKE '%%' || $1 || '%%'`, pgx.Identifier{table}.Sanitize()), user).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found[table] = n
		}
	}
	return found
}

func TestAUserIsForgotten(t *testing.T) {
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	p := approversAt(t, url, node.Options{Learning: true})
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	admin, chats, quotas := v1.NewAdminServiceClient(p.Conn), v1.NewChatServiceClient(p.Conn), v1.NewQuotaServiceClient(p.Conn)
	privacy := v1.NewPrivacyServiceClient(p.Conn)
	apply := func() {
		t.Helper()
		if _, err := admin.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: privacyWorld()}); err != nil {
			t.Fatal(err)
		}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	used := func(user string) int64 {
		t.Helper()
		r, err := quotas.GetQuotaUsage(ctx, &v1.GetQuotaUsageRequest{UserId: user, ToolIds: []string{"shared"}})
		must(r, err)
		return r.GetTools()[0].GetRules()[0].GetUsed()
	}
	apply()
	for _, user := range []string{forgotten, stays} {
		for i := range 2 {
			chat := fmt.Sprint("chat-", i, "-of-", user)
			must(chats.CreateChat(ctx, &v1.CreateChatRequest{ChatId: chat, UserId: user, Surface: web, RequestId: "r"}))
			must(chats.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: chat, RequestId: "s",
				Changes: []*v1.ToolChange{{ToolId: "shared", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}}))
		}
		must(chats.EndChat(ctx, &v1.EndChatRequest{ChatId: "chat-0-of-" + user, RequestId: "e"}))
		name := p.ask(ctx, t, id.Call("call-of-"+user), id.User(user), time.Hour)
		must(p.DecideApproval(ctx, once(name)))
		must(quotas.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: "op-of-" + user, UserId: user, ToolId: "shared"}))
		must(quotas.SetQuotaOverride(ctx, &v1.SetQuotaOverrideRequest{UserId: user, QuotaId: "calls", Limit: new(int64(50)), ExpireTime: timestamppb.New(time.Now().Add(time.Hour))}))
		must(quotas.ResetQuotaUsage(ctx, &v1.ResetQuotaUsageRequest{RequestId: "reset-of-" + user, UserId: user, QuotaId: "calls", Reason: "test"}))
		must(quotas.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: "again-of-" + user, UserId: user, ToolId: "shared"}))
		telemetry(ctx, t, conn, user)
		must(conn.Exec(ctx, `INSERT INTO private_vectors (owner_user_id, tool_id, fingerprint, dimensions, vector, model)
			VALUES ($1, $1 || '-own', sha256($1::text::bytea), 1, '\x0000803f', 'm')`, user))
	}
	until(t, func() bool { // the server has written what it adds up in memory
		var calls int
		must(nil, conn.QueryRow(ctx, "SELECT coalesce(sum(calls), 0) FROM quota_history").Scan(&calls))
		return calls == 4
	})
	before := traces(ctx, t, conn, stays)

	dry, err := privacy.EraseUser(ctx, &v1.EraseUserRequest{UserId: forgotten, DryRun: true})
	must(dry, err)
	if n := traces(ctx, t, conn, forgotten); n["chats"] != 2 || n["users"] != 1 || n["call_outcomes"] != 1 || used(forgotten) != 1 {
		t.Fatalf("a dry run left %v", n)
	}
	done, err := privacy.EraseUser(metadata.AppendToOutgoingContext(as(ctx, "dpo"), "toolgrant-reason", "ticket 4711"), &v1.EraseUserRequest{UserId: forgotten})
	must(done, err)
	if fmt.Sprint(done.GetErased()) != fmt.Sprint(dry.GetErased()) {
		t.Errorf("%v was deleted, and said to be %v", done.GetErased(), dry.GetErased())
	}
	kinds := map[string]int64{}
	for _, e := range done.GetErased() {
		kinds[e.GetKind()] = e.GetCount()
	}
	for kind, want := range map[string]int64{"chats": 2, "approval_requests": 1, "approval_decisions": 1, "call_outcomes": 1, "searches": 1, "search_uses": 1,
		"private_vectors": 1, "quota_history": 1, "quota_overrides": 1, "quota_resets": 1, "tools": 1, "default_avatars": 1, "devices": 1, "memberships": 1, "users": 1} {
		if kinds[kind] != want {
			t.Errorf("%d of %s were deleted, not %d", kinds[kind], kind, want)
		}
	}
	telemetry(ctx, t, conn, forgotten) // by a server that was late
	must(nil, rootOf(p.Store.SweepErasures(ctx, time.Now().Add(time.Minute))))
	left := traces(ctx, t, conn, forgotten)
	delete(left, "audit_entries") // it keeps what it has
	delete(left, "changes")       // until changes_retention
	if len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	after := traces(ctx, t, conn, stays)
	for _, table := range []string{"chats", "chat_tool_log", "chat_avatar_log", "chat_requests", "users", "devices", "memberships", "tools", "avatar_tools",
		"approval_requests", "call_outcomes", "searches", "search_uses", "quota_history", "quota_overrides", "quota_resets", "default_avatars", "private_vectors"} {
		if after[table] != before[table] || before[table] == 0 {
			t.Errorf("%s: %d rows of another user, %d before", table, after[table], before[table])
		}
	}

	// The model is told at once; the audit log tells for good.
	_, err = v1.NewEntitlementServiceClient(p.Conn).ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "chat-1-of-" + forgotten, UserId: forgotten, Surface: web})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the user still resolves: %v", err)
	}
	entries, err := v1.NewAuditServiceClient(p.Conn).ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{UserId: forgotten, Action: v1.AuditAction_AUDIT_ACTION_ERASE})
	must(entries, err)
	if e := entries.GetEntries(); len(e) == 0 || e[len(e)-1].GetActor() != "claimed:dpo" || e[len(e)-1].GetReason() != "ticket 4711" || e[0].GetBefore() != nil {
		t.Errorf("audited as %v", e)
	}
	again, err := privacy.EraseUser(ctx, &v1.EraseUserRequest{UserId: forgotten})
	if err != nil || len(again.GetErased()) > 0 {
		t.Errorf("again: %v, %v", again, err)
	}
	if many, err := v1.NewAuditServiceClient(p.Conn).ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{UserId: forgotten, Action: v1.AuditAction_AUDIT_ACTION_ERASE}); err != nil || len(many.GetEntries()) != len(entries.GetEntries()) {
		t.Errorf("nothing was deleted, and it was audited: %v", err)
	}

	apply() // somebody of the same name begins anew
	if n := used(forgotten); n != 0 {
		t.Errorf("%d calls are remembered", n)
	}
	if n := used(stays); n != 1 {
		t.Errorf("another user used %d", n)
	}
	telemetry(ctx, t, conn, forgotten)
	must(nil, rootOf(p.Store.SweepErasures(ctx, time.Now().Add(time.Minute))))
	if n := traces(ctx, t, conn, forgotten); n["call_outcomes"] != 1 || n["users"] != 1 {
		t.Errorf("of whoever began anew there is %v", n)
	}
}

// telemetry writes what servers write in the background.
func telemetry(ctx context.Context, t *testing.T, conn *pgx.Conn, user string) {
	t.Helper()
	for _, statement := range strings.Split(`INSERT INTO call_outcomes (call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens, report_time)
			VALUES ('out-' || $1, 'chat-gone', $1, 'shared', 'shared', 'SUCCESS', 1, 1, now());
		INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time) VALUES ('chat-gone', $1, '{}', '{1}', '{shared}', now());
		INSERT INTO search_uses (call_id, search_id, user_id, group_ids, tool_id, private, features, report_time)
			VALUES ('out-' || $1, 1, $1, '{}', 'shared', false, '{1}', now())`, ";") {
		if _, err := conn.Exec(ctx, statement, user); err != nil {
			t.Fatal(err)
		}
	}
}

// rootOf says what is behind an error.
func rootOf(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}
