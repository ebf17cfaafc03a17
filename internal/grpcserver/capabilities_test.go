package grpcserver_test

import (
	"fmt"
	"math"
	"slices"
	gostrings "strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// capable declares everything that can be declared.
const capable = `
mcp_servers:
  - {mcp_server_id: git, endpoint: "https://mcp.example.com/git"}
tool_types:
  - tool_type_id: git
    source: TOOL_SOURCE_EXTERNAL_MCP
    mcp_server_id: git
    functions:
      - name: list_issues
        title: List
        description: Lists issues.
        input_schema: {type: object, properties: {repo: {type: string, default: "𝒳"}}, required: [repo]}
        annotations: {read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false}
      - {name: delete_repo, annotations: {}, risk: TOOL_RISK_HIGH}
      - {name: a}
groups:
  - {group_id: staff, permissions: [write.code, read.code]}
tools:
  - tool_id: git
    tool_type_id: git
    name: git
    capability:
      domains: [software, 软件]
      semantic_level: SEMANTIC_LEVEL_COMPOSITE
      requires: [model.image_input, provider.tool_use, mcp.server=git, permission=read.code, network, filesystem.read, filesystem.write]
      cost_class: COST_CLASS_LOW
      latency_hint_ms: 300
      supports_parallel: true
      deterministic_for: [list the issues of a repository]
      provider_constraints: [acme]
      degrade_policy: {fallback_tool_ids: [web_search.pro, now, web_search.basic]}
    health: {fail_threshold: 3, cooldown_ms: 5000}
  - {tool_id: web_search.pro, tool_type_id: search, name: web_search, precedence: 10, config: {depth: 9}, capability: {cost_class: COST_CLASS_HIGH, degrade_policy: {fallback_tool_ids: [web_search.basic]}}, health: {cooldown_ms: 100}}
`

func TestDeclarationsAreKept(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, capable)
	given := parse(t, capable)
	got, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "git"})
	if err != nil || !proto.Equal(got.GetTool().GetCapability(), given.GetTools()[0].GetCapability()) ||
		!proto.Equal(got.GetTool().GetHealth(), given.GetTools()[0].GetHealth()) {
		t.Errorf("got %v, %v", got, err)
	}
	toolType, err := c.GetToolType(ctx, &v1.GetToolTypeRequest{ToolTypeId: "git"})
	if err != nil || len(toolType.GetToolType().GetFunctions()) != 3 {
		t.Fatalf("got %v, %v", toolType, err)
	}
	for i, want := range given.GetToolTypes()[0].GetFunctions() {
		got := toolType.GetToolType().GetFunctions()[i]
		if len(got.GetDigest()) != 64 {
			t.Errorf("%s has the digest %q", got.GetName(), got.GetDigest())
		}
		if got.Digest = ""; !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	group, err := c.GetGroup(ctx, &v1.GetGroupRequest{GroupId: "staff"})
	if err != nil || gostrings.Join(group.GetGroup().GetPermissions(), " ") != "write.code read.code" {
		t.Errorf("got %v, %v", group, err)
	}
	plain, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "now"})
	if err != nil || plain.GetTool().GetCapability() != nil || plain.GetTool().GetHealth() != nil {
		t.Errorf("what was never declared is told: %v, %v", plain, err)
	}
	if again := c.apply(ctx, t, capable); len(again.GetChanges()) > 0 {
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

func TestDeclarationsChange(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, capable)
	before, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "git"})
	if err != nil {
		t.Fatal(err)
	}
	update := func(etag string, fallbacks ...string) (*v1.UpdateToolResponse, error) {
		capability := proto.CloneOf(before.GetTool().GetCapability())
		capability.DegradePolicy.FallbackToolIds = fallbacks
		return c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "git", Etag: etag, Capability: capability},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"capability"}}})
	}
	// Their order means something.
	after, err := update(before.GetTool().GetEtag(), "web_search.basic", "now", "web_search.pro")
	if err != nil || after.GetTool().GetEtag() == before.GetTool().GetEtag() || after.GetTool().GetHealth().GetFailThreshold() != 3 {
		t.Fatalf("got %v, %v", after, err)
	}
	got, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "git"})
	if err != nil || !proto.Equal(got.GetTool(), after.GetTool()) {
		t.Errorf("got %v, %v; want %v", got, err, after)
	}
	_, err = update(before.GetTool().GetEtag(), "now")
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "tool.etag")
	changes := c.apply(ctx, t, capable).GetChanges()
	if len(changes) != 1 || len(changes[0].GetFields()) != 1 || changes[0].GetFields()[0].GetField() != "capability" {
		t.Errorf("got %v", changes)
	}
	bare := parse(t, capable)
	bare.Tools[0].Capability, bare.Tools[0].Health, bare.Groups[0].Permissions, bare.ToolTypes[0].Functions = nil, nil, nil, nil
	removed, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: bare})
	if err != nil || len(removed.GetChanges()) != 3 {
		t.Errorf("got %v, %v", removed, err)
	}
}

