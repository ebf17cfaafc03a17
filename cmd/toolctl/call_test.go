package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

const callWorld = `
tool_types: [{tool_type_id: t, source: TOOL_SOURCE_NATIVE, tool_class: Clock}]
tools:
  - {tool_id: now, tool_type_id: t, name: now, title: Now, config: {zone: UTC}, quotas: [{quota_id: one, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 1, window: {fixed: "3600s"}}]}
  - {tool_id: wipe, tool_type_id: t, name: wipe, title: Wipe, risk: TOOL_RISK_HIGH}
  - {tool_id: off, tool_type_id: t, name: "off", title: "Off"}
device_types: [{device_type_id: phone, tool_ids: [now, wipe, "off"]}]
avatars: [{avatar_id: a, tool_ids: [now, wipe]}]
default_avatars: [{avatar_id: a}]
users: [{user_id: ann, devices: [{device_id: p, device_type_id: phone}]}]
`

func TestCallsAreAskedForAndReported(t *testing.T) {
	n := node.Start(t, testkit.Database(t), node.Options{})
	o := operator{testkit.Context(t), n.Address}
	o.run(t, callWorld, "apply", "-f", "-")
	refused := func(status int, args ...string) string {
		t.Helper()
		var out strings.Builder
		err := run(o.ctx, append([]string{"--addr", o.address}, args...), strings.NewReader(""), &out, io.Discard)
		if want := (*refusedCall)(nil); !errors.As(err, &want) || exitStatus(err) != status {
			t.Errorf("%v, %d, want %d", err, exitStatus(err), status)
		}
		return out.String()
	}
	contains := func(got string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout %q", got, want)
			}
		}
	}
	contains(o.run(t, "", "call", "authorize", "now", "--user", "ann", "--call-id", "c1"),
		"ALLOW", `native Clock, configured {"zone":"UTC"}`, "No source was named", "held", "one")
	contains(refused(exitExhausted, "call", "authorize", "now", "--user", "ann"), "DENY: quota_exhausted", "A quota of “Now” is used up", "配额已用完", "try again in")
	contains(o.run(t, "", "call", "report", "c1", "cancelled", "--latency", "2s"), "reported\n", "one")
	contains(o.run(t, "", "call", "report", "c1", "cancelled"), "reported before, alike")
	contains(refused(exitRefused, "call", "authorize", "wipe", "--user", "ann", "--arguments", `{"path": "/"}`), "NEEDS_APPROVAL: approval_required", "toolctl approvals approve")
	contains(refused(exitRefused, "call", "authorize", "off", "--user", "ann", "--call-id", "c2"), "not_enabled", "toolctl chat", "enable:c2")
	contains(refused(exitMissing, "call", "authorize", "nothing", "--user", "ann", "--dry-run"), "unknown_function")
	contains(refused(exitRefused, "call", "authorize", "wipe", "--user", "ann", "-o", "json"), `"decision": "CALL_DECISION_NEEDS_APPROVAL"`)
	if err := run(o.ctx, []string{"--addr", o.address, "call", "report", "c1", "well"}, strings.NewReader(""), io.Discard, io.Discard); err == nil {
		t.Error("no such outcome")
	}
}
