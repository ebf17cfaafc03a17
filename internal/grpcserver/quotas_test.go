package grpcserver_test

import (
	"fmt"
	"math"
	gostrings "strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// limited is a company's search, with rules of every kind.
const limited = `
tool_types:
  - tool_type_id: search
    source: TOOL_SOURCE_NATIVE
    config_schema: {type: object, properties: {depth: {type: integer, maximum: 9}}, additionalProperties: false}
    quotas:
      - {quota_id: search.all, scope: QUOTA_SCOPE_SYSTEM, unit: QUOTA_UNIT_CALLS, limit: 100000, window: {calendar: {period: CALENDAR_PERIOD_DAY}}, on_outage: ON_OUTAGE_LOCAL_SHARE, warn_at: 0.5}
tools:
  - tool_id: web_search.pro
    tool_type_id: search
    name: web_search
    precedence: 10
    config: {depth: 9}
    quotas:
      - {quota_id: pro.tokens, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 1000000000000, window: {calendar: {period: CALENDAR_PERIOD_MONTH, time_zone: Asia/Shanghai}}, on_abandoned: ON_ABANDONED_CHARGE}
      - {quota_id: pro.burst, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, window: {token_bucket: {refill_per_second: 0.5, burst: 10}}}
      - {quota_id: pro.at-a-time, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CONCURRENT_CALLS, limit: 4}
      - {quota_id: pro.minute, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 0, window: {fixed: 60.25s}, on_outage: ON_OUTAGE_ALLOW, shadow: true}
`

// quotaIDs lists rules in a line.
func quotaIDs(rules []*v1.Quota) string {
	var names []string
	for _, r := range rules {
		names = append(names, r.GetQuotaId())
	}
	return gostrings.Join(names, " ")
}

func TestRulesAreKept(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, limited)
	got, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "web_search.pro"})
	if err != nil || quotaIDs(got.GetTool().GetQuotas()) != "pro.at-a-time pro.burst pro.minute pro.tokens" {
		t.Fatalf("got %v, %v", got, err)
	}
	given := parse(t, limited).GetTools()[0].GetQuotas()
	for i, want := range []*v1.Quota{given[2], given[1], given[3], given[0]} {
		if want.OnOutage == v1.OnOutage_ON_OUTAGE_UNSPECIFIED {
			want.OnOutage = v1.OnOutage_ON_OUTAGE_DENY
		}
		if want.OnAbandoned == v1.OnAbandoned_ON_ABANDONED_UNSPECIFIED {
			want.OnAbandoned = v1.OnAbandoned_ON_ABANDONED_GIVE_BACK
		}
		want.WarnAt = proto.Float64(0.8)
		if got := got.GetTool().GetQuotas()[i]; !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	toolType, err := c.GetToolType(ctx, &v1.GetToolTypeRequest{ToolTypeId: "search"})
	if q := toolType.GetToolType().GetQuotas(); err != nil || len(q) != 1 || q[0].GetWarnAt() != 0.5 || q[0].GetOnOutage() != v1.OnOutage_ON_OUTAGE_LOCAL_SHARE {
		t.Errorf("got %v, %v", toolType, err)
	}
	if again := c.apply(ctx, t, limited); len(again.GetChanges()) > 0 {
		t.Errorf("the same manifest changed %v", again)
	}
	exported, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: exported.GetManifest(), Prune: true})
	if err != nil || len(again.GetChanges()) > 0 {
		t.Errorf("what was exported changed %v: %v", again, err)
	}
}

