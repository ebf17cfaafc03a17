package call_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/call/calltest"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var (
	functions = []string{"a", "b", "c"}
	risks     = []catalog.Risk{catalog.RiskLow, catalog.RiskMedium, catalog.RiskHigh}
)

// sample is a small random world, a user in it and a call.
type sample struct {
	definitions effective.Definitions
	servers     []catalog.MCPServer
	user        *availability.User
	log         []enable.Entry
	approvals   []approval.Approval
	health      map[call.Subject]call.Condition
	request     call.Request
}

func draw(t *rapid.T) *sample {
	s := &sample{user: &availability.User{ID: "u", Devices: []availability.Device{{ID: "d", Type: "dt"}}}}
	sometimes := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	d := &s.definitions
	d.ToolTypes = []catalog.ToolType{{ID: "native", Source: catalog.SourceNative}, {ID: "internal", Source: catalog.SourceInternalMCP}}
	for i := range 3 {
		server := catalog.MCPServer{ID: id.MCPServer(fmt.Sprint("s", i)), Priority: rapid.Int32Range(0, 1).Draw(t, "priority")}
		s.servers = append(s.servers, server)
		external := catalog.ToolType{ID: id.ToolType(server.ID), Source: catalog.SourceExternalMCP, MCPServer: server.ID}
		for _, name := range functions {
			if !sometimes("lacks the function") {
				external.Functions = append(external.Functions, catalog.Function{Name: name, Declared: rapid.SampledFrom(risks).Draw(t, "declared")})
			}
		}
		d.ToolTypes = append(d.ToolTypes, external)
	}
	var tools []id.Tool
	for i := range rapid.IntRange(1, 10).Draw(t, "tools") {
		tools = append(tools, id.Tool(fmt.Sprint("tool", i)))
	}
	offered := availability.DeviceType{ID: "dt"}
	for _, name := range tools {
		tool := catalog.Tool{ID: name, Type: rapid.SampledFrom(d.ToolTypes).Draw(t, "type").ID, Status: catalog.StatusActive,
			Name: rapid.SampledFrom(append(functions, "s0", "s1", string(name))).Draw(t, "name"), Risk: rapid.SampledFrom(risks).Draw(t, "risk"),
			Owner: rapid.SampledFrom([]id.User{"", "", "u", "other"}).Draw(t, "owner"), Precedence: rapid.Int32Range(0, 1).Draw(t, "precedence")}
		tool.Core = tool.Owner == "" && sometimes("core")
		if sometimes("requires") {
			tool.Capability.Requires = []string{"network"}
		}
		tool.Capability.Fallback = rapid.SliceOfNDistinct(rapid.SampledFrom(tools), 0, 2, rapid.ID).Draw(t, "fallback")
		if !sometimes("not offered") && tool.Owner == "" {
			offered.Tools = append(offered.Tools, name)
		}
		if !sometimes("not enabled") && tool.Owner != "other" {
			s.log = append(s.log, enable.Entry{Sequence: int32(len(s.log) + 1), Tool: name, Action: enable.ActionEnable})
		}
		d.Tools = append(d.Tools, tool)
	}
	d.DeviceTypes = []availability.DeviceType{offered}
	for i := range rapid.IntRange(0, 6).Draw(t, "approvals") {
		p := calltest.Approval{ID: fmt.Sprint("approval", i), User: "u", Chat: "chat", Call: fmt.Sprint("other", i),
			Tool: string(rapid.SampledFrom(tools).Draw(t, "of")), Function: rapid.SampledFrom(functions).Draw(t, "for"),
			Scope: rapid.SampledFrom([]string{"ONCE", "CHAT"}).Draw(t, "scope"),
			State: rapid.SampledFrom([]string{"APPROVED", "APPROVED", "PENDING", "DENIED"}).Draw(t, "state")}
		if i == 0 { // a call asks once
			p.Call = "call"
		}
		s.approvals = append(s.approvals, p.Made(noon, nil))
	}
	s.health = map[call.Subject]call.Condition{}
	for _, tool := range tools {
		if sometimes("down") {
			s.health[call.Subject{Tool: tool}] = call.Condition{State: call.Open, RetryAfter: time.Minute}
		}
	}
	names := slices.Clone(functions)
	if i := slices.IndexFunc(d.Tools, func(t catalog.Tool) bool { return strings.HasPrefix(string(t.Type), "s") }); i >= 0 {
		names = append(names, call.UniqueName(d.Tools[i].Name, "a"))
	}
	s.request = call.Request{Call: "call", Chat: "chat", Function: rapid.SampledFrom(names).Draw(t, "function"),
		Source: rapid.SampledFrom([]string{"", "", "", "native", "native", "s0", "s1", "nowhere"}).Draw(t, "source")}
	return s
}

