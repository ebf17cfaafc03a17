package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// toolType reads a tool type as it is stored.
func (o operator) toolType(t *testing.T, name string) *v1.ToolType {
	t.Helper()
	got := &v1.GetToolTypeResponse{}
	if err := protojson.Unmarshal([]byte(o.run(t, "", "get", "tool-type", name, "-o", "json")), got); err != nil {
		t.Fatal(err)
	}
	return got.GetToolType()
}

// applyToolType writes a tool type, whatever is stored.
func (o operator) applyToolType(t *testing.T, toolType *v1.ToolType) {
	t.Helper()
	toolType.Etag = ""
	manifest, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&v1.Manifest{ToolTypes: []*v1.ToolType{toolType}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "changed.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	o.run(t, "", "apply", "-f", file)
}

func TestPublishedServersAreImported(t *testing.T) {
	o := serve(t)
	folder := t.TempDir()
	for _, test := range []struct {
		name, arguments string
		function        string // one of them
		risk            string // of that one, as its annotations tell
		atLeast         int
	}{
		{name: "everything", function: "echo", atLeast: 5},
		{name: "filesystem", arguments: " " + folder, function: "read_text_file", risk: "read_only_hint", atLeast: 10},
		{name: "memory", function: "create_entities", atLeast: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := []string{"mcp", "import", "--stdio", testkit.MCPServer(t, test.name) + test.arguments, "--server", test.name}
			preview := o.run(t, "", append(from, "--dry-run")...)
			if !strings.Contains(preview, "+ tool_types "+test.name+"\n") || !strings.Contains(preview, "3 to create") {
				t.Errorf("it shows\n%s", preview)
			}
			if _, err := o.try("", "get", "tool-type", test.name); exitStatus(err) != exitMissing {
				t.Errorf("a dry run wrote: %v", err)
			}
			o.run(t, "", from...)
			stored := o.toolType(t, test.name)
			if len(stored.GetFunctions()) < test.atLeast || stored.GetMcpServerId() != test.name || stored.GetSource() != v1.ToolSource_TOOL_SOURCE_EXTERNAL_MCP {
				t.Errorf("stored is %v", stored)
			}
			found := false
			for _, f := range stored.GetFunctions() {
				if len(f.GetDigest()) != 64 || f.GetDescription() == "" || f.GetInputSchema().GetFields()["type"].GetStringValue() != "object" {
					t.Errorf("a function is stored as %v", f)
				}
				if f.GetName() == test.function {
					found = true
					if hint, _ := json.Marshal(f.GetAnnotations()); test.risk != "" && !strings.Contains(string(hint), `"read_only_hint":true`) {
						t.Errorf("%s has the annotations %s", f.GetName(), hint)
					}
				}
			}
			if !found {
				t.Errorf("there is no %s in %v", test.function, stored.GetFunctions())
			}
			// Again, from where it was imported.
			if again := o.run(t, "", "mcp", "import", "--server", test.name); !strings.HasPrefix(again, "nothing to change\n") {
				t.Errorf("importing again changes\n%s", again)
			}
		})
	}
}

func TestImportKeepsWhatTheOperatorSays(t *testing.T) {
	o := serve(t)
	command := testkit.MCPServer(t, "memory")
	o.run(t, "", "mcp", "import", "--stdio", command, "--server", "memory", "--tool", "memory.work", "--name", "memo", "--title", "Memory")
	stored := o.toolType(t, "memory")
	stored.Functions = stored.Functions[1:]
	stored.Functions[0].Risk, stored.Functions[1].Description = v1.ToolRisk_TOOL_RISK_MEDIUM, "An older text."
	stored.Disabled = true
	o.applyToolType(t, stored)

	shown := o.run(t, "", "mcp", "import", "--server", "memory")
	if !strings.Contains(shown, "~ tool_types memory\n") || !strings.Contains(shown, "].description:") || !strings.Contains(shown, "functions: + ") ||
		!strings.Contains(shown, "0 created, 1 updated, 0 deleted") {
		t.Errorf("it shows\n%s", shown)
	}
	now := o.toolType(t, "memory")
	if !now.GetDisabled() || len(now.GetFunctions()) != len(stored.GetFunctions())+1 {
		t.Errorf("stored is %v", now)
	}
	for _, f := range now.GetFunctions() {
		if f.GetName() == stored.GetFunctions()[0].GetName() && f.GetRisk() != v1.ToolRisk_TOOL_RISK_MEDIUM {
			t.Errorf("the operator's judgement of %s is gone", f.GetName())
		}
		if f.GetDescription() == "An older text." {
			t.Errorf("%s has its older text", f.GetName())
		}
	}
	same(t, o.run(t, "", "get", "tool", "memory.work", "-o", "json")[:1], "{")
}

func TestImportTellsWhyItCannot(t *testing.T) {
	o := serve(t)
	for want, args := range map[string][]string{
		"could not be started": {"--stdio", "/no/such/command"},
		"quote it":             {"--stdio", "echo $HOME"},
		"connection refused":   {"--url", "http://127.0.0.1:1/mcp"},
		"MAPS_TOKEN_OF_A_TEST": {"--url", "http://127.0.0.1:1/mcp", "--from-env", "Authorization=MAPS_TOKEN_OF_A_TEST"},
		"no such mcp_server":   {"--server", "nobody"},
		"it wrote: gone wrong": {"--stdio", "sh -c 'echo gone wrong >&2; exit 3'"},
		"within 300ms":         {"--stdio", "sleep 60", "--timeout", "300ms"},
	} {
		if _, err := o.try("", append([]string{"mcp", "import"}, args...)...); err == nil || !strings.Contains(strings.ToLower(explainError(err)), strings.ToLower(want)) {
			t.Errorf("%v: %v, want it to tell %q", args, err, want)
		}
	}
}
