package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// Callers send as much as they may, more than that, and what nests beyond reason, at two servers, by gRPC and by HTTP, many
// at once. Each is told what is wrong, nothing is taken for what is refused, and the servers go on.
func TestArgumentsBeyondReasonAreRefused(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	servers, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t), "TOOLGRANT_QUOTA_TIMEOUT=2s")
	nested := func(depth int) *structpb.Value {
		v := structpb.NewStringValue("end")
		for range depth {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		return v
	}
	text := func(bytes int) *structpb.Value { return structpb.NewStringValue(strings.Repeat("x", bytes)) }
	many := &structpb.ListValue{Values: make([]*structpb.Value, 30_000)}
	for i := range many.Values {
		many.Values[i] = structpb.NewNullValue()
	}
	const allowed, bad, invalid = "allowed", "BAD_ARGUMENTS", "INVALID_ARGUMENT"
	cases := []struct {
		name  string
		value *structpb.Value
		want  string
		says  string
	}{
		{"a mebibyte", text(1<<20 - 100), allowed, ""},
		{"more than a mebibyte", text(1 << 20), bad, "1 MiB"},
		{"three mebibytes", text(3 << 20), invalid, "arguments"},
		{"many values", structpb.NewListValue(many), bad, "20000"},
		{"a hundred deep", nested(99), allowed, ""},
		{"too deep", nested(100), invalid, "nest"},
		{"very deep", nested(4000), invalid, "nest"},
		{"deeper than decoders go", nested(20_000), invalid, "nest"},
	}
	var all sync.WaitGroup
	for _, of := range cases {
		for i := range 4 { // the same call, of two callers at each server
			all.Go(func() {
				p, err := c[i%2].AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: of.name[:1] + strings.ReplaceAll(of.name, " ", "-"), ChatId: "c", UserId: "u", Surface: web,
					Function: "counted", Arguments: &structpb.Struct{Fields: map[string]*structpb.Value{"v": of.value}}})
				got, said := allowed, p.GetMessage()
				switch {
				case err != nil && status.Code(err) == codes.InvalidArgument && reasonOf(err) == "INVALID_REQUEST":
					got, said = invalid, err.Error()
				case err != nil:
					got = err.Error()
				case p.GetReason() == v1.CallReason_CALL_REASON_BAD_ARGUMENTS:
					got, said = bad, p.String()
				case p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW:
					got = p.String()
				}
				if got != of.want || !strings.Contains(said, of.says) {
					t.Errorf("%s: %.300s, saying %.300s; want %s, saying %s", of.name, got, said, of.want, of.says)
				}
			})
		}
	}
	all.Wait()
	if used, held := usage(ctx, t, c[0]); used != 0 || held != 2 {
		t.Errorf("%d used, %d held of the two calls that were allowed", used, held)
	}

	// By HTTP, as JSON.
	for name, v := range map[string]string{
		"deep lists":   strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"deep objects": strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"not closed":   strings.Repeat("[", 100_000),
		"too deep":     strings.Repeat("[", 100) + strings.Repeat("]", 100),
	} {
		body := `{"call_id":"http","chat_id":"c","user_id":"u","surface":{"web":{}},"function":"counted","arguments":{"v":` + v + `}}`
		code, answer, err := servers[0].post("CallService/AuthorizeCall", body)
		if err != nil || code != http.StatusBadRequest || fmt.Sprint(answer["code"]) != "invalid_argument" {
			t.Errorf("%s: %d, %.300v, %v", name, code, answer, err)
		}
	}
	for _, server := range servers {
		if peak := peakMemory(t, server); peak > 1<<30 {
			t.Errorf("a server took %d MiB of memory", peak>>20)
		}
	}
	allowedAt := func(i int) {
		t.Helper()
		p, err := authorize(ctx, c[i], fmt.Sprint("after-", i), "counted")
		if err != nil || p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
			t.Errorf("%v, %v", p, err)
		}
	}
	allowedAt(0)
	allowedAt(1)
}

// peakMemory is how much memory a server ever took.
func peakMemory(t *testing.T, server *child) (size int64) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.process.Process.Pid))
	if err != nil {
		t.Skip("no /proc")
	}
	_, after, _ := bytes.Cut(data, []byte("VmHWM:"))
	if _, err := fmt.Sscanf(string(after), "%d kB", &size); err != nil {
		t.Fatal(err)
	}
	return size << 10
}

// What nobody was allowed, or what was refused, cannot be reported, at no server, and takes nothing.
func TestReportsOfCallsThatWereNotAllowed(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	_, c := callPair(ctx, t, "TOOLGRANT_DATABASE_URL="+testkit.Database(t), "TOOLGRANT_REDIS_URL="+testkit.Redis(t), "TOOLGRANT_QUOTA_TIMEOUT=2s")
	if p, err := authorize(ctx, c[0], "refused", "unheard-of"); err != nil || p.GetReason() != v1.CallReason_CALL_REASON_UNKNOWN_FUNCTION {
		t.Fatalf("%v, %v", p, err)
	}
	if p, err := authorize(ctx, c[0], "waits", "risky"); err != nil || p.GetReason() != v1.CallReason_CALL_REASON_APPROVAL_REQUIRED {
		t.Fatalf("%v, %v", p, err)
	}
	if p, err := c[0].AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: "dry", ChatId: "c", UserId: "u", Surface: web, Function: "counted", DryRun: true}); err != nil ||
		p.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
		t.Fatalf("%v, %v", p, err)
	}
	for _, call := range []string{"never", "refused", "waits", "dry"} {
		for _, a := range atOnce(8, c, func(_ int, c client) (*v1.ReportCallResponse, error) {
			return report(ctx, c, call, v1.CallOutcome_CALL_OUTCOME_TIMEOUT)
		}) {
			if status.Code(a.err) != codes.NotFound || reasonOf(a.err) != "NOT_FOUND" || !strings.Contains(a.err.Error(), call) {
				t.Errorf("%s: %v, %v", call, a.answer, a.err)
			}
		}
	}
	if used, held := usage(ctx, t, c[1]); used != 0 || held != 0 {
		t.Errorf("%d used, %d held", used, held)
	}
	for _, tool := range []string{"counted", "risky"} {
		if n := failures(ctx, t, c[0], tool); n != 0 {
			t.Errorf("%s: %d failures of calls that were not allowed", tool, n)
		}
	}
	allowed(ctx, t, c[1], "never", "counted") // its id is free still
	if p, err := report(ctx, c[0], "never", succeeded); err != nil || p.GetRepeatedReport() {
		t.Errorf("%v, %v", p, err)
	}
}
