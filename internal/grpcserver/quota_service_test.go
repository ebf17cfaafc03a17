package grpcserver_test

import (
	"context"
	"fmt"
	"slices"
	gostrings "strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/redisstore"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// rulesOf is a manifest of a tool with rules.
func rulesOf(tool string, rules ...string) string {
	return fmt.Sprintf("tools:\n  - tool_id: %s\n    tool_type_id: clock\n    name: %s\n    quotas:\n      - {%s}\n", tool, tool, gostrings.Join(rules, "}\n      - {"))
}

const (
	hourly   = "quota_id: hourly, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 3, window: {fixed: 3600s}"
	monthly  = "quota_id: monthly, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 100, window: {calendar: {period: CALENDAR_PERIOD_MONTH, time_zone: Asia/Shanghai}}"
	smooth   = "quota_id: smooth, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, window: {token_bucket: {refill_per_second: 0.001, burst: 2}}"
	places   = "quota_id: places, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CONCURRENT_CALLS, limit: 1"
	trial    = "quota_id: trial, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 1, window: {fixed: 60s}, shadow: true"
	onAll    = "quota_id: on-all, scope: QUOTA_SCOPE_SYSTEM, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: 3600s}"
	manyNode = "quota_id: many, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CALLS, limit: 1000, window: {fixed: 3600s}"
	onNode   = "quota_id: on-node, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: 3600s}"
	anyhow   = "quota_id: anyhow, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: 3600s}, on_outage: ON_OUTAGE_ALLOW"
	shared   = "quota_id: shared, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 4, window: {fixed: 3600s}, on_outage: ON_OUTAGE_LOCAL_SHARE"
	noTokens = -1
)

// quotaStep is a call and what it must answer: the states in a line, each as quota=used+held/limit, followed by ~ if
// near its limit and by ! if an outage decided; or the error's code and the rules that denied.
type quotaStep struct {
	call   string // consume, reserve, commit or release
	id     string
	tokens int64
	want   string
}

func TestQuotaOperations(t *testing.T) {
	for name, c := range map[string]struct {
		rules []string
		steps []quotaStep
	}{
		"a window": {[]string{hourly}, []quotaStep{
			{"consume", "a", 0, "hourly=1+0/3"}, {"consume", "a", 0, "hourly=1+0/3"}, {"consume", "b", 0, "hourly=2+0/3"},
			{"consume", "c", 0, "hourly=3+0/3~"}, {"consume", "d", 0, "ResourceExhausted hourly 3/3"}, {"consume", "a", 0, "hourly=3+0/3~"},
			{"consume", "a", 1, "AlreadyExists"},
		}},
		"several rules, all or none": {[]string{hourly, monthly, smooth}, []quotaStep{
			{"consume", "a", 60, "hourly=1+0/3 monthly=60+0/100 smooth=1+0/2"},
			{"consume", "b", 60, "ResourceExhausted monthly 60/100"},
			{"consume", "b", 40, "hourly=2+0/3 monthly=100+0/100~ smooth=2+0/2~"},
			{"consume", "c", 1, "ResourceExhausted monthly 100/100 smooth 2/2"},
		}},
		"reserve, commit more or less": {[]string{monthly}, []quotaStep{
			{"reserve", "a", 50, "monthly=0+50/100"}, {"reserve", "b", 50, "monthly=0+100/100~"}, {"reserve", "c", 1, "ResourceExhausted monthly 0/100"},
			{"commit", "a", 10, "monthly=10+50/100"}, {"commit", "a", 10, "monthly=10+50/100"}, {"commit", "a", 11, "AlreadyExists"},
			{"commit", "b", 120, "monthly=130+0/100~"}, {"release", "b", 0, "FailedPrecondition"}, {"consume", "d", 1, "ResourceExhausted monthly 130/100"},
			{"commit", "unknown", 1, "NotFound"},
		}},
		"a reservation is bounded": {[]string{monthly}, []quotaStep{{"reserve", "a", noTokens, "InvalidArgument tokens"}}},
		"or needs no bound":        {[]string{hourly}, []quotaStep{{"reserve", "a", noTokens, "hourly=0+1/3"}, {"commit", "a", noTokens, "hourly=1+0/3"}}},
		"places": {[]string{places}, []quotaStep{
			{"reserve", "a", noTokens, "places=0+1/1~"}, {"reserve", "b", noTokens, "ResourceExhausted places 0/1"},
			{"release", "a", 0, "places=0+0/1"}, {"reserve", "b", noTokens, "places=0+1/1~"}, {"commit", "b", noTokens, "places=0+0/1"},
		}},
		"a shadow": {[]string{trial, hourly}, []quotaStep{
			{"consume", "a", 0, "hourly=1+0/3 trial=1+0/1~"}, {"consume", "b", 0, "hourly=2+0/3 trial=2+0/1~"},
		}},
		"a node": {[]string{onNode, hourly}, []quotaStep{
			{"consume", "a", 0, "hourly=1+0/3 on-node=1+0/2"}, {"consume", "a", 0, "hourly=1+0/3 on-node=1+0/2"},
			{"consume", "b", 0, "hourly=2+0/3 on-node=2+0/2~"}, {"consume", "c", 0, "ResourceExhausted on-node 2/2"},
		}},
		"all nodes": {[]string{onAll, hourly}, []quotaStep{
			{"consume", "a", 0, "hourly=1+0/3 on-all=1+0/2"}, {"consume", "a", 0, "hourly=1+0/3 on-all=1+0/2"},
			{"consume", "b", 0, "hourly=2+0/3 on-all=2+0/2~"}, {"consume", "c", 0, "ResourceExhausted on-all 2/2"},
		}},
		"no rules": {nil, []quotaStep{{"consume", "a", 5, ""}, {"reserve", "b", noTokens, ""}, {"commit", "b", 3, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := quotaWorld(t, node.Options{}, c.rules...)
			q := caller{v1.NewQuotaServiceClient(s.conn)}
			for i, step := range c.steps {
				if got := q.do(s, step); got != step.want {
					t.Errorf("%d. %s %s %d: %q, want %q", i+1, step.call, step.id, step.tokens, got, step.want)
				}
			}
		})
	}
}

// served is a company with a tool, t, that has rules.
type served struct {
	context.Context
	client
}

func quotaWorld(t *testing.T, o node.Options, rules ...string) served {
	t.Helper()
	url := testkit.Database(t)
	s := served{testkit.Context(t), clientOf(node.Start(t, url, o).Conn, url)}
	s.apply(s, t, company)
	if len(rules) > 0 {
		s.apply(s, t, rulesOf("t", rules...))
	} else {
		s.apply(s, t, "tools:\n  - {tool_id: t, tool_type_id: clock, name: t}\n")
	}
	return s
}

type caller struct{ v1.QuotaServiceClient }

func (c caller) do(ctx context.Context, s quotaStep) string {
	var tokens *int64
	if s.tokens != noTokens {
		tokens = &s.tokens
	}
	var answer interface{ GetRules() []*v1.QuotaState }
	var err error
	switch s.call {
	case "consume":
		answer, err = c.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: s.id, UserId: "ann", ToolId: "t", Tokens: tokens})
	case "reserve":
		answer, err = c.ReserveQuota(ctx, &v1.ReserveQuotaRequest{OperationId: s.id, UserId: "ann", ToolId: "t", Tokens: tokens, Lease: durationpb.New(time.Hour)})
	case "commit":
		answer, err = c.CommitQuota(ctx, &v1.CommitQuotaRequest{OperationId: s.id, Tokens: tokens})
	case "release":
		answer, err = c.ReleaseQuota(ctx, &v1.ReleaseQuotaRequest{OperationId: s.id})
	}
	if err != nil {
		return refusal(err)
	}
	return stateLine(answer.GetRules())
}

