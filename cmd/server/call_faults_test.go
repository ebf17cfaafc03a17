package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// callWorld has a tool without rules, one whose calls are counted of each user, one of all users, and a risky one.
func callWorld() *v1.Manifest {
	tools := []string{"free", "counted", "common", "risky"}
	m := &v1.Manifest{
		ToolTypes:      []*v1.ToolType{{ToolTypeId: "type", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}},
		Tools:          []*v1.Tool{tool("free", ""), tool("counted", ""), tool("common", ""), tool("risky", "")},
		DeviceTypes:    []*v1.DeviceType{{DeviceTypeId: "phone", ToolIds: tools}},
		Avatars:        []*v1.Avatar{{AvatarId: "avatar", ToolIds: tools}},
		DefaultAvatars: []*v1.DefaultAvatar{{AvatarId: "avatar"}},
		Users:          []*v1.User{{UserId: "u", Devices: []*v1.Device{{DeviceId: "u-phone", DeviceTypeId: "phone"}}}},
	}
	m.Tools[1].Quotas = []*v1.Quota{{QuotaId: "calls", Scope: v1.QuotaScope_QUOTA_SCOPE_USER, Unit: v1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: 100,
		Window: &v1.QuotaWindow{Kind: &v1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Hour)}}}}
	m.Tools[2].Quotas = []*v1.Quota{{QuotaId: "all", Scope: v1.QuotaScope_QUOTA_SCOPE_SYSTEM, Unit: v1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: 100,
		Window: &v1.QuotaWindow{Kind: &v1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Hour)}}}}
	m.Tools[3].Risk = v1.ToolRisk_TOOL_RISK_HIGH
	return m
}

// callPair starts two servers, which know callWorld.
func callPair(ctx context.Context, t *testing.T, settings ...string) (servers [2]*child, clients [2]client) {
	t.Helper()
	for i := range servers {
		servers[i] = newChild(t, settings...)
		servers[i].start()
	}
	for i := range servers {
		servers[i].awaitReady()
		clients[i] = servers[i].connect()
	}
	if _, err := clients[0].ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: callWorld()}); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		await(t, "a server knows the world", func() bool {
			_, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "u", Surface: web})
			return err == nil
		})
	}
	return servers, clients
}

func authorize(ctx context.Context, c client, call, function string) (*v1.AuthorizeCallResponse, error) {
	return c.AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: call, ChatId: "c", UserId: "u", Surface: web, Function: function, Lease: durationpb.New(2 * time.Second)})
}

func allowed(ctx context.Context, t *testing.T, c client, call, function string) {
	t.Helper()
	p, err := authorize(ctx, c, call, function)
	if err != nil || p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
		t.Fatalf("%s of %s: %v, %v", call, function, p, err)
	}
}

func report(ctx context.Context, c client, call string, outcome v1.CallOutcome) (*v1.ReportCallResponse, error) {
	return c.ReportCall(ctx, &v1.ReportCallRequest{CallId: call, Outcome: outcome})
}

// usage is what was used and is held of the counted tool.
func usage(ctx context.Context, t *testing.T, c client) (used, held int64) {
	t.Helper()
	return usageOf(ctx, t, c, "counted")
}

func usageOf(ctx context.Context, t *testing.T, c client, tool string) (used, held int64) {
	t.Helper()
	p, err := c.GetQuotaUsage(ctx, &v1.GetQuotaUsageRequest{UserId: "u", ToolIds: []string{tool}})
	if err != nil {
		t.Fatal(err)
	}
	rule := p.GetTools()[0].GetRules()[0]
	return rule.GetUsed(), rule.GetHeld()
}

const succeeded = v1.CallOutcome_CALL_OUTCOME_SUCCESS

// A server is killed after it allowed calls and before they are reported. Whoever made them reports them to another
// one, or to the same one when it is back: each counts once. A call that nobody reports gives back what it held.
func TestAKilledServerLosesNoQuotaOfACall(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	redis := testkit.RedisServer(t)
	servers, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+redis.URL, "TOOLGRANT_QUOTA_TIMEOUT=2s")
	const calls = 10
	for i := range calls {
		allowed(ctx, t, c[0], fmt.Sprint("call-", i), "counted")
	}
	allowed(ctx, t, c[0], "abandoned", "counted")
	servers[0].kill()
	if used, held := usage(ctx, t, c[1]); used != 0 || held != calls+1 {
		t.Fatalf("%d used, %d held", used, held)
	}
	for i := range calls {
		p, err := report(ctx, c[1], fmt.Sprint("call-", i), succeeded)
		if err != nil || p.GetRepeatedReport() {
			t.Fatalf("%v, %v", p, err)
		}
	}
	servers[0].start()
	servers[0].awaitReady()
	c[0] = servers[0].connect()
	for i := range calls { // told again, to whom had forgotten
		p, err := report(ctx, c[0], fmt.Sprint("call-", i), succeeded)
		if err != nil || !p.GetRepeatedReport() {
			t.Fatalf("%v, %v", p, err)
		}
		if _, err := report(ctx, c[0], fmt.Sprint("call-", i), v1.CallOutcome_CALL_OUTCOME_CANCELLED); status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
	}
	await(t, "what was abandoned is given back", func() bool {
		used, held := usage(ctx, t, c[0])
		if used != calls {
			t.Fatalf("%d used", used)
		}
		return held == 0
	})

	// Without a quota the servers tell each other a moment later.
	allowed(ctx, t, c[0], "free", "free")
	if _, err := report(ctx, c[1], "free", succeeded); err != nil {
		t.Fatal(err)
	}
}

