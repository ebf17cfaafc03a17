package audit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

var ann = caller.Caller{Actor: "claimed:ann", Reason: "to see", RequestID: "r1"}

// one returns the entry of a plan that changes one object.
func one(t *testing.T, stored, wanted admin.Manifest) audit.Entry {
	t.Helper()
	changes, err := admin.Plan(stored, admin.Edit{Manifest: wanted}, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries := audit.OfChanges(changes, ann)
	if len(entries) != 1 {
		t.Fatalf("got %d entries", len(entries))
	}
	return entries[0]
}

func groups(grants ...id.Tool) admin.Manifest {
	world := admin.Manifest{Definitions: effective.Definitions{ToolTypes: []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}}}
	for _, tool := range grants {
		world.Tools = append(world.Tools, catalog.Tool{ID: tool, Type: "type", Name: "tool"})
	}
	world.Groups = []availability.Group{{ID: "g", Title: "Group", Grants: grants}}
	return world
}

func TestAnEntryTellsWhoDidWhatAndWhy(t *testing.T) {
	stored := groups("a", "b")
	stored.Users = []availability.User{{ID: "ann"}}
	e := one(t, stored, admin.Manifest{Definitions: effective.Definitions{Tools: []catalog.Tool{{ID: "c", Type: "type", Name: "c", Owner: "ann"}}}})
	if e.Caller != ann || e.Action != audit.ActionCreate || e.Kind != "tool" || e.ObjectID != "c" || e.User != "ann" || e.Before != nil {
		t.Errorf("got %+v", e)
	}
	if got, want := text(t, e.After), `{"fields":{"name":"c","owner_user_id":"ann","tool_id":"c","tool_type_id":"type"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e = one(t, stored, admin.Manifest{Definitions: effective.Definitions{Groups: []availability.Group{{ID: "g", Grants: []id.Tool{"b"}}}}})
	if fmt.Sprint(e.ChangedFields) != "[grant_tool_ids title]" || text(t, e.Before) != `{"fields":{"grant_tool_ids":["a","b"],"group_id":"g","title":"Group"}}` ||
		text(t, e.After) != `{"fields":{"grant_tool_ids":["b"],"group_id":"g"}}` {
		t.Errorf("got %v: %s, then %s", e.ChangedFields, text(t, e.Before), text(t, e.After))
	}
}

func TestAToolThatIsTakenFromItsOwnerIsTheOwners(t *testing.T) {
	stored := groups("a")
	stored.Users = []availability.User{{ID: "ann"}}
	stored.Tools = append(stored.Tools, catalog.Tool{ID: "c", Type: "type", Name: "c", Owner: "ann"})
	e := one(t, stored, admin.Manifest{Definitions: effective.Definitions{Tools: []catalog.Tool{{ID: "c", Type: "type", Name: "c"}}}})
	if e.User != "ann" {
		t.Errorf("got %q", e.User)
	}
}

func TestOfALargeObjectTheEntryTellsWhatChanged(t *testing.T) {
	var tools []id.Tool
	for i := range 2000 {
		tools = append(tools, id.Tool(fmt.Sprintf("a-tool-with-quite-a-long-name-so-that-it-takes-room-%04d", i)))
	}
	stored := groups(tools...)
	after := slices.Delete(slices.Clone(tools), 7, 9)
	stored.Tools = append(stored.Tools, catalog.Tool{ID: "new", Type: "type", Name: "new"})
	wanted := []availability.Group{{ID: "g", Title: "Group", Grants: append(after, "new")}}
	e := one(t, stored, admin.Manifest{Definitions: effective.Definitions{Groups: wanted}})
	for _, state := range []*audit.State{e.Before, e.After} {
		if string(state.Fields["title"]) != `"Group"` || state.Fields["grant_tool_ids"] != nil || len(state.Omitted) != 1 || len(text(t, state)) > 1000 {
			t.Fatalf("got %s", text(t, state))
		}
	}
	before, now := e.Before.Omitted[0], e.After.Omitted[0]
	if before.SHA256 == now.SHA256 || before.Field != "grant_tool_ids" || before.Size < 64<<10 {
		t.Errorf("got %+v, then %+v", before, now)
	}
	if fmt.Sprint(before.Items) != fmt.Sprint(tools[7:9]) || before.ItemCount != 2 || fmt.Sprint(now.Items) != "[new]" || now.ItemCount != 1 {
		t.Errorf("got %v, then %v", before.Items, now.Items)
	}
	// All are new: so many are not named.
	stored.Groups = []availability.Group{{ID: "g", Grants: []id.Tool{"new"}}}
	e = one(t, stored, admin.Manifest{Definitions: effective.Definitions{Groups: []availability.Group{{ID: "g", Grants: tools}}}})
	if o := e.After.Omitted[0]; o.ItemCount != 2000 || len(o.Items) < 100 || len(o.Items) > 400 {
		t.Errorf("%d of %d items", len(o.Items), o.ItemCount)
	}
}

func TestNoPasswordIsWritten(t *testing.T) {
	server := catalog.MCPServer{ID: "s", Transport: catalog.TransportStreamableHTTP, Endpoint: "https://ann:hunter2@example.com/mcp",
		HeadersFromEnv: map[string]string{"Authorization": "EXAMPLE_TOKEN"}}
	t.Setenv("EXAMPLE_TOKEN", "hunter2")
	e := one(t, admin.Manifest{}, admin.Manifest{Definitions: effective.Definitions{MCPServers: []catalog.MCPServer{server}}})
	if got := text(t, e.After); strings.Contains(got, "hunter2") || !strings.Contains(got, "https://ann:xxxxx@example.com/mcp") || !strings.Contains(got, "EXAMPLE_TOKEN") {
		t.Errorf("got %s", got)
	}
}

// Whatever an object is, its state is bounded and says of every field what it is or was.
func TestStatesAreBounded(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) catalog.Tool {
		long := func(name string) string {
			return strings.Repeat(rapid.SampledFrom([]string{"x", "é", "<", "\n"}).Draw(t, name), rapid.IntRange(0, 40_000).Draw(t, name+" length"))
		}
		tool := catalog.Tool{ID: "tool", Type: "type", Name: "tool", Description: long("description"), Prompt: long("prompt")}
		for range rapid.IntRange(0, 20).Draw(t, "examples") {
			tool.Examples = append(tool.Examples, strings.Repeat("e", rapid.IntRange(0, 4096).Draw(t, "example")))
		}
		return tool
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw.Draw(t, "before"), draw.Draw(t, "after")
		entries := audit.OfChanges([]admin.Change{{Action: admin.ActionUpdate, Before: before, Object: after}}, ann)
		for i, tool := range []catalog.Tool{before, after} {
			state := []*audit.State{entries[0].Before, entries[0].After}[i]
			size := 0
			for name, value := range state.Fields {
				size += len(name) + len(value)
			}
			if size > 64<<10 {
				t.Errorf("%d bytes are kept", size)
			}
			told := map[string]bool{}
			for name := range state.Fields {
				told[name] = true
			}
			for _, o := range state.Omitted {
				told[o.Field] = true
			}
			for name, set := range map[string]bool{"description": tool.Description != "", "prompt": tool.Prompt != "", "examples": len(tool.Examples) > 0, "tool_id": true} {
				if told[name] != set {
					t.Errorf("%s is told: %t", name, told[name])
				}
			}
		}
	})
}

func text(t *testing.T, state *audit.State) string {
	t.Helper()
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