// decide compiles the world and decides.
func (s *sample) decide(t *rapid.T) (*effective.World, *effective.Answer, call.Answer) {
	world, err := effective.Compile(s.definitions)
	if err != nil {
		t.Fatal(err)
	}
	answer := world.Resolve(effective.Question{User: s.user, Surface: availability.Web, Chat: enable.State{}.Fold(s.log...), Now: noon})
	f := call.Facts{Index: call.Compile(world.Catalog, s.servers), Answer: answer, User: s.user.ID, Now: noon,
		Approvals: func(*approval.Call) []approval.Approval { return s.approvals },
		Health:    func(subject call.Subject) call.Condition { return s.health[subject] }}
	return world, answer, call.Decide(&f, &s.request)
}

// granted tells whether a person approved calls of some function of a tool, other than for one other call.
func (s *sample) granted(tool id.Tool) bool {
	return slices.ContainsFunc(s.approvals, func(p approval.Approval) bool {
		return p.Tool == tool && p.State(noon) == approval.Approved && (p.Decision.Scope == approval.Chat || p.Call.ID == s.request.Call)
	})
}

func TestWhatIsAllowedPassedEveryStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		world, answer, a := s.decide(t)
		if a.Decision != call.Allow {
			if a.Reason == call.ReasonNone || a.Message == "" || a.MessageZH == "" || len(a.Trace) == 0 {
				t.Fatalf("a refusal that does not say why: %+v", a)
			}
			return
		}
		n, _ := world.Catalog.Number(a.Tool)
		tool := world.Catalog.Tool(n)
		switch {
		case !answer.Effective.Test(n):
			t.Fatal("not effective")
		case len(tool.Capability.Requires) > 0:
			t.Fatal("a precondition does not hold")
		case a.Risk != catalog.RiskLow && !answer.Enable.ByChat.Test(n):
			t.Fatal("nobody enabled it")
		case a.Risk == catalog.RiskHigh && (a.Approval == "" || !s.granted(a.Tool)):
			t.Fatal("nobody approved it")
		case tool.Risk == catalog.RiskHigh && a.Risk != catalog.RiskHigh:
			t.Fatal("the risk was lowered")
		case s.health[call.Subject{Tool: a.Tool}].State == call.Open:
			t.Fatal("it is down")
		}
	})
}

func TestAFallbackCanBeUsedAndIsNotRiskier(t *testing.T) {
	level := map[catalog.Risk]int{catalog.RiskLow: 0, catalog.RiskMedium: 1, catalog.RiskHigh: 2}
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		world, answer, a := s.decide(t)
		seen := map[id.Tool]bool{a.Tool: true}
		for _, name := range a.Fallback {
			n, ok := world.Catalog.Number(name)
			if !ok || seen[name] || !answer.Effective.Test(n) || s.health[call.Subject{Tool: name}].State == call.Open {
				t.Fatalf("%s cannot stand in for %s", name, a.Tool)
			}
			seen[name] = true
			if level[world.Catalog.Tool(n).Risk] > level[a.Risk] && !s.granted(name) {
				t.Fatalf("%s is riskier than %s", name, a.Tool)
			}
		}
	})
}

func TestTheOrderOfFactsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		_, _, before := s.decide(t)
		s.definitions.Tools = rapid.Permutation(s.definitions.Tools).Draw(t, "tools")
		slices.Reverse(s.definitions.ToolTypes)
		slices.Reverse(s.servers)
		s.approvals = rapid.Permutation(s.approvals).Draw(t, "approvals in another order")
		_, _, after := s.decide(t)
		if a, b := text(t, before), text(t, after); a != b {
			t.Fatalf("%s, then %s", a, b)
		}
	})
}

func TestAUniqueNameIsThatOfItsTool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		world, answer, _ := s.decide(t)
		for n := range answer.Effective.EachSet() {
			tool := world.Catalog.Tool(n)
			for _, f := range world.Catalog.Type(n).Functions {
				s.request.Function, s.request.Source = call.UniqueName(tool.Name, f.Name), ""
				if _, _, a := s.decide(t); a.Tool != tool.ID || a.Function != f.Name {
					t.Fatalf("%s is %s of %s, not %s of %s", s.request.Function, a.Function, a.Tool, f.Name, tool.ID)
				}
			}
		}
	})
}

func TestThereIsOneNextStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _, a := draw(t).decide(t)
		var steps int
		for _, set := range []bool{a.Next.Enable != nil, a.Next.Approve, a.Next.RetryAfter > 0, len(a.Next.Fallback) > 0, len(a.Next.Faults) > 0, len(a.Next.Sources) > 0} {
			if set {
				steps++
			}
		}
		if steps > 1 || (a.Decision == call.Allow && steps > 0) || (a.Decision == call.NeedsApproval) != a.Next.Approve {
			t.Fatalf("%s: %+v", a.Decision, a.Next)
		}
	})
}

func TestOthersPrivateToolsAreNotTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		_, _, a := s.decide(t)
		for _, tool := range s.definitions.Tools {
			if tool.Owner == "other" && strings.Contains(text(t, a), fmt.Sprintf("%s ", tool.ID)) {
				t.Fatalf("%s is told of: %s", tool.ID, text(t, a))
			}
			if tool.Owner == "other" && a.Tool == tool.ID {
				t.Fatalf("%s is another user's", tool.ID)
			}
		}
	})
}

func text(t *rapid.T, a call.Answer) string {
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