func TestRulesChangeWithTheirTool(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, limited)
	before, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "web_search.pro"})
	if err != nil {
		t.Fatal(err)
	}
	update := func(quotas []*v1.Quota, etag string) (*v1.UpdateToolResponse, error) {
		return c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "web_search.pro", Quotas: quotas, Etag: etag},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"quotas"}}})
	}
	rule := &v1.Quota{QuotaId: "pro.minute", Scope: v1.QuotaScope_QUOTA_SCOPE_USER, Unit: v1.QuotaUnit_QUOTA_UNIT_CALLS, Limit: 7,
		Window: &v1.QuotaWindow{Kind: &v1.QuotaWindow_Fixed{Fixed: durationpb.New(time.Hour)}}}
	updated, err := update([]*v1.Quota{rule}, before.GetTool().GetEtag())
	if err != nil || updated.GetTool().GetEtag() == before.GetTool().GetEtag() || updated.GetTool().GetName() != "web_search" {
		t.Fatalf("got %v, %v", updated, err)
	}
	got, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "web_search.pro"})
	if err != nil || !proto.Equal(got.GetTool(), updated.GetTool()) || quotaIDs(got.GetTool().GetQuotas()) != "pro.minute" {
		t.Errorf("got %v, %v; want %v", got, err, updated)
	}
	rule.Limit = 8
	_, err = update([]*v1.Quota{rule}, before.GetTool().GetEtag())
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "tool.etag")
	if updated, err = update(nil, ""); err != nil || len(updated.GetTool().GetQuotas()) != 0 {
		t.Errorf("got %v, %v", updated, err)
	}
	changes := c.apply(ctx, t, limited).GetChanges()
	if len(changes) != 1 || len(changes[0].GetFields()) != 1 || changes[0].GetFields()[0].GetField() != "quotas" || changes[0].GetFields()[0].GetBefore() != "" ||
		!gostrings.Contains(changes[0].GetFields()[0].GetAfter(), `"window":{"fixed":"60.25s"}`) {
		t.Errorf("got %v", changes)
	}
}

func TestARuleThatMovesKeepsItsOverrides(t *testing.T) {
	ctx, c := setup(t)
	const moved = `
tools:
  - {tool_id: now, tool_type_id: clock, name: now, core: true, quotas: [%s]}
  - {tool_id: slides, tool_type_id: slides, name: slides, title: %s, required_capabilities: [display], quotas: [%s]}`
	const rule = "{quota_id: q, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 5, window: {fixed: 1s}}"
	c.apply(ctx, t, fmt.Sprintf(moved, rule, "Slides", ""))
	db, err := pgx.Connect(ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(ctx)
	if _, err := db.Exec(ctx, "INSERT INTO quota_overrides (user_id, quota_id, quota_limit) VALUES ('ann', 'q', 50)"); err != nil {
		t.Fatal(err)
	}
	overrides := func(want int) {
		t.Helper()
		var n int
		if err := db.QueryRow(ctx, "SELECT count(*) FROM quota_overrides").Scan(&n); err != nil || n != want {
			t.Errorf("got %d overrides, %v; want %d", n, err, want)
		}
	}
	for _, manifest := range []string{
		fmt.Sprintf(moved, gostrings.Replace(rule, "5", "6", 1), "Slides", ""), // changes
		fmt.Sprintf(moved, "", "Slides", rule),                                 // goes on
		fmt.Sprintf(moved, "", "The slides", rule),                             // stays where it is
		fmt.Sprintf(moved, rule, "Slides", ""),                                 // and goes back
	} {
		c.apply(ctx, t, manifest)
		overrides(1)
		if again := c.apply(ctx, t, manifest); len(again.GetChanges()) > 0 {
			t.Errorf("the same manifest changed %v", again)
		}
	}
	// Its tool is deleted, and another one takes it over.
	c.apply(ctx, t, `tools: [{tool_id: a, tool_type_id: clock, name: a}]`)
	c.apply(ctx, t, `tools: [{tool_id: now, tool_type_id: clock, name: now, core: true}, {tool_id: a, tool_type_id: clock, name: a, quotas: [`+rule+`]}]`)
	overrides(1)
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Prune: true, Manifest: parse(t, `
tools:
  - {tool_id: now, tool_type_id: clock, name: now, core: true, quotas: [`+rule+`]}
  - {tool_id: web_search.basic, tool_type_id: search, name: web_search, config: {depth: 1}}
  - {tool_id: web_search.pro, tool_type_id: search, name: web_search, precedence: 10, config: {depth: 9}}
  - {tool_id: slides, tool_type_id: slides, name: slides}`)}); err != nil {
		t.Fatal(err)
	}
	overrides(1)
	c.apply(ctx, t, fmt.Sprintf(moved, "", "Slides", ""))
	overrides(0)
}

