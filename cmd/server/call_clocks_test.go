package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Limits of the rules in clockWorld, over an hour or a day.
const (
	clockLimit   = 5
	clockWindow  = time.Hour
	longestHour  = clockWindow + clockWindow/60 + time.Second // it is counted in sixtieths
	longestDay   = 24*time.Hour + time.Second
	clockYear    = 365 * 24 * time.Hour
	glassCooling = time.Minute
)

// clockWorld is callWorld with small limits, a tool whose calls are counted by the day, and one that breaks at once.
func clockWorld() *v1.Manifest {
	m := callWorld()
	m.Tools[1].Quotas[0].Limit, m.Tools[2].Quotas[0].Limit = clockLimit, clockLimit
	day := tool("daily", "")
	day.Quotas = []*v1.Quota{{QuotaId: "day", Scope: v1.QuotaScope_QUOTA_SCOPE_USER, Unit: v1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: clockLimit,
		Window: &v1.QuotaWindow{Kind: &v1.QuotaWindow_Calendar{Calendar: &v1.CalendarWindow{Period: v1.CalendarPeriod_CALENDAR_PERIOD_DAY}}}}}
	glass := tool("glass", "")
	glass.Health = &v1.HealthPolicy{FailThreshold: proto.Int32(1), CooldownMs: proto.Int32(int32(glassCooling / time.Millisecond))}
	m.Tools = append(m.Tools, day, glass)
	ids := append(m.Avatars[0].GetToolIds(), "daily", "glass")
	m.Avatars[0].ToolIds, m.DeviceTypes[0].ToolIds = ids, ids
	return m
}

// clocked are two servers, and what a test does with them.
type clocked struct {
	t      *testing.T
	ctx    context.Context
	c      [2]client
	number int // of calls
}

func newClocked(t *testing.T, database, redis string) *clocked {
	t.Helper()
	w := &clocked{t: t, ctx: testkit.Context(t)}
	_, w.c = callPair(w.ctx, t, "TOOLGRANT_DATABASE_URL="+database, "TOOLGRANT_REDIS_URL="+redis, "TOOLGRANT_QUOTA_TIMEOUT=2s")
	w.apply(clockWorld())
	return w
}