func stateLine(rules []*v1.QuotaState) string {
	var states []string
	for _, r := range rules {
		s := fmt.Sprintf("%s=%d+%d/%d", r.GetQuotaId(), r.GetUsed(), r.GetHeld(), r.GetLimit())
		if r.GetNearLimit() {
			s += "~"
		}
		if r.GetDecidedByOutage() {
			s += "!"
		}
		states = append(states, s)
	}
	return gostrings.Join(states, " ")
}

func refusal(err error) string {
	text := status.Code(err).String()
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				text += fmt.Sprintf(" %s %s/%d", v.GetQuotaId(), v.GetQuotaDimensions()["used"], v.GetQuotaValue())
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				text += " " + v.GetField()
			}
		}
	}
	return text
}

func retryInfo(err error) (delay time.Duration, told bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

func TestRetryInfo(t *testing.T) {
	s := quotaWorld(t, node.Options{}, hourly, places)
	q := caller{v1.NewQuotaServiceClient(s.conn)}
	ask := func(id string, calls int64) error {
		_, err := q.ConsumeQuota(s, &v1.ConsumeQuotaRequest{OperationId: id, UserId: "ann", ToolId: "t", Calls: &calls})
		return err
	}
	if err := ask("a", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := q.ReserveQuota(s, &v1.ReserveQuotaRequest{OperationId: "b", UserId: "ann", ToolId: "t", Lease: durationpb.New(10 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if delay, told := retryInfo(ask("c", 1)); !told || delay < 9*time.Minute || delay > 10*time.Minute {
		t.Errorf("until the place is free: %v, %v", delay, told)
	}
	if delay, told := retryInfo(ask("d", 4)); told {
		t.Errorf("what never fits: %v", delay)
	}
}

func TestQuotasOfWhomAndWhat(t *testing.T) {
	s := quotaWorld(t, node.Options{}, hourly)
	q := v1.NewQuotaServiceClient(s.conn)
	s.apply(s, t, gostrings.ReplaceAll(rulesOf("ann.notes", gostrings.Replace(hourly, "hourly", "own", 1)), "name: ann.notes", "name: notes\n    owner_user_id: ann"))
	for _, c := range []struct {
		user, tool string
		want       codes.Code
	}{{"ann", "t", codes.OK}, {"ann", "ann.notes", codes.OK}, {"bob", "ann.notes", codes.NotFound}, {"nobody", "t", codes.NotFound},
		{"ann", "nothing", codes.NotFound}, {"", "t", codes.InvalidArgument}} {
		_, err := q.ConsumeQuota(s, &v1.ConsumeQuotaRequest{OperationId: "o-" + c.user + c.tool, UserId: c.user, ToolId: c.tool})
		if status.Code(err) != c.want {
			t.Errorf("%s uses %s: %v", c.user, c.tool, err)
		}
		if _, err := q.GetQuotaUsage(s, &v1.GetQuotaUsageRequest{UserId: c.user, ToolIds: []string{c.tool}}); status.Code(err) != c.want {
			t.Errorf("usage of %s by %s: %v", c.tool, c.user, err)
		}
	}
	for user, want := range map[string]string{"ann": "ann.notes own=1+0/3, t hourly=1+0/3", "bob": "t hourly=0+0/3"} {
		usage, err := q.GetQuotaUsage(s, &v1.GetQuotaUsageRequest{UserId: user})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, tool := range usage.GetTools() {
			lines = append(lines, tool.GetToolId()+" "+stateLine(tool.GetRules()))
		}
		slices.Sort(lines)
		if got := gostrings.Join(lines, ", "); got != want {
			t.Errorf("usage of %s: %s, want %s", user, got, want)
		}
	}
}

func TestOverrides(t *testing.T) {
	s := quotaWorld(t, node.Options{}, hourly, onNode)
	other := clientOf(node.Start(t, s.url, node.Options{}).Conn, s.url) // which hears of it when it polls
	q := v1.NewQuotaServiceClient(s.conn)
	limits := func(c client, user string) string {
		usage, err := v1.NewQuotaServiceClient(c.conn).GetQuotaUsage(s, &v1.GetQuotaUsageRequest{UserId: user})
		if err != nil {
			t.Fatal(err)
		}
		return stateLine(usage.GetTools()[0].GetRules())
	}
	if got := limits(other, "ann"); got != "hourly=0+0/3 on-node=0+0/2" {
		t.Errorf("before: %s", got)
	}
	set := func(limit *int64, end time.Time) {
		t.Helper()
		r := &v1.SetQuotaOverrideRequest{UserId: "ann", QuotaId: "hourly", Limit: limit}
		if !end.IsZero() {
			r.ExpireTime = timestamppb.New(end)
		}
		if _, err := q.SetQuotaOverride(s, r); err != nil {
			t.Fatal(err)
		}
	}
	set(proto.Int64(10), time.Time{})
	if got := limits(s.client, "ann"); got != "hourly=0+0/10 on-node=0+0/2" {
		t.Errorf("at once: %s", got)
	}
	if got := limits(s.client, "bob"); got != "hourly=0+0/3 on-node=0+0/2" {
		t.Errorf("of another user: %s", got)
	}
	until(t, func() bool { return limits(other, "ann") == "hourly=0+0/10 on-node=0+0/2" })
	end := time.Now().Add(1500 * time.Millisecond)
	set(proto.Int64(0), end)
	if got := limits(s.client, "ann"); time.Now().Before(end) && got != "hourly=0+0/0~ on-node=0+0/2" {
		t.Errorf("for a time: %s", got)
	}
	until(t, func() bool { return limits(s.client, "ann") == "hourly=0+0/3 on-node=0+0/2" })
	set(proto.Int64(7), time.Time{})
	set(nil, time.Time{})
	if got := limits(s.client, "ann"); got != "hourly=0+0/3 on-node=0+0/2" {
		t.Errorf("afterwards: %s", got)
	}
	// A rule that comes again has none of the overrides that its namesake had.
	set(proto.Int64(9), time.Time{})
	s.apply(s, t, rulesOf("t", onNode))
	s.apply(s, t, rulesOf("t", onNode, hourly))
	if got := limits(s.client, "ann"); got != "hourly=0+0/3 on-node=0+0/2" {
		t.Errorf("of another rule: %s", got)
	}
	for want, r := range map[string]*v1.SetQuotaOverrideRequest{
		"NotFound":                    {UserId: "nobody", QuotaId: "hourly", Limit: proto.Int64(1)},
		"NotFound ":                   {UserId: "ann", QuotaId: "nothing", Limit: proto.Int64(1)},
		"InvalidArgument quota_id":    {UserId: "ann", QuotaId: "on-node", Limit: proto.Int64(1)},
		"InvalidArgument expire_time": {UserId: "ann", QuotaId: "hourly", ExpireTime: timestamppb.Now()},
	} {
		_, err := q.SetQuotaOverride(s, r)
		if got := refusal(err); got != gostrings.TrimSpace(want) {
			t.Errorf("%v: %s", r, got)
		}
	}
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for range 5000 {
		if is() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("in vain")
}

func TestViewFullTellsQuotas(t *testing.T) {
	s := quotaWorld(t, node.Options{}, hourly, monthly)
	s.apply(s, t, gostrings.ReplaceAll(rulesOf("t", hourly, monthly), "name: t\n", "name: t\n    core: true\n")+"groups:\n  - {group_id: all, grant_tool_ids: [t]}\n"+
		"users:\n  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: all}]}\n")
	q := caller{v1.NewQuotaServiceClient(s.conn)}
	for i := range 3 {
		ask := func(view v1.ToolView) *v1.ResolveToolsResponse {
			r, err := s.ResolveTools(s, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}, View: view})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		full := ask(v1.ToolView_TOOL_VIEW_FULL)
		var told []string
		for _, tool := range full.GetTools() {
			if len(tool.GetQuotas()) > 0 || tool.GetToolId() == "now" {
				told = append(told, tool.GetToolId()+" "+stateLine(tool.GetQuotas()))
			}
		}
		if got, want := gostrings.Join(told, ", "), fmt.Sprintf("now , t hourly=%d+0/3 monthly=%d+0/100", i, 10*i); got != want {
			t.Errorf("after %d calls: %s, want %s", i, got, want)
		}
		for _, tool := range ask(v1.ToolView_TOOL_VIEW_BASIC).GetTools() {
			if len(tool.GetQuotas()) > 0 {
				t.Errorf("view BASIC tells %v", tool)
			}
		}
		q.do(s, quotaStep{"consume", fmt.Sprint(i), 10, ""})
	}
}

// While Redis is away each rule says what happens, soon.
func TestQuotasWhileRedisIsAway(t *testing.T) {
	for how, away := range map[string]func(*testkit.PrivateRedis){"killed": (*testkit.PrivateRedis).Kill, "paused": (*testkit.PrivateRedis).Pause} {
		t.Run(how, func(t *testing.T) {
			server := testkit.RedisServer(t)
			quick := func(o *quota.GateOptions) {
				client, err := redisstore.Open(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				o.Ledger = redisstore.NewLedger(client, 1, 500*time.Millisecond)
				o.Nodes = func() int { return 2 }
			}
			s := quotaWorld(t, node.Options{Gate: quick}, anyhow, shared)
			s.apply(s, t, rulesOf("denying", hourly, manyNode))
			q := caller{v1.NewQuotaServiceClient(s.conn)}
			until(t, func() bool { // it is connected
				usage, err := q.GetQuotaUsage(s, &v1.GetQuotaUsageRequest{UserId: "ann", ToolIds: []string{"t"}})
				return err == nil && stateLine(usage.GetTools()[0].GetRules()) == "anyhow=0+0/2 shared=0+0/4"
			})
			if got := q.do(s, quotaStep{"consume", "before", 0, ""}); got != "anyhow=1+0/2 shared=1+0/4" {
				t.Fatal(got)
			}
			away(server)
			begin := time.Now()
			var longest time.Duration
			for i := range 100 {
				called := time.Now()
				_, err := q.ConsumeQuota(s, &v1.ConsumeQuotaRequest{OperationId: fmt.Sprint("d", i), UserId: "ann", ToolId: "denying"})
				longest = max(longest, time.Since(called))
				if status.Code(err) != codes.Unavailable {
					t.Fatalf("call %d: %v", i, err)
				}
			}
			t.Logf("100 calls took %v, the longest %v", time.Since(begin), longest)
			if longest > 5*time.Second {
				t.Errorf("a call took %v", longest)
			}
			for i, step := range []quotaStep{
				{"consume", "a", 0, "anyhow=0+0/2! shared=1+0/2!"}, {"consume", "a", 0, "anyhow=0+0/2! shared=1+0/2!"},
				{"reserve", "b", noTokens, "anyhow=0+0/2! shared=1+1/2~!"}, {"consume", "c", 0, "ResourceExhausted shared 1/2"},
				{"release", "b", 0, "shared=1+0/2!"},
			} {
				if got := q.do(s, step); got != step.want {
					t.Errorf("step %d: %s, want %s", i, got, step.want)
				}
			}
			usage, err := q.GetQuotaUsage(s, &v1.GetQuotaUsageRequest{UserId: "ann", ToolIds: []string{"t"}})
			if err != nil || stateLine(usage.GetTools()[0].GetRules()) != "anyhow=0+0/2! shared=1+0/2!" {
				t.Errorf("usage: %v, %v", usage, err)
			}
			if how == "killed" {
				server.Start()
			} else {
				server.Resume()
			}
			i := 0
			until(t, func() bool {
				i++
				return !gostrings.Contains(q.do(s, quotaStep{"consume", fmt.Sprint("after", i), 0, ""}), "!")
			})
		})
	}
}
