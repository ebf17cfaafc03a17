package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

func TestADigestIsOfWhatTheServerSays(t *testing.T) {
	yes, no := true, false
	function := func(change func(*catalog.Function)) string {
		f := catalog.Function{Name: "f", Title: "F", Description: "Does f.", InputSchema: json.RawMessage(`{"type":"object","required":["a","b"]}`),
			Annotations: &catalog.Annotations{ReadOnly: &yes}}
		change(&f)
		return f.Digest()
	}
	digest := function(func(*catalog.Function) {})
	for name, change := range map[string]func(*catalog.Function){
		"another risk": func(f *catalog.Function) { f.Declared = catalog.RiskLow },
		"keys in another order": func(f *catalog.Function) {
			f.InputSchema = json.RawMessage(`{"required": ["a", "b"], "type": "object"}`)
		},
	} {
		if function(change) != digest {
			t.Errorf("%s is another function", name)
		}
	}
	for name, change := range map[string]func(*catalog.Function){
		"name":        func(f *catalog.Function) { f.Name = "g" },
		"title":       func(f *catalog.Function) { f.Title = "" },
		"description": func(f *catalog.Function) { f.Description += " " },
		"schema":      func(f *catalog.Function) { f.InputSchema = json.RawMessage(`{"type":"object","required":["b","a"]}`) },
		"no schema":   func(f *catalog.Function) { f.InputSchema = nil },
		"annotations": func(f *catalog.Function) { f.Annotations.Destructive = &no },
	} {
		if function(change) == digest {
			t.Errorf("another %s is the same function", name)
		}
	}
}

func TestCommandLines(t *testing.T) {
	for line, want := range map[string][]string{
		`npx -y server`:              {"npx", "-y", "server"},
		`"/a folder/x" 'it''s' a\ b`: {"/a folder/x", "its", "a b"},
		`x '$HOME' *.go`:             {"x", "$HOME", "*.go"},
		``:                           nil,
		`x $HOME`:                    nil,
		`x $(id)`:                    nil,
		"x `id`":                     nil,
		`x 'open`:                    nil,
		`""`:                         nil,
	} {
		server := catalog.MCPServer{Endpoint: line}
		got, err := server.CommandLine()
		if (err != nil) != (want == nil) || len(got) != len(want) {
			t.Errorf("%s: %q, %v", line, got, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %q", line, got)
			}
		}
	}
}
