package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const world = `
tool_types:
  - {tool_type_id: clock, source: TOOL_SOURCE_NATIVE}
  - {tool_type_id: weather, source: TOOL_SOURCE_NATIVE, config_schema: {type: object, properties: {days: {type: integer}}}}
tools:
  - {tool_id: clock, tool_type_id: clock, name: clock, core: true}
  - tool_id: weather
    tool_type_id: weather
    name: weather
    prompt: "Ask for the place.\nNever guess.\nBe brief."
    config: {days: 3}
    keywords: [rain, sun]
device_types:
  - {device_type_id: phone, capabilities: [display], tool_ids: [clock, weather]}
groups:
  - {group_id: premium, grant_tool_ids: [weather]}
avatars:
  - {avatar_id: helper, title: Helper, tool_ids: [weather]}
default_avatars:
  - {avatar_id: helper}
users:
  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: premium, expire_time: "2030-01-01T00:00:00Z"}]}
  - {user_id: bob}
`

func TestApplyShowsWhatChanges(t *testing.T) {
	o := serve(t)
	o.expect(t, `
+ users ann
+ users bob
+ tool_types clock
+ tool_types weather
+ tools clock
+ tools weather
+ device_types phone
+ groups premium
+ avatars helper
+ default_avatars *,*
10 created, 0 updated, 0 deleted
`, world, "apply", "-f", "-")
	o.expect(t, "nothing to change", world, "apply", "-f", "-")

	changed := strings.NewReplacer(
		"Never guess.", "Never ever guess.", "days: 3", "days: 5", "[rain, sun]", "[sun, wind]",
		"title: Helper", "title: Butler", "  - {user_id: bob}", "", "name: clock,", "name: the.clock,",
		"priority: 0", "priority: 1").Replace(world)
	diff := `
~ tools clock
    name: "clock" → "the.clock"
~ tools weather
    config.days: 3 → 5
    keywords: - "rain"
    keywords: + "wind"
    prompt: 41 → 46 bytes
      @@ -1,3 +1,3 @@
       Ask for the place.
      -Never guess.
      +Never ever guess.
       Be brief.
~ avatars helper
    title: "Helper" → "Butler"
- users bob
warning: standard input:6:49: tools[0].name: some model providers accept at most 64 characters, and no dot
`
	o.expect(t, diff+"0 to create, 3 to update, 1 to delete (dry run: nothing was written)",
		changed, "apply", "-f", "-", "--prune", "--dry-run")
	o.expect(t, diff+"0 created, 3 updated, 1 deleted", changed, "apply", "-f", "-", "--prune")
	if out := o.run(t, world, "apply", "-f", "-", "--dry-run", "-o", "json"); !strings.Contains(out, "CHANGE_ACTION_CREATE") {
		t.Errorf("got %s", out)
	}
}

func TestApplyShowsWhatChangesInParts(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	o.expect(t, `
~ users ann
    memberships[premium].expire_time: "2030-01-01T00:00:00Z" → "2031-01-01T00:00:00Z"
~ tools weather
    quotas: + {"limit":10,"on_abandoned":"GIVE_BACK","on_outage":"DENY","quota_id":"a","scope":"USER","shadow":false,"unit":"CALLS","warn_at":0.8,"window":{"fixed":"60s"}}
    quotas: + {"limit":2,"on_abandoned":"GIVE_BACK","on_outage":"DENY","quota_id":"b","scope":"NODE","shadow":false,"unit":"CONCURRENT_CALLS","warn_at":0.8}
0 created, 2 updated, 0 deleted`, rules(`{quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 10, window: {fixed: 60s}},
      {quota_id: b, scope: QUOTA_SCOPE_NODE, unit: QUOTA_UNIT_CONCURRENT_CALLS, limit: 2}`, "2031"), "apply", "-f", "-")
	o.expect(t, `
~ tools weather
    quotas[a].limit: 10 → 20
    quotas[a].window.calendar: unset → {"period":"MONTH","time_zone":"Asia/Shanghai"}
    quotas[a].window.fixed: "60s" → unset
    quotas: - {"limit":2,"on_abandoned":"GIVE_BACK","on_outage":"DENY","quota_id":"b","scope":"NODE","shadow":false,"unit":"CONCURRENT_CALLS","warn_at":0.8}
0 created, 1 updated, 0 deleted`, rules(`{quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 20,
      window: {calendar: {period: CALENDAR_PERIOD_MONTH, time_zone: Asia/Shanghai}}}`, "2031"), "apply", "-f", "-")
	for _, format := range formats {
		o.expect(t, "nothing to change", o.run(t, "", "export", "-o", format), "apply", "-f", "-", "--prune")
	}
	if out := o.run(t, "", "get", "tool", "weather"); !strings.Contains(out, "QUOTAS") || !strings.Contains(out, "│ a      │") {
		t.Errorf("got %s", out)
	}
	_, err := o.try(rules(`{quota_id: a, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 20,
      window: {calendar: {period: CALENDAR_PERIOD_MONTH, time_zone: Asia/Peking}}}`, "2031"), "apply", "-f", "-")
	same(t, explainError(err), `the request breaks rules
standard input:14:69: tools[1].quotas[0].window.calendar.time_zone: no such time zone "Asia/Peking"`)
}

