package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// told is what somebody was answered.
type told[Response any] struct {
	who    int
	answer Response
	err    error
}

// atOnce lets many ask at the same time, each of the two servers in turn.
func atOnce[Response any](many int, clients [2]client, ask func(who int, c client) (Response, error)) []told[Response] {
	answers, start := make([]told[Response], many), make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			p, err := ask(i, clients[i%2])
			answers[i] = told[Response]{i, p, err}
		})
	}
	close(start)
	all.Wait()
	return answers
}

// reasonOf is the reason that an error tells.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return strings.TrimPrefix(info.GetReason(), "ERROR_REASON_")
		}
	}
	return ""
}

// failures is how many transport failures in a row a server knows of a tool.
func failures(ctx context.Context, t *testing.T, c client, tool string) int32 {
	t.Helper()
	p, err := c.ListHealth(ctx, &v1.ListHealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range p.GetHealth() {
		if h.GetToolId() == tool {
			return h.GetFailuresInARow()
		}
	}
	return 0
}

// Many callers ask two servers for one call at once, and then report it at once: it is one call. It is reserved once,
// settled once, counts for its tool's health once, and all are told the same.
func TestEqualCallsOnTwoServersAreOne(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t), "TOOLGRANT_QUOTA_TIMEOUT=2s",
		"TOOLGRANT_HEALTH_FAIL_THRESHOLD=1000")
	const many, rounds = 32, 6
	for _, function := range []string{"counted", "common", "free"} {
		for round := range rounds {
			call := fmt.Sprint(function, "-", round)
			for _, a := range atOnce(many, c, func(_ int, c client) (*v1.AuthorizeCallResponse, error) { return authorize(ctx, c, call, function) }) {
				if a.err != nil || a.answer.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW || a.answer.GetToolId() != function ||
					a.answer.GetBinding() == nil || (a.answer.GetExpireTime() == nil) != (function == "free") {
					t.Fatalf("%s: %v, %v", call, a.answer, a.err)
				}
			}
			if used, held := usageOrNothing(ctx, t, c[0], function); used != int64(round) && function != "free" || held > 1 {
				t.Fatalf("%s: %d used, %d held", call, used, held)
			}
			first := 0
			for _, a := range atOnce(many, c, func(_ int, c client) (*v1.ReportCallResponse, error) {
				return report(ctx, c, call, v1.CallOutcome_CALL_OUTCOME_TIMEOUT)
			}) {
				if a.err != nil {
					t.Fatalf("%s: %v", call, a.err)
				}
				if !a.answer.GetRepeatedReport() {
					first++
				}
			}
			if first != 1 {
				t.Errorf("%s: %d reports were the first", call, first)
			}
			if used, held := usageOrNothing(ctx, t, c[1], function); function != "free" && used != int64(round)+1 || held != 0 {
				t.Errorf("%s: %d used, %d held", call, used, held)
			}
		}
		for i := range c {
			await(t, "a server knows of each timeout once", func() bool {
				n := failures(ctx, t, c[i], function)
				if n > rounds {
					t.Fatalf("%s: %d failures", function, n)
				}
				return n == rounds
			})
		}
	}
}

// usageOrNothing is usageOf a tool that may have no rules.
func usageOrNothing(ctx context.Context, t *testing.T, c client, tool string) (used, held int64) {
	t.Helper()
	if tool == "free" {
		return 0, 0
	}
	return usageOf(ctx, t, c, tool)
}

