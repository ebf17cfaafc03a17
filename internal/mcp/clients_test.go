package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/testkit"
)

// journeyWorld has two tools to be found: b with a quota, and c, a function of which needs an approval.
const journeyWorld = `
mcp_servers: [{mcp_server_id: maps, endpoint: "%s"}]
tool_types:
  - tool_type_id: maps
    source: TOOL_SOURCE_EXTERNAL_MCP
    mcp_server_id: maps
    functions: [{name: route, description: Plans a route., risk: TOOL_RISK_LOW}, {name: wipe, description: Wipes all.}]
tools:
  - {tool_id: b, tool_type_id: maps, name: b, quotas: [{quota_id: few, scope: QUOTA_SCOPE_USER, unit: QUOTA_UNIT_CALLS, limit: 2, window: {fixed: "3600s"}}]}
  - {tool_id: c, tool_type_id: maps, name: c}
groups: [{group_id: all, grant_tool_ids: [b, c]}]
users: [{user_id: ann, memberships: [{group_id: all}]}]
`

// step is what a client tells of a step of its way.
type step struct {
	Step       string
	Names      []string
	Schemas    bool
	Changed    bool
	Asked      int
	Text       string
	Structured map[string]any
	IsError    bool
}

// journey checks, step by step, the way of a client: what it sees, and what it is answered.
type journey struct {
	b       bundle
	version string
	calls   int
}

func (j *journey) check(t *testing.T, s step) {
	t.Helper()
	functions := []string{"b__route", "b__wipe", "c__route", "c__wipe"}
	fail := func(want string) {
		t.Helper()
		t.Fatalf("%s: %+v; want %s", s.Step, s, want)
	}
	switch s.Step {
	case "list":
		want := own
		if s.Changed {
			want = slices.Concat(own, functions)
		}
		if !slices.Equal(s.Names, want) {
			fail(fmt.Sprint(want))
		}
	case "search":
		if slices.Sort(s.Names); !slices.Equal(s.Names, []string{"b", "c"}) {
			fail("both tools")
		}
	case "enable":
		if !slices.Equal(s.Names, functions) || !s.Schemas {
			fail("all functions, with their schemas")
		}
	case "call":
		j.calls++
		if over := j.calls > 2; s.IsError != over || over && (s.Structured["reason"] != "CALL_REASON_QUOTA_EXHAUSTED" || !strings.Contains(s.Text, "again after")) {
			fail("two calls, and then a refusal")
		}
	case "approve":
		if s.IsError || s.Text != "wiped" || s.Asked != 1 {
			fail("that the user is asked once, and the call is made")
		}
	case "wait":
		if !s.IsError || s.Structured["approval_id"] == nil || !strings.Contains(s.Text, s.Structured["approval_id"].(string)) {
			fail("what to wait for")
		}
		j.b.decide(t, s.Structured["approval_id"], true)
	case "approved":
		if s.IsError || s.Text != "wiped" {
			fail("that the call is made")
		}
	default:
		fail("no such step")
	}
}

// steps are all of them, in order.
var steps = []string{"list", "search", "enable", "list", "call", "call", "call", "approve", "wait", "approved"}

func TestTheTypeScriptSDKsClientsGoAllTheWay(t *testing.T) {
	script := testkit.NodeScript(t, "testdata/client.mjs")
	url, _, _ := maps(t)
	for _, client := range [][2]string{{"sdk", "2025-11-25"}, {"client", "2025-11-25"}, {"client", "2026-07-28"}} {
		t.Run(strings.Join(client[:], " "), func(t *testing.T) {
			b := gateway(t, fmt.Sprintf(journeyWorld, url))
			command := exec.CommandContext(b.ctx, "node", script, client[0], client[1], b.url, "journey")
			var said bytes.Buffer
			command.Stderr = &said
			in, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = command.Process.Kill() // no harm where it has ended
				_ = command.Wait()
			}()
			j, told := &journey{b: b, version: client[1]}, json.NewDecoder(out)
			for _, want := range steps {
				var s step
				if err := told.Decode(&s); err != nil {
					_ = command.Wait()
					t.Fatalf("%v before it told of %s: %s", err, want, &said)
				}
				if s.Step != want {
					t.Fatalf("it tells of %s, want %s", s.Step, want)
				}
				if s.Changed && client[1] >= "2026" {
					t.Error("a request changed the list")
				}
				j.check(t, s)
				if s.Step == "wait" {
					fmt.Fprintln(in)
				}
			}
			if err := command.Wait(); err != nil {
				t.Errorf("%v: %s", err, &said)
			}
		})
	}
}

func TestTheGoSDKsClientGoesAllTheWay(t *testing.T) {
	url, _, _ := maps(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			b := gateway(t, fmt.Sprintf(journeyWorld, url))
			j, asked, changed := &journey{b: b, version: version}, 0, make(chan struct{}, 64)
			s := b.connect(t, ann, version, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked++
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve_once"}}, nil
				}})
			other := b.connect(t, ann, version, nil)
			calls := func(s *sdk.ClientSession, name string, arguments map[string]any) step {
				text, structured, isError := call(t, b.ctx, s, name, arguments)
				return step{Text: text, Structured: structured, IsError: isError}
			}
			listed := step{Names: append(slices.Clone(own), tools(t, b.ctx, s)...)}
			for _, name := range steps {
				var now step
				switch name {
				case "list":
					now = listed
				case "search":
					found, _ := find(t, b.ctx, s, "tool_search", map[string]any{"query": "plan a route"})
					for _, m := range found.Matches {
						now.Names = append(now.Names, m.Name)
					}
				case "enable":
					turned, _ := find(t, b.ctx, s, "tool_enable", map[string]any{"names": []string{"b", "c"}})
					now.Schemas = true
					for _, e := range turned.Enabled {
						for _, f := range e.Functions {
							now.Names, now.Schemas = append(now.Names, f.Name), now.Schemas && f.InputSchema != nil
						}
					}
					listed.Changed = version < "2026"
					await(t, b.ctx, "the list", func() bool {
						if listed.Changed && len(changed) == 0 {
							return false
						}
						listed.Names = append(slices.Clone(own), tools(t, b.ctx, s)...)
						return true
					})
				case "call":
					now = calls(s, "b__route", map[string]any{"to": "Rome"})
				case "approve":
					now = calls(s, "c__wipe", map[string]any{"all": true})
					now.Asked = asked
				case "wait", "approved":
					now = calls(other, "c__wipe", map[string]any{"all": false})
				}
				now.Step = name
				j.check(t, now)
			}
		})
	}
}

// nodeOutput runs a script, and returns all that it writes.
func nodeOutput(ctx context.Context, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "node", arguments...).CombinedOutput()
	return string(out), err
}