// apply returns when both servers know it.
func (w *clocked) apply(m *v1.Manifest) {
	w.t.Helper()
	done, err := w.c[0].ApplyManifest(w.ctx, &v1.ApplyManifestRequest{Manifest: m})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range w.c {
		if _, err := c.ResolveTools(w.ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "u", Surface: web,
			Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: done.GetRevision()}}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// request is that of a new call, which is held for half an hour.
func (w *clocked) request(function string) *v1.AuthorizeCallRequest {
	w.number++
	return &v1.AuthorizeCallRequest{CallId: fmt.Sprint(function, "-", w.number), ChatId: "c", UserId: "u", Surface: web, Function: function,
		Lease: durationpb.New(30 * time.Minute)}
}

func (w *clocked) ask(server int, r *v1.AuthorizeCallRequest) *v1.AuthorizeCallResponse {
	w.t.Helper()
	p, err := w.c[server].AuthorizeCall(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// admits makes calls, at both servers in turn, until they are refused, and wants so many. Whoever is refused is told to
// wait for some time, but for no longer than the rule's; and so is who only looks.
func (w *clocked) admits(when, function string, want int, longest time.Duration) {
	w.t.Helper()
	for n := 0; ; n++ {
		r := w.request(function)
		p := w.ask(n%2, r)
		if p.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW {
			if _, err := report(w.ctx, w.c[(n+1)%2], r.GetCallId(), succeeded); err != nil {
				w.t.Fatalf("%s: %s: %v", when, function, err)
			}
			continue
		}
		if n != want {
			w.t.Errorf("%s: %d calls of %s were admitted, want %d", when, n, function, want)
		}
		dry := w.request(function)
		dry.DryRun = true
		for _, refused := range []*v1.AuthorizeCallResponse{p, w.ask(0, dry)} {
			wait := refused.GetNextStep().GetRetryAfter()
			if refused.GetReason() != v1.CallReason_CALL_REASON_QUOTA_EXHAUSTED || wait.AsDuration() <= 0 || wait.AsDuration() > longest {
				w.t.Errorf("%s: %s is refused with %v, to be asked again after %v", when, function, refused.GetReason(), wait.AsDuration())
			}
		}
		return
	}
}

// exhausts makes all calls that the rules of an hour and of a day admit.
func (w *clocked) exhausts(when string, want int) {
	w.t.Helper()
	w.admits(when, "counted", want, longestHour)
	w.admits(when, "common", want, longestHour)
	w.admits(when, "daily", want, longestDay)
}

// Redis's clock jumps, by hours and by years, forward and back, between calls of two servers. Forward, what is used comes
// back by the difference. Back, nothing comes back, and nobody is locked out until a clock that was wrong is reached.
func TestRedissClockJumps(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(t)
	clock.Ahead(-clockYear - noonless())
	database, redis := testkit.Database(t), testkit.RedisServerBy(t, clock).URL
	w := newClocked(t, database, redis)
	at := -clockYear - noonless()
	jump := func(by time.Duration) {
		w.archived(database, redis) // jumps are rarer than that
		at += by
		clock.Ahead(at)
	}

	w.exhausts("at first", clockLimit)
	for _, by := range []time.Duration{49 * time.Hour, 10 * clockYear} {
		jump(by)
		w.exhausts(fmt.Sprint(by, " later"), clockLimit)
		jump(-by)
		w.exhausts(fmt.Sprint(by, " back"), 0)
	}
	jump(-40 * time.Minute)
	w.admits("forty minutes back", "counted", 0, longestHour+clockWindow)
	w.admits("forty minutes back", "common", 0, longestHour+clockWindow)
	w.admits("forty minutes back", "daily", 0, longestDay)
	jump(40 * time.Minute)
	w.exhausts("right again", 0)
	jump(72 * time.Hour)
	w.exhausts("three days later", clockLimit)
}

// archived returns when what Redis counts is in the archive.
func (w *clocked) archived(database, address string) {
	w.t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		w.t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	conn, err := pgx.Connect(w.ctx, database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	counters, err := client.Keys(w.ctx, "*:c:*").Result()
	if err != nil || len(counters) != 3 {
		w.t.Fatalf("%v, %v", counters, err)
	}
	await(w.t, "counters are archived", func() bool {
		for _, counter := range counters {
			version, err := client.HGet(w.ctx, counter, "v").Int64()
			if err != nil {
				w.t.Fatal(err)
			}
			known := false
			if err := conn.QueryRow(w.ctx, "SELECT EXISTS (SELECT FROM quota_counters WHERE version = $1)", version).Scan(&known); err != nil {
				w.t.Fatal(err)
			}
			if !known {
				return false
			}
		}
		return true
	})
}

// noonless is how long ago it was noon by UTC: what a test does in hours before and after noon stays in one day.
func noonless() time.Duration {
	now := time.Now().UTC()
	return now.Sub(now.Truncate(24*time.Hour)) - 12*time.Hour
}

// Redis's clock jumps while calls are under way. What is held is held by that clock, and whatever is reported is settled
// once, however often, and at whichever server.
func TestRedissClockJumpsDuringCalls(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(t)
	w := newClocked(t, testkit.Database(t), testkit.RedisServerBy(t, clock).URL)
	used := int64(0)
	want := func(when string, held int64) {
		t.Helper()
		for _, c := range w.c {
			if u, h := usage(w.ctx, t, c); u != used || h != held {
				t.Errorf("%s: %d used, %d held, want %d and %d", when, u, h, used, held)
			}
		}
	}
	settle := func(when, call string) {
		t.Helper()
		used++
		for i, c := range []client{w.c[1], w.c[0], w.c[1]} {
			if p, err := report(w.ctx, c, call, succeeded); err != nil || p.GetRepeatedReport() != (i > 0) {
				t.Errorf("%s: report %d: %v, %v", when, i, p, err)
			}
		}
		if _, err := report(w.ctx, w.c[0], call, v1.CallOutcome_CALL_OUTCOME_CANCELLED); reasonOf(err) != "CALL_REPORTED" {
			t.Errorf("%s: another report: %v", when, err)
		}
		want(when, 0)
	}
	for _, by := range []time.Duration{20 * time.Minute, -30 * time.Minute} { // the lease goes on
		r := w.request("counted")
		w.ask(0, r)
		clock.Ahead(by)
		want(fmt.Sprint(by, " later"), 1)
		w.ask(1, r)
		want("asked again", 1)
		settle(fmt.Sprint("reported ", by, " later"), r.GetCallId())
		clock.Ahead(0)
		want("right again", 0)
	}
	late := w.request("counted")
	w.ask(0, late)
	clock.Ahead(40 * time.Minute) // it runs out, and what is reported counts still
	want("the lease has run out", 0)
	settle("reported late", late.GetCallId())
	clock.Ahead(0)
	want("right again", 0)
	ahead := w.request("counted")
	clock.Ahead(clockYear)
	w.ask(0, ahead)
	used = 0 // a year ago
	want("a year later", 1)
	clock.Ahead(0)
	want("a year back", 1)
	settle("reported a year before it was made", ahead.GetCallId())
}

// Redis's clock jumps while a tool is put aside. It is tried again when its cool-down is over by that clock, and not
// half a day late because the clock was so far ahead when it failed.
func TestRedissClockJumpsWhileAToolIsAside(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(t)
	w := newClocked(t, testkit.Database(t), testkit.RedisServerBy(t, clock).URL)
	fail := func() {
		t.Helper()
		r := w.request("glass")
		await(t, "a probe goes through", func() bool { return w.ask(0, r).GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW })
		if _, err := report(w.ctx, w.c[0], r.GetCallId(), v1.CallOutcome_CALL_OUTCOME_TIMEOUT); err != nil {
			t.Fatal(err)
		}
		for i := range w.c {
			await(t, fmt.Sprint("server ", i, " knows that it is down"), func() bool {
				dry := w.request("glass")
				dry.DryRun = true
				p := w.ask(i, dry)
				wait := p.GetNextStep().GetRetryAfter().AsDuration()
				if p.GetReason() == v1.CallReason_CALL_REASON_UNHEALTHY && (wait <= 0 || wait > 3*glassCooling) {
					t.Fatalf("to be asked again after %v", wait)
				}
				return p.GetReason() == v1.CallReason_CALL_REASON_UNHEALTHY
			})
		}
	}
	fail()
	clock.Ahead(12 * time.Hour) // so its cool-down is over; what was not called for a day would be forgotten
	fail()
	clock.Ahead(0) // and now it would last half a day
	allowed := 0
	await(t, "it is tried again", func() bool {
		for _, a := range atOnce(8, w.c, func(who int, c client) (*v1.AuthorizeCallResponse, error) {
			return c.AuthorizeCall(w.ctx, &v1.AuthorizeCallRequest{CallId: fmt.Sprint("probe-", who), ChatId: "c", UserId: "u", Surface: web, Function: "glass"})
		}) {
			if a.err != nil {
				t.Fatal(a.err)
			}
			if a.answer.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW {
				allowed++
			}
		}
		return allowed > 0
	})
	if allowed != 1 {
		t.Errorf("%d probes went through", allowed)
	}
}

// PostgreSQL's clock jumps. It dates the audit log and the changes that servers follow, and decides nothing: approvals
// wait as long as they do by the servers' clocks, and every server learns of every change.
func TestPostgressClockJumps(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(t)
	w := newClocked(t, testkit.DatabaseBy(t, clock), testkit.Redis(t))
	for i, by := range []time.Duration{time.Hour, 2 * clockYear, -2 * clockYear, 0} {
		risky := w.request("risky")
		asked := w.ask(0, risky)
		if asked.GetReason() != v1.CallReason_CALL_REASON_APPROVAL_REQUIRED {
			t.Fatal(asked)
		}
		clock.Ahead(by)
		if p := w.ask(1, risky); p.GetReason() != v1.CallReason_CALL_REASON_APPROVAL_REQUIRED || p.GetApprovalId() != asked.GetApprovalId() {
			t.Errorf("%v ahead: %v", by, p)
		}
		m := clockWorld()
		m.Tools[0].Title = fmt.Sprint("after jump ", i)
		w.apply(m)
		decided, err := w.c[1].DecideApproval(w.ctx, &v1.DecideApprovalRequest{ApprovalId: asked.GetApprovalId(), Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_ONCE})
		if a := decided.GetApproval(); err != nil || time.Until(a.GetExpireTime().AsTime()).Abs() > 11*time.Minute {
			t.Errorf("%v ahead: %v, %v", by, decided, err)
		}
		for server := range w.c {
			if p := w.ask(server, risky); p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW || p.GetApprovalUsed() != (server > 0) {
				t.Errorf("%v ahead: %v", by, p)
			}
		}
		for i, c := range []client{w.c[0], w.c[1]} {
			if p, err := report(w.ctx, c, risky.GetCallId(), succeeded); err != nil || p.GetRepeatedReport() != (i > 0) {
				t.Errorf("%v ahead: %v, %v", by, p, err)
			}
		}
	}
	w.admits("at last", "counted", clockLimit, longestHour)
}

// The servers' clocks are wrong, which is the same as that all others' are, by hours and by days. Limits hold, waits are
// those by Redis's clock, and approvals are what they always are.
func TestServersWhoseClocksAreWrong(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, -30 * time.Minute, 50*time.Hour - noonless(), -clockYear - noonless()} {
		t.Run(by.Truncate(time.Hour).String(), func(t *testing.T) {
			t.Parallel()
			clock := testkit.NewClock(t)
			clock.Ahead(by)
			w := newClocked(t, testkit.DatabaseBy(t, clock), testkit.RedisServerBy(t, clock).URL)
			w.admits("wrong", "counted", clockLimit, longestHour)
			w.admits("wrong", "common", clockLimit, longestHour)
			if by.Abs() > longestDay { // it is noon
				w.admits("wrong", "daily", clockLimit, longestDay)
			}
			risky := w.request("risky")
			asked := w.ask(0, risky)
			if _, err := w.c[1].DecideApproval(w.ctx, &v1.DecideApprovalRequest{ApprovalId: asked.GetApprovalId(), Approve: true, Scope: v1.ApprovalScope_APPROVAL_SCOPE_ONCE}); err != nil {
				t.Fatal(err)
			}
			if p := w.ask(1, risky); p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
				t.Error(p)
			}
			if _, err := report(w.ctx, w.c[0], "never", succeeded); status.Code(err) != codes.NotFound {
				t.Error(err)
			}
			clock.Ahead(0) // and they are set right
			left := 0      // but for what comes back by the difference
			if by < -longestDay {
				left = clockLimit
			}
			w.admits("right", "counted", left, longestHour+clockWindow)
			w.admits("right", "common", left, longestHour+clockWindow)
		})
	}
}