// While Redis is away, calls without rules go on; those that are counted are refused by their rule, which says so; and
// what was reserved before is settled when Redis is back.
func TestCallsWithoutRedis(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	redis := testkit.RedisServer(t, "--appendonly", "yes", "--appendfsync", "always")
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+redis.URL)
	allowed(ctx, t, c[0], "before", "counted")
	redis.Kill()
	allowed(ctx, t, c[0], "free", "free")
	if p, err := report(ctx, c[0], "free", succeeded); err != nil || p.GetRepeatedReport() {
		t.Fatalf("%v, %v", p, err)
	}
	if p, err := report(ctx, c[0], "free", succeeded); err != nil || !p.GetRepeatedReport() {
		t.Fatalf("%v, %v", p, err)
	}
	if _, err := report(ctx, c[0], "free", v1.CallOutcome_CALL_OUTCOME_ERROR); status.Code(err) != codes.FailedPrecondition {
		t.Fatal(err)
	}
	p, err := authorize(ctx, c[0], "counted", "counted")
	if err != nil || p.GetReason() != v1.CallReason_CALL_REASON_QUOTA_UNAVAILABLE || p.GetNextStep().GetRetryAfter() == nil {
		t.Fatalf("%v, %v", p, err)
	}
	for _, of := range []struct {
		c    client
		call string
	}{{c[0], "before"}, {c[1], "before"}, {c[1], "free"}, {c[1], "never"}} {
		if _, err := report(ctx, of.c, of.call, succeeded); status.Code(err) != codes.Unavailable {
			t.Fatalf("%s: %v", of.call, err)
		}
	}
	allowed(ctx, t, c[0], "waits", "free")
	redis.Start()
	await(t, "what was reserved before is settled", func() bool {
		_, err := report(ctx, c[1], "before", succeeded)
		return err == nil
	})
	await(t, "the other server hears of the call", func() bool {
		_, err := report(ctx, c[1], "waits", succeeded)
		return err == nil
	})
	if used, held := usage(ctx, t, c[0]); used != 1 || held != 0 {
		t.Fatalf("%d used, %d held", used, held)
	}
	await(t, "counted calls are allowed again", func() bool {
		p, err := authorize(ctx, c[0], "counted", "counted")
		return err == nil && p.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW
	})
}

// While PostgreSQL is away nobody is told what may be outdated, but what was allowed can be reported; and how it went
// is written down when PostgreSQL is back.
func TestCallsWithoutPostgres(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	redis, url := testkit.RedisServer(t), testkit.Database(t)
	relay, through := newRelay(t, url)
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+through, "TOOLGRANT_REDIS_URL="+redis.URL, "TOOLGRANT_QUOTA_TIMEOUT=2s")
	allowed(ctx, t, c[0], "free", "free")
	allowed(ctx, t, c[0], "counted", "counted")
	asked, err := authorize(ctx, c[0], "risky", "risky")
	if err != nil || asked.GetReason() != v1.CallReason_CALL_REASON_APPROVAL_REQUIRED {
		t.Fatalf("%v, %v", asked, err)
	}
	relay.silent.Store(true)
	relay.cut()
	await(t, "what may be outdated is not answered", func() bool {
		_, err := authorize(ctx, c[0], "late", "free")
		return status.Code(err) == codes.Unavailable
	})
	if _, err := authorize(ctx, c[0], "risky", "risky"); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	for _, call := range []string{"free", "counted"} {
		if _, err := report(ctx, c[1], call, succeeded); err != nil {
			t.Fatal(err)
		}
	}
	relay.speak()
	await(t, "calls are allowed again", func() bool {
		p, err := authorize(ctx, c[0], "later", "free")
		return err == nil && p.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW
	})
	if again, err := authorize(ctx, c[1], "risky", "risky"); err != nil || again.GetApprovalId() != asked.GetApprovalId() {
		t.Fatalf("%v, %v", again, err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	await(t, "it is written down how the calls went", func() bool {
		var calls []string
		if err := conn.QueryRow(ctx, "SELECT coalesce(array_agg(call_id ORDER BY call_id), '{}') FROM call_outcomes").Scan(&calls); err != nil {
			t.Fatal(err)
		}
		return strings.Join(calls, " ") == "counted free"
	})
}
