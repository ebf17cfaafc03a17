package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// An answer of Toolgrant's own functions, as a model reads it.
type findings struct {
	Matches []struct {
		Name    string
		Enabled bool
	}
	Enabled []struct {
		Name      string
		TTLTurns  int `json:"ttl_turns"`
		Functions []sdk.Tool
		Note      string
	}
	Rejected []struct {
		Reason       string
		NextStep     string   `json:"next_step"`
		NearestNames []string `json:"nearest_names"`
	}
	NextStep string `json:"next_step"`
	Message  string
}

// find calls one of Toolgrant's own functions.
func find(t *testing.T, ctx context.Context, s *sdk.ClientSession, name string, arguments map[string]any) (findings, bool) {
	t.Helper()
	text, structured, isError := call(t, ctx, s, name, arguments)
	var f findings
	if isError && json.Unmarshal([]byte(text), &f) != nil {
		return findings{Message: text}, true
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%s answers %q: %v", name, text, err)
	}
	var again any
	_ = json.Unmarshal([]byte(text), &again)
	if fmt.Sprint(again) != fmt.Sprint(structured) {
		t.Errorf("%s says %s, and as structured content %v", name, text, structured)
	}
	return f, isError
}

// A model searches, turns on what it finds, and calls it at once. Only in the older protocol does that change the list.
func TestAModelFindsTurnsOnAndCalls(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			changed := make(chan struct{}, 64)
			chat := "find-" + version
			s := b.connect(t, as{"toolgrant-user": "ann", "toolgrant-chat": chat}, version, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }})
			before := tools(t, b.ctx, s)
			found, _ := find(t, b.ctx, s, "tool_search", map[string]any{"query": "find a route"})
			var names []string
			for _, m := range found.Matches {
				names = append(names, m.Name)
				if m.Enabled != (m.Name == "maps") {
					t.Errorf("%s is enabled: %v", m.Name, m.Enabled)
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, []string{"b", "maps"}) || !strings.Contains(found.NextStep, "tool_enable") { // and not the clock, which nobody runs here
				t.Errorf("it finds %+v", found)
			}
			turned, isError := find(t, b.ctx, s, "tool_enable", map[string]any{"names": []string{"b", "maps_tool", "clock"}, "ttl_turns": 2})
			if isError || len(turned.Enabled) != 2 || turned.Enabled[0].TTLTurns != 2 || len(turned.Enabled[0].Functions) != 5 {
				t.Fatalf("it turns on %+v", turned)
			}
			route := turned.Enabled[0].Functions[0]
			if schema, _ := route.InputSchema.(map[string]any); route.Name != "b__route" || route.Description != "Finds a route." || schema["properties"] == nil || !route.Annotations.ReadOnlyHint {
				t.Errorf("a function is described as %+v", route)
			}
			if clock := turned.Enabled[1]; clock.Name != "clock" || len(clock.Functions) > 0 || !strings.Contains(clock.Note, "cannot be called here") {
				t.Errorf("the clock is described as %+v", clock)
			}
			if len(turned.Rejected) != 1 || turned.Rejected[0].Reason != "UNKNOWN_NAME" || turned.Rejected[0].NextStep == "" || !slices.Contains(turned.Rejected[0].NearestNames, "maps") {
				t.Errorf("it refuses %+v", turned.Rejected)
			}
			if text, _, isError := call(t, b.ctx, s, "b__route", map[string]any{"to": "Rome"}); isError || text != `by {"to":"Rome"}` {
				t.Errorf("called at once, it answers %q", text)
			}
			if version >= "2026" {
				if after := tools(t, b.ctx, s); !slices.Equal(after, before) {
					t.Errorf("a request changed the list from %v to %v", before, after)
				}
			} else {
				await(t, b.ctx, "list_changed, and the new list", func() bool {
					select {
					case <-changed:
						return slices.Contains(tools(t, b.ctx, s), "b__route")
					default:
						return false
					}
				})
			}
			entries, err := v1.NewChatServiceClient(b.Conn).ListChatLog(b.ctx, &v1.ListChatLogRequest{ChatId: chat})
			if err != nil {
				t.Fatal(err)
			}
			if last := entries.GetEntries()[len(entries.GetEntries())-1]; last.GetActor() != v1.ChatActor_CHAT_ACTOR_MODEL || last.GetTtlTurns() != 2 {
				t.Errorf("the log's last entry is %v", last)
			}
		})
	}
}

func TestWrongArgumentsOfTheOwnFunctionsAreTold(t *testing.T) {
	url, _, _ := maps(t)
	b := gateway(t, fmt.Sprintf(world, url))
	s := b.connect(t, ann, "", nil)
	for name, arguments := range map[string][]map[string]any{
		"tool_search": {{}, {"query": " "}, {"query": 7}, {"query": "x", "top_k": 51}, {"query": "x", "top_k": -1}},
		"tool_enable": {{}, {"names": []string{}}, {"names": "b"}, {"names": []string{"b"}, "ttl_turns": 0}, {"names": []string{""}}},
	} {
		for _, a := range arguments {
			if f, isError := find(t, b.ctx, s, name, a); !isError || f.Message == "" {
				t.Errorf("%s %v: %+v", name, a, f)
			}
		}
	}
	if f, isError := find(t, b.ctx, s, "tool_enable", map[string]any{"names": []string{"nothing"}}); !isError || len(f.Rejected) != 1 {
		t.Errorf("nothing was turned on: %+v", f)
	}
	if _, err := b.connect(t, as{"toolgrant-user": "nobody", "toolgrant-chat": "c"}, "", nil).CallTool(b.ctx,
		&sdk.CallToolParams{Name: "tool_search", Arguments: map[string]any{"query": "x"}}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown user's search: %v", err)
	}
}