// Of different calls of one id at once one is allowed, and of different reports of one call one counts: who said the same is
// told so, and the others why not.
func TestOneOfDifferentCallsAndReportsCounts(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t), "TOOLGRANT_QUOTA_TIMEOUT=2s")
	const many, rounds = 24, 8
	outcomes := [...]v1.CallOutcome{succeeded, v1.CallOutcome_CALL_OUTCOME_CANCELLED, v1.CallOutcome_CALL_OUTCOME_UNREACHABLE}
	charged := int64(0)
	for round := range rounds {
		call := fmt.Sprint("call-", round)
		allowed := map[string]int{}
		for _, a := range atOnce(many, c, func(who int, c client) (*v1.AuthorizeCallResponse, error) {
			return c.AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: call, ChatId: fmt.Sprint("chat-", who%3), UserId: "u", Surface: web, Function: "counted"})
		}) {
			switch {
			case a.err == nil && a.answer.GetDecision() == v1.CallDecision_CALL_DECISION_ALLOW:
				allowed[fmt.Sprint(a.who%3)]++
			case status.Code(a.err) != codes.AlreadyExists || reasonOf(a.err) != "REQUEST_ID_REUSED":
				t.Fatalf("%s: %v, %v", call, a.answer, a.err)
			}
		}
		for _, n := range allowed {
			if len(allowed) != 1 || n != many/3 {
				t.Fatalf("%s was allowed in chats %v", call, allowed)
			}
		}
		if _, held := usage(ctx, t, c[round%2]); held != 1 {
			t.Fatalf("%s: %d held", call, held)
		}

		said := map[v1.CallOutcome]int{}
		reports := atOnce(many, c, func(who int, c client) (*v1.ReportCallResponse, error) { return report(ctx, c, call, outcomes[who%3]) })
		for _, a := range reports {
			switch {
			case a.err == nil:
				said[outcomes[a.who%3]]++
			case status.Code(a.err) != codes.FailedPrecondition || reasonOf(a.err) != "CALL_REPORTED":
				t.Fatalf("%s: %v", call, a.err)
			}
		}
		if len(said) != 1 {
			t.Errorf("%s: different reports were accepted: %v", call, said)
		}
		for outcome, n := range said {
			if n != many/3 {
				t.Errorf("%s: %v was accepted %d times", call, outcome, n)
			}
			if outcome == succeeded {
				charged++
			}
		}
		if used, held := usage(ctx, t, c[0]); used != charged || held != 0 {
			t.Errorf("%s: %d used, %d held, want %d and none", call, used, held, charged)
		}
		for _, server := range c { // replayed, later
			if _, err := authorize(ctx, server, call, "counted"); reasonOf(err) != "CALL_REPORTED" && reasonOf(err) != "REQUEST_ID_REUSED" {
				t.Errorf("%s is allowed again: %v", call, err)
			}
		}
	}
}

// Two people decide about one approval at once, at two servers, again and again. One decision counts; the other person
// is told whose. Of what it lets through, one call is made, however many ask.
func TestTwoPeopleDecideAtOnce(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t))
	people := [...]string{"bob", "chen"}
	granted := 0
	const rounds = 12
	for round := range rounds {
		call := fmt.Sprint("risky-", round)
		names := map[string]bool{}
		for _, a := range atOnce(8, c, func(_ int, c client) (*v1.AuthorizeCallResponse, error) { return authorize(ctx, c, call, "risky") }) {
			if a.err != nil || a.answer.GetReason() != v1.CallReason_CALL_REASON_APPROVAL_REQUIRED {
				t.Fatalf("%s: %v, %v", call, a.answer, a.err)
			}
			names[a.answer.GetApprovalId()] = true
		}
		if len(names) != 1 {
			t.Fatalf("%s asks %d times", call, len(names))
		}
		var approval string
		for approval = range names {
		}
		decisions := atOnce(2, c, func(who int, c client) (*v1.DecideApprovalResponse, error) {
			request := &v1.DecideApprovalRequest{ApprovalId: approval, Approve: who == round%2}
			if request.GetApprove() {
				request.Scope = v1.ApprovalScope_APPROVAL_SCOPE_ONCE
			}
			return c.DecideApproval(metadata.AppendToOutgoingContext(ctx, "toolgrant-actor", people[who]), request)
		})
		winner := 0
		if decisions[0].err != nil {
			winner = 1
		}
		loser := decisions[1-winner].err
		if decisions[winner].err != nil || status.Code(loser) != codes.FailedPrecondition || reasonOf(loser) != "APPROVAL_DECIDED" ||
			!strings.Contains(loser.Error(), "decided by claimed:"+people[winner]) {
			t.Fatalf("%s: %v and %v", call, decisions[0].err, decisions[1].err)
		}
		want := v1.CallDecision_CALL_DECISION_DENY
		if winner == round%2 {
			want = v1.CallDecision_CALL_DECISION_ALLOW
			granted++
		}
		before := 0
		for _, a := range atOnce(8, c, func(_ int, c client) (*v1.AuthorizeCallResponse, error) { return authorize(ctx, c, call, "risky") }) {
			if a.err != nil || a.answer.GetDecision() != want {
				t.Errorf("%s: %v, %v; want %v", call, a.answer, a.err, want)
			}
			if a.answer.GetApprovalUsed() {
				before++
			}
		}
		if want == v1.CallDecision_CALL_DECISION_ALLOW && before != 7 {
			t.Errorf("%s: %d of 8 are told that the approval was used before", call, before)
		}
	}
	entries, err := c[0].ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{UserId: "u", PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	count := map[v1.AuditAction]int{}
	for _, e := range entries.GetEntries() {
		if e.GetKind() == "approval" {
			count[e.GetAction()]++
		}
	}
	if count[v1.AuditAction_AUDIT_ACTION_ASK] != rounds || count[v1.AuditAction_AUDIT_ACTION_GRANT] != granted ||
		count[v1.AuditAction_AUDIT_ACTION_DENY] != rounds-granted || count[v1.AuditAction_AUDIT_ACTION_USE] != granted {
		t.Errorf("%d granted of %d, and the audit log has %v", granted, rounds, count)
	}
}