func TestWhatOthersFallBackToStays(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, capable)
	_, err := c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "now"})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_IN_USE", "stored device type phone.tool_ids[0]", "stored device type speaker.tool_ids[0]",
		"stored tool git.capability.degrade_policy.fallback_tool_ids[1]")
	// It would be gone for git, too, were it made private.
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "web_search.pro", OwnerUserId: "ann"}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "stored group premium.grant_tool_ids[0]",
		"stored tool git.capability.degrade_policy.fallback_tool_ids[0]")
	c.apply(ctx, t, `
mcp_servers: [{mcp_server_id: other, endpoint: "https://mcp.example.com/other"}]
tools: [{tool_id: slides, tool_type_id: slides, name: slides, capability: {requires: [mcp.server=other]}}]`)
	_, err = c.DeleteMcpServer(ctx, &v1.DeleteMcpServerRequest{McpServerId: "other"})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_IN_USE", "stored tool slides.capability.requires[0]")
	if _, err := c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "git"}); err != nil {
		t.Errorf("one that falls back cannot go: %v", err)
	}
}

func TestEveryFaultOfDeclarationsIsNamed(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, capable)
	_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, `
tool_types:
  - {tool_type_id: n, source: TOOL_SOURCE_NATIVE, functions: [{name: f}]}
  - tool_type_id: x
    source: TOOL_SOURCE_EXTERNAL_MCP
    mcp_server_id: git
    functions:
      - {name: f}
      - {name: f, input_schema: {type: nothing}}
      - {name: "a b", risk: 9}
      - {name: g, input_schema: {$ref: "#"}}
      - {name: h, input_schema: {$ref: "https://example.com/schema"}}
groups:
  - {group_id: g, permissions: ["a b", p, p]}
tools:
  - tool_id: y
    tool_type_id: clock
    name: y
    capability:
      semantic_level: 9
      cost_class: 9
      latency_hint_ms: -1
      requires: [network, internet, mcp.server=nowhere, mcp.server=, permission=a b, model., mcp.server, filesystem.execute, network, "mcp.server=git "]
      degrade_policy: {fallback_tool_ids: [y, nothing, ann.notes, now]}
    health: {fail_threshold: 0, cooldown_ms: 99}
  - {tool_id: ann.y, tool_type_id: clock, name: y, owner_user_id: ann, capability: {degrade_policy: {fallback_tool_ids: [ann.notes]}}}
`)})
	const types, tool = "tool_types", "tools[0]"
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST",
		types+"[0].functions", types+"[1].functions[1].name", types+"[1].functions[1].input_schema", types+"[1].functions[2].name",
		types+"[1].functions[2].risk", types+"[1].functions[3].input_schema", types+"[1].functions[4].input_schema",
		"groups[0].permissions", "groups[0].permissions[0]",
		tool+".capability.semantic_level", tool+".capability.cost_class", tool+".capability.latency_hint_ms",
		tool+".capability.requires", tool+".capability.requires[1]", tool+".capability.requires[2]", tool+".capability.requires[3]",
		tool+".capability.requires[4]", tool+".capability.requires[5]", tool+".capability.requires[6]", tool+".capability.requires[7]",
		tool+".capability.requires[9]",
		tool+".capability.degrade_policy.fallback_tool_ids[0]", tool+".capability.degrade_policy.fallback_tool_ids[1]",
		tool+".capability.degrade_policy.fallback_tool_ids[2]", tool+".health.fail_threshold", tool+".health.cooldown_ms")
	for _, want := range []string{`requires[1]: no such requirement "internet": it is one of model.NAME`, `requires[2]: no such MCP server "nowhere"`} {
		if !gostrings.Contains(status.Convert(err).Message(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFallbacksThatLeadBackAreRefused(t *testing.T) {
	ctx, c := setup(t)
	chain := func(pairs ...string) *v1.Manifest {
		m := &v1.Manifest{}
		for _, pair := range pairs {
			tool, fallbacks, _ := gostrings.Cut(pair, ">")
			p := &v1.Tool{ToolId: tool, ToolTypeId: "clock", Name: tool}
			if fallbacks != "" {
				p.Capability = &v1.Capability{DegradePolicy: &v1.DegradePolicy{FallbackToolIds: gostrings.Split(fallbacks, ",")}}
			}
			m.Tools = append(m.Tools, p)
		}
		return m
	}
	apply := func(pairs ...string) error {
		_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: chain(pairs...)})
		return err
	}
	const path = ".capability.degrade_policy.fallback_tool_ids"
	refused := func(err error, field, told string) {
		t.Helper()
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", field)
		if !gostrings.Contains(status.Convert(err).Message(), "it leads back to the tool: "+told) {
			t.Errorf("got %v, want %s", err, told)
		}
	}
	refused(apply("a>b", "b>d,c", "c>a", "d"), "tools[0]"+path+"[0]", "a → b → c → a")
	// A diamond is no loop.
	if err := apply("a>b,c", "b>d", "c>d", "d"); err != nil {
		t.Fatal(err)
	}
	// The rest of the loop is stored.
	refused(apply("d>now,a"), "tools[0]"+path+"[1]", "d → a → b → d")
	if err := apply("d>a", "b", "c"); err != nil {
		t.Errorf("it was turned round in one edit: %v", err)
	}
	refused(apply("b>d"), "tools[0]"+path+"[0]", "b → d → a → b")
	var long []string
	for i := range 2000 {
		long = append(long, fmt.Sprint("t", i))
	}
	pairs := make([]string, len(long))
	for i, tool := range long {
		pairs[i] = tool + ">" + long[(i+1)%len(long)]
	}
	err := apply(pairs...)
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tools[0]"+path+"[0]")
	if message := status.Convert(err).Message(); len(message) > 1000 || !gostrings.Contains(message, "more") {
		t.Errorf("got %d bytes: %.300s", len(message), message)
	}
}

// Whatever is declared, what is exported is what was applied, and applying it again changes nothing.
func TestDeclarationsSurviveTheRoundTrip(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, capable)
	words := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zé "\\\n]{1,8}`), 0, 3, rapid.ID)
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9._:@/-]{1,8}`), 0, 3, rapid.ID)
	hint := rapid.Ptr(rapid.Bool(), true)
	fallbacks := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"now", "web_search.basic", "web_search.pro", "slides"}), 0, 4, rapid.ID)
	requirements := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"network", "filesystem.read", "filesystem.write", "mcp.server=git",
		"model.x", "provider.y", "permission=z"}), 0, 4, rapid.ID)
	capability := rapid.Custom(func(t *rapid.T) *v1.Capability {
		p := &v1.Capability{Domains: words.Draw(t, "domains"), Requires: requirements.Draw(t, "requires"),
			SemanticLevel:    v1.SemanticLevel(rapid.Int32Range(0, 3).Draw(t, "semantic level")),
			CostClass:        v1.CostClass(rapid.Int32Range(0, 4).Draw(t, "cost class")),
			LatencyHintMs:    rapid.Int32Range(0, math.MaxInt32).Draw(t, "latency"),
			DeterministicFor: words.Draw(t, "deterministic for"), ProviderConstraints: names.Draw(t, "providers"),
			SupportsParallel: rapid.Bool().Draw(t, "parallel")}
		if list := fallbacks.Draw(t, "fallbacks"); len(list) > 0 {
			p.DegradePolicy = &v1.DegradePolicy{FallbackToolIds: list}
		}
		return p
	})
	functions := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) *v1.McpFunction {
		p := &v1.McpFunction{Name: rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "name"), Description: rapid.StringMatching(`[a-zé "\\\n]{0,8}`).Draw(t, "description"),
			Risk: v1.ToolRisk(rapid.Int32Range(0, 3).Draw(t, "risk"))}
		if rapid.Bool().Draw(t, "annotated") {
			p.Annotations = &v1.McpAnnotations{ReadOnlyHint: hint.Draw(t, "read only"), DestructiveHint: hint.Draw(t, "destructive"),
				IdempotentHint: hint.Draw(t, "idempotent"), OpenWorldHint: hint.Draw(t, "open world")}
		}
		if rapid.Bool().Draw(t, "described") {
			p.InputSchema = &structpb.Struct{Fields: map[string]*structpb.Value{"type": structpb.NewStringValue("object")}}
		}
		return p
	}), 0, 4, (*v1.McpFunction).GetName)
	within := func(low, high int32) *rapid.Generator[*int32] { return rapid.Ptr(rapid.Int32Range(low, high), true) }
	rapid.Check(t, func(rt *rapid.T) {
		given := parse(t, capable)
		tool, toolType, group := given.GetTools()[0], given.GetToolTypes()[0], given.GetGroups()[0]
		tool.Capability = capability.Draw(rt, "capability")
		tool.Health = &v1.HealthPolicy{FailThreshold: within(1, 1000).Draw(rt, "threshold"), CooldownMs: within(100, 3_600_000).Draw(rt, "cooldown")}
		toolType.Functions, group.Permissions = functions.Draw(rt, "functions"), names.Draw(rt, "permissions")
		if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: given}); err != nil {
			rt.Fatal(err)
		}
		exported, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
		if err != nil {
			rt.Fatal(err)
		}
		again, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: exported.GetManifest()})
		if err != nil || len(again.GetChanges()) > 0 {
			rt.Fatalf("applying what was exported changed %v: %v", again, err)
		}
		if proto.Size(tool.GetCapability()) == 0 {
			tool.Capability = nil
		}
		if proto.Size(tool.GetHealth()) == 0 {
			tool.Health = nil
		}
		for _, got := range exported.GetManifest().GetTools() {
			if got.GetToolId() == "git" && (!proto.Equal(got.GetCapability(), tool.GetCapability()) || !proto.Equal(got.GetHealth(), tool.GetHealth())) {
				rt.Errorf("got %v, want %v", got, tool)
			}
		}
		for _, got := range exported.GetManifest().GetToolTypes() {
			for _, f := range got.GetFunctions() {
				if len(f.GetDigest()) != 64 {
					rt.Errorf("%s has the digest %q", f.GetName(), f.GetDigest())
				}
				f.Digest = ""
			}
			if got.GetToolTypeId() == "git" && !slices.EqualFunc(got.GetFunctions(), toolType.GetFunctions(), func(a, b *v1.McpFunction) bool { return proto.Equal(a, b) }) {
				rt.Errorf("got %v, want %v", got, toolType)
			}
		}
		for _, got := range exported.GetManifest().GetGroups() {
			if got.GetGroupId() == "staff" && !slices.Equal(got.GetPermissions(), group.GetPermissions()) {
				rt.Errorf("got %v, want %v", got, group)
			}
		}
	})
}