// rules is the world with quotas of the weather, and another year for Ann's membership to end.
func rules(quotas, year string) string {
	return strings.NewReplacer("    keywords: [rain, sun]", "    keywords: [rain, sun]\n    quotas: ["+quotas+"]", "2030", year).Replace(world)
}

func TestApplyingAnExportChangesNothing(t *testing.T) {
	o := serve(t)
	o.run(t, world+`  - {user_id: "007", devices: [{device_id: "1e3", device_type_id: phone}]}
mcp_servers:
  - {mcp_server_id: "yes", endpoint: "http://localhost", headers_from_env: {"null": TOKEN}}
`, "apply", "-f", "-")
	o.run(t, `tools: [{tool_id: "0x10", tool_type_id: weather, name: "1",
  title: "\u2028 # x", description: " a: b\r\n\t\u0085\u007f\ufeff ", config: {"~": "1e3", "a.b": [null, 0.1, "no"], "\u2029": {}}}]`, "apply", "-f", "-")
	for _, format := range formats {
		exported := o.run(t, "", "export", "-o", format)
		o.expect(t, "nothing to change", exported, "apply", "-f", "-", "--prune")
	}
}

func TestFaultsOfTheServerStandWhereTheFileIsWrong(t *testing.T) {
	o := serve(t)
	o.run(t, world, "apply", "-f", "-")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": `tools:
  - {tool_id: weather, tool_type_id: weather, name: weather}
  - tool_id: wind
    tool_type_id: none
    name: wind
`,
		"b.yaml": `# Two documents.
tools:
  - tool_id: weather
    toolTypeId: weather
    name: weather
    config:
      days: many
---
users:
  - user_id: ann
    memberships: [{group_id: premium}, {group_id: gone}, {group_id: also-gone}]
tools: [{tool_id: nameless, tool_type_id: clock}]
`,
		"c/d.json":    "{\"groups\": [{\"group_id\": \"g\",\n  \"grant_tool_ids\": [\"weather\", \"lost\"]}]}",
		".hidden.yml": "wrong: 1",
		"notes.txt":   "wrong: 1",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := o.try("", "apply", "-f", dir)
	same(t, strings.ReplaceAll(explainError(err), dir+"/", ""), `the request breaks rules
b.yaml:12:9: tools[0].name: must be 1 to 128 of the characters A-Z a-z 0-9 _ . -
c/d.json:2:33: groups[0].grant_tool_ids[1]: no such tool "lost"
a.yaml:4:19: tools[1].tool_type_id: no such tool type "none"
b.yaml:7:13: tools[0].config.days: got string, want integer
b.yaml:3:14: tools[0].tool_id: "weather" occurs twice: first in a.yaml:2:5: tools[0]
b.yaml:11:51: users[0].memberships[1].group_id: no such group "gone"
b.yaml:11:69: users[0].memberships[2].group_id: no such group "also-gone"`)

	_, err = o.try("tool_types: [{tool_type_id: weather, source: TOOL_SOURCE_NATIVE, config_schema: {required: [city]}}]", "apply", "-f", "-")
	same(t, explainError(err), `the request breaks rules
stored tool weather.config: missing property 'city'`)
}
