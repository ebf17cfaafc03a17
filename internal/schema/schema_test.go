package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolgrant/toolgrant/internal/schema"
)

func TestOtherDocumentsAreNotRead(t *testing.T) {
	for _, reference := range []string{"file:///etc/passwd", "https://example.com/schema.json", "other.json", "/etc/hostname"} {
		document, err := json.Marshal(map[string]string{"$ref": reference})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := schema.Compile(document); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", reference, err)
		}
	}
}

func TestFaults(t *testing.T) {
	s, err := schema.Compile([]byte(`{
		"properties": {"a": {"items": {"required": ["b"]}}, "c d": {"properties": {"e.f": {"type": "string"}}}, "0": {"maximum": 1}},
		"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for document, want := range map[string][]string{
		`{"x": 1, "a": [{"b": 1}]}`:       nil,
		`{}`:                              {"$: missing property 'x'", "$: missing property 'y'"},
		`{"x": 1, "a": [{"b": 1}, {}]}`:   {"$.a[1]: missing property 'b'"},
		`{"x": 1, "c d": {"e.f": 7}}`:     {`$["c d"]["e.f"]: got number, want string`},
		`{"x": 1, "0": 2}`:                {"$.0: maximum: got 2, want 1"},
		`{"x": 1, "a": [{}, {}, {}, {}]}`: {"$.a[0]: missing property 'b'", "$.a[1]: missing property 'b'", "$.a[2]: missing property 'b'"},
	} {
		var value any
		if err := json.Unmarshal([]byte(document), &value); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, fault := range s.Check(value, 3) {
			got = append(got, fault.Path+": "+fault.Description)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}
