package grpcserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// called writes that so many users called a tool, each so often a day, on so many days; of the calls every failing-th
// failed.
func (d *diary) called(tool string, users, calls, days, failing int) {
	d.Helper()
	for user := range users {
		for day := range days {
			for n := range calls {
				d.wrote++
				outcome := "SUCCESS"
				if failing > 0 && n%failing == failing-1 {
					outcome = "ERROR"
				}
				d.write(`INSERT INTO call_outcomes (call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens, report_time)
					VALUES ($1, $2, $3, $4, 'f', $5, 1, 0, $6)`, fmt.Sprint("called-", d.wrote), fmt.Sprint("chat-", user, "-", day), fmt.Sprint("user-", user), tool,
					outcome, d.begin.Add(time.Duration(day)*24*time.Hour))
			}
		}
	}
}

func TestCoreToolsAreSuggested(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	begin := time.Now().Add(-20 * 24 * time.Hour)
	d := openDiary(t, f.url, begin)
	d.called("f00", 20, 1, 1, 0) // twenty users in all; too few days
	d.called("weather", 12, 1, 3, 0)
	d.called("pollen", 12, 2, 4, 0)
	d.called("f01", 5, 1, 3, 0)
	d.called("f02", 4, 30, 9, 0) // too few users, however often they call it
	d.called("f03", 8, 4, 3, 2)  // half of its calls fail
	d.called("wipe", 20, 1, 3, 0)
	d.called("now", 20, 1, 3, 0)
	d.called("ann.notes", 20, 1, 3, 0)
	d.called("gone", 20, 1, 3, 0)
	d.write(`INSERT INTO search_uses (call_id, search_id, user_id, group_ids, tool_id, private, features, report_time) VALUES
		('1', 7, 'u', '{}', 'weather', false, '{1}', $1), ('2', 7, 'u', '{}', 'weather', false, '{1}', $1), ('3', 8, 'u', '{}', 'weather', false, '{1}', $1)`, begin)
	before, err := f.ExportManifest(ctx, &v1.ExportManifestRequest{})
	if err != nil {
		t.Fatal(err)
	}
	suggest := func(r *v1.SuggestCoreToolsRequest) (*v1.SuggestCoreToolsResponse, string) {
		t.Helper()
		p, err := f.discovery.SuggestCoreTools(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		var tools []string
		for _, s := range p.GetSuggestions() {
			tools = append(tools, s.GetToolId())
		}
		return p, strings.Join(tools, " ")
	}
	p, tools := suggest(nil)
	if tools != "pollen weather f01" {
		t.Fatalf("suggested %s", tools)
	}
	if p.GetUsers() != 20 || p.GetChats() != 20*3+12+4*5 {
		t.Errorf("%d users, %d chats", p.GetUsers(), p.GetChats())
	}
	want := &v1.CoreSuggestion{ToolId: "weather", Name: "get_weather", Users: 12, UserShare: .6, Chats: 36, ChatShare: 36. / 92, Days: 3, Calls: 36, Searches: 2}
	if got := p.GetSuggestions()[1]; !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for want, r := range map[string]*v1.SuggestCoreToolsRequest{
		"pollen weather":            {MinUsers: proto.Int32(6)},
		"pollen":                    {Limit: 1},
		"pollen weather f01 f02":    {MinUsers: proto.Int32(4)},
		"pollen weather f03 f01":    {MaxErrorRate: proto.Float64(.5)},
		"f00 pollen weather f01":    {MinDays: proto.Int32(1)},
		"pollen weather f01 ":       {MinUserShare: proto.Float64(.25)},
		"pollen weather (by share)": {MinUserShare: proto.Float64(.26)},
		"":                          {StartTime: timestamppb.New(time.Now().Add(-2 * 24 * time.Hour))},
		"pollen weather f01 (ends)": {EndTime: timestamppb.New(begin.Add(4 * 24 * time.Hour))},
	} {
		want, _, _ = strings.Cut(want, " (")
		if _, got := suggest(r); got != strings.TrimSpace(want) {
			t.Errorf("%v: suggested %q, want %q", r, got, want)
		}
	}
	for _, bad := range []*v1.SuggestCoreToolsRequest{{MinUsers: proto.Int32(0)}, {MinUserShare: proto.Float64(1.1)}, {MaxErrorRate: proto.Float64(-1)}, {Limit: 101}, {StartTime: timestamppb.New(time.Now().Add(time.Hour))}} {
		if _, err := f.discovery.SuggestCoreTools(ctx, bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// Nothing changed by itself.
	after, err := f.ExportManifest(ctx, &v1.ExportManifestRequest{})
	if err != nil || !proto.Equal(after.GetManifest(), before.GetManifest()) {
		t.Errorf("the catalogue changed: %v", err)
	}
	// Whoever agrees makes one of them a core tool; it is not suggested again. A tool that is risky or retired is not either.
	for path, tool := range map[string]*v1.Tool{"core": {ToolId: "weather", Core: true}, "risk": {ToolId: "pollen", Risk: v1.ToolRisk_TOOL_RISK_MEDIUM},
		"status": {ToolId: "f01", Status: v1.ToolStatus_TOOL_STATUS_RETIRED}} {
		if _, err := f.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: tool, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, tools := suggest(nil); tools != "" {
		t.Errorf("still suggested: %s", tools)
	}
	if p := f.effective(&v1.ResolveToolsRequest{ChatId: "new", UserId: "bob", Surface: web}); !slices.Contains(p, "weather") {
		t.Errorf("%v", p)
	}
}