func TestRulesGoWithTheirTool(t *testing.T) {
	ctx, c := setup(t)
	rule := []*v1.Quota{{QuotaId: "q", Scope: v1.QuotaScope_QUOTA_SCOPE_NODE, Unit: v1.QuotaUnit_QUOTA_UNIT_CONCURRENT_CALLS}}
	create := func(tool string) error {
		_, err := c.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: tool, ToolTypeId: "clock", Name: tool, Quotas: rule}})
		return err
	}
	if err := create("a"); err != nil {
		t.Fatal(err)
	}
	err := create("b")
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.quotas[0].quota_id")
	if want := `"q" is a rule of stored tool a`; !gostrings.Contains(status.Convert(err).Message(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := create("b"); err != nil {
		t.Error(err)
	}
	_, err = c.CreateToolType(ctx, &v1.CreateToolTypeRequest{ToolType: &v1.ToolType{ToolTypeId: "x", Source: v1.ToolSource_TOOL_SOURCE_NATIVE, Quotas: rule}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool_type.quotas[0].quota_id")
}

func TestEveryFaultOfRulesIsNamed(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, limited)
	manifest := parse(t, `
tool_types:
  - tool_type_id: x
    source: TOOL_SOURCE_NATIVE
    quotas:
      - {quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, window: {calendar: {period: CALENDAR_PERIOD_DAY, time_zone: x}}}
      - {quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, window: {calendar: {time_zone: Local}}}
      - {quota_id: pro.burst, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CONCURRENT_CALLS, window: {fixed: 1s}, on_abandoned: ON_ABANDONED_CHARGE}
tools:
  - tool_id: y
    tool_type_id: x
    name: y
    quotas:
      - {quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS}
      - {quota_id: b c, scope: QUOTA_SCOPE_UNSPECIFIED, unit: QUOTA_UNIT_UNSPECIFIED, limit: -1, warn_at: 0}
      - {quota_id: d, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 1000000000001, window: {fixed: 0.5s}, warn_at: 1.5}
      - {quota_id: e, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 1, window: {fixed: 1.0001s}}
      - {quota_id: f, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, limit: 5, window: {token_bucket: {refill_per_second: 1, burst: 6}}}
      - {quota_id: g, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, window: {token_bucket: {refill_per_second: 0.00001, burst: 1000}}}
      - {quota_id: h, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, window: {token_bucket: {}}}
      - {quota_id: i, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_TOKENS, window: {token_bucket: {refill_per_second: NaN, burst: 1}}, warn_at: NaN}
      - {quota_id: j, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, window: {}, on_outage: 9, on_abandoned: 9}
`)
	request := &v1.ApplyManifestRequest{Manifest: manifest}
	_, err := c.ApplyManifest(ctx, request)
	const types, tool = "tool_types[0].quotas", "tools[0].quotas"
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST",
		types+"[0].window.calendar.time_zone", types+"[1].quota_id", types+"[1].window.calendar.period", types+"[1].window.calendar.time_zone",
		types+"[2].quota_id", types+"[2].window", types+"[2].on_abandoned",
		tool+"[0].quota_id", tool+"[0].window",
		tool+"[1].quota_id", tool+"[1].scope", tool+"[1].unit", tool+"[1].limit", tool+"[1].warn_at",
		tool+"[2].limit", tool+"[2].window.fixed", tool+"[2].warn_at",
		tool+"[3].window.fixed", tool+"[4].limit", tool+"[5].window.token_bucket.refill_per_second",
		tool+"[6].window.token_bucket.refill_per_second", tool+"[6].window.token_bucket.burst",
		tool+"[7].window.token_bucket.refill_per_second", tool+"[7].warn_at",
		tool+"[8].window", tool+"[8].window.kind", tool+"[8].on_outage", tool+"[8].on_abandoned")
	for _, want := range []string{types + `[0].window.calendar.time_zone: no such time zone "x"`, types + `[1].quota_id: "a" occurs twice;`,
		types + `[2].quota_id: "pro.burst" is a rule of stored tool web_search.pro`, tool + `[0].quota_id: "a" occurs twice: first in tool_types[0]`} {
		if !gostrings.Contains(status.Convert(err).Message()+";", want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	request.DryRun = true
	_, dry := c.ApplyManifest(ctx, request)
	if !proto.Equal(status.Convert(dry).Proto(), status.Convert(err).Proto()) {
		t.Errorf("the dry run answers %v", dry)
	}
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "now", Quotas: []*v1.Quota{{QuotaId: "q", WarnAt: proto.Float64(math.Inf(1))}}}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.quotas[0].scope", "tool.quotas[0].unit", "tool.quotas[0].warn_at")
	many := make([]*v1.Quota, 33)
	for i := range many {
		many[i] = &v1.Quota{QuotaId: fmt.Sprint("q", i), Scope: v1.QuotaScope_QUOTA_SCOPE_NODE, Unit: v1.QuotaUnit_QUOTA_UNIT_CONCURRENT_CALLS}
	}
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "now", Quotas: many}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.quotas")
}
