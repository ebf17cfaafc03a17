package call_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/call"
)

var acceptable = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func FuzzUniqueName(f *testing.F) {
	f.Add("a__b", "c", "a", "b__c")
	f.Add("a_", "b", "a", "_b")
	f.Add("a.b", "c", "a_b", "c")
	f.Add(strings.Repeat("a", 64), "b", strings.Repeat("a", 65), "b")
	f.Fuzz(func(t *testing.T, tool, function, otherTool, otherFunction string) {
		one, other := call.UniqueName(tool, function), call.UniqueName(otherTool, otherFunction)
		if !acceptable.MatchString(one) {
			t.Fatalf("%q", one)
		}
		if (one == other) != (tool == otherTool && function == otherFunction) {
			t.Fatalf("%q, %q: %q; %q, %q: %q", tool, function, one, otherTool, otherFunction, other)
		}
	})
}

func FuzzArguments(f *testing.F) {
	facts := asked(f, `{"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#"}}, "b": {"pattern": "^x"}},
		"required": ["b"], "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "object", "maxProperties": 2}]}}`)
	for _, seed := range []string{`{}`, `{"b": "x", "a": [{}, 7]}`, `{"b": "y", "c d": null}`, `{"b": "x", "c": {"d": {"e": 1, "f": 2, "g": 3}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var arguments map[string]any
		if json.Unmarshal(data, &arguments) != nil || arguments == nil {
			t.Skip()
		}
		a := call.Decide(&facts, &call.Request{Call: "c", Function: "tool", Arguments: arguments})
		if (a.Decision == call.Allow) != (len(a.Next.Faults) == 0) || len(a.Next.Faults) > 16 {
			t.Fatalf("%s with %d faults", a.Decision, len(a.Next.Faults))
		}
		for _, fault := range a.Next.Faults {
			if !strings.HasPrefix(fault.Path, "$") || fault.Description == "" || len(fault.Description) > 300 {
				t.Fatalf("%+v", fault)
			}
		}
	})
}
