package effective_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// sample is a small random world, a user in it and a chat's log.
type sample struct {
	definitions effective.Definitions
	user        *availability.User
	log         []enable.Entry
}

func draw(t *rapid.T) sample {
	s := sample{user: &availability.User{ID: "u"}}
	d := &s.definitions
	for i, source := range []catalog.Source{catalog.SourceNative, catalog.SourceInternalMCP, catalog.SourceExternalMCP} {
		d.ToolTypes = append(d.ToolTypes, catalog.ToolType{ID: id.ToolType(fmt.Sprint("type", i)), Source: source,
			Disabled: rapid.IntRange(0, 9).Draw(t, "disabled") == 0})
	}
	var tools, shared []id.Tool
	for i := range rapid.IntRange(1, 12).Draw(t, "tools") {
		tool := catalog.Tool{ID: id.Tool(fmt.Sprintf("t%02d", i)), Type: id.ToolType(fmt.Sprint("type", rapid.IntRange(0, 2).Draw(t, "type"))),
			Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"), Precedence: rapid.Int32Range(0, 1).Draw(t, "precedence"),
			Owner: rapid.SampledFrom([]id.User{"", "", "", "u", "other"}).Draw(t, "owner"), Status: catalog.StatusActive}
		if rapid.IntRange(0, 9).Draw(t, "retired") == 0 {
			tool.Status = catalog.StatusRetired
		}
		tool.Core = tool.Owner == "" && rapid.IntRange(0, 4).Draw(t, "core") == 0
		if rapid.Bool().Draw(t, "needs a display") {
			tool.RequiredCapabilities = []string{"display"}
		}
		d.Tools, tools = append(d.Tools, tool), append(tools, tool.ID)
		if tool.Owner == "" {
			shared = append(shared, tool.ID)
		}
	}
	some := func(from []id.Tool, label string) []id.Tool {
		var picked []id.Tool
		for _, tool := range from {
			if rapid.Bool().Draw(t, label) {
				picked = append(picked, tool)
			}
		}
		return picked
	}
	for i := range 2 {
		deviceType := availability.DeviceType{ID: id.DeviceType(fmt.Sprint("dt", i)), Tools: some(shared, "offered")}
		if rapid.Bool().Draw(t, "display") {
			deviceType.Capabilities = []string{"display"}
		}
		d.DeviceTypes = append(d.DeviceTypes, deviceType)
		s.user.Devices = append(s.user.Devices, availability.Device{ID: id.Device(fmt.Sprint("d", i)), Type: deviceType.ID})
	}
	for i := range 3 {
		g := availability.Group{ID: id.Group(fmt.Sprint("g", i)), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
			Grants: some(shared, "granted"), Revokes: some(shared, "revoked")}
		d.Groups = append(d.Groups, g)
		if rapid.Bool().Draw(t, "member") {
			s.user.Memberships = append(s.user.Memberships, availability.Membership{Group: g.ID})
		}
		d.Avatars = append(d.Avatars, enable.Avatar{ID: id.Avatar(fmt.Sprint("a", i)), Tools: some(tools, "bound")})
	}
	d.DefaultAvatars = []enable.DefaultAvatar{{Avatar: "a0"}}
	for i := range rapid.IntRange(0, 12).Draw(t, "entries") {
		e := enable.Entry{Sequence: int32(i + 1), Turn: rapid.Int32Range(0, 4).Draw(t, "turn"),
			Action: rapid.SampledFrom([]enable.Action{enable.ActionEnable, enable.ActionDisable}).Draw(t, "action")}
		if rapid.IntRange(0, 3).Draw(t, "of an avatar") == 0 {
			e.Avatar = id.Avatar(fmt.Sprint("a", rapid.IntRange(0, 2).Draw(t, "avatar")))
		} else {
			e.Tool = rapid.SampledFrom(tools).Draw(t, "tool")
			if e.Action == enable.ActionEnable {
				e.TTLTurns = rapid.Int32Range(0, 3).Draw(t, "ttl")
			}
		}
		s.log = append(s.log, e)
	}
	return s
}

func (s *sample) world(t *rapid.T) *effective.World {
	w, err := effective.Compile(s.definitions)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (s *sample) resolve(t *rapid.T, surface availability.Surface, turn int32) (*effective.World, *effective.Answer) {
	w := s.world(t)
	return w, w.Resolve(effective.Question{User: s.user, Surface: surface, Chat: enable.State{}.Fold(s.log...), Turn: turn, Now: noon})
}

var surfaces = []availability.Surface{availability.Web, {Device: "d0"}, {Device: "d1"}}

func TestEffectiveAndWithheldAreWhatIsEnabled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		for _, surface := range surfaces {
			w, answer := s.resolve(t, surface, 3)
			union := answer.Effective.Clone()
			names := map[string]bool{}
			for n := range answer.Effective.EachSet() {
				if name := w.Catalog.Tool(n).Name; names[name] {
					t.Fatalf("two tools of name %s", name)
				} else {
					names[name] = true
				}
			}
			for withheld := range answer.Withheld() {
				n, _ := w.Catalog.Number(withheld.Tool)
				if union.Test(n) || withheld.Reason == effective.ReasonNone || withheld.Message == "" || withheld.MessageZH == "" {
					t.Fatalf("withheld: %+v", withheld)
				}
				union.Set(n)
			}
			if !union.Equal(answer.Enable.Enabled) {
				t.Fatalf("effective and withheld %v, enabled %v", union, answer.Enable.Enabled)
			}
		}
	})
}

func TestTheWebHasWhatEachDeviceHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		_, web := s.resolve(t, availability.Web, 0)
		for _, surface := range surfaces[1:] {
			_, device := s.resolve(t, surface, 0)
			if !web.Availability.Available.IsSuperSet(device.Availability.Available) {
				t.Fatalf("%v has what the web lacks", surface)
			}
		}
	})
}

func TestAGrantNeverRemovesAndARevokeNeverAdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		surface := rapid.SampledFrom(surfaces).Draw(t, "surface")
		_, before := s.resolve(t, surface, 0)
		tool := rapid.SampledFrom(s.definitions.Tools).Draw(t, "patched")
		extra := availability.Group{ID: "extra", Priority: rapid.Int32Range(-1, 3).Draw(t, "at priority")}
		grants := rapid.Bool().Draw(t, "grants")
		if grants {
			extra.Grants = []id.Tool{tool.ID}
		} else {
			extra.Revokes = []id.Tool{tool.ID}
		}
		s.definitions.Groups = append(s.definitions.Groups, extra)
		s.user.Memberships = append(s.user.Memberships, availability.Membership{Group: "extra"})
		_, after := s.resolve(t, surface, 0)
		if grants && !after.Availability.Available.IsSuperSet(before.Availability.Available) {
			t.Fatal("a grant removed")
		}
		if !grants && !before.Availability.Available.IsSuperSet(after.Availability.Available) {
			t.Fatal("a revoke added")
		}
	})
}

func TestTheOrderOfInsertionDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		w, before := s.resolve(t, surfaces[1], 2)
		slices.Reverse(s.definitions.ToolTypes)
		s.definitions.Tools = rapid.Permutation(s.definitions.Tools).Draw(t, "tools")
		slices.Reverse(s.definitions.DeviceTypes)
		s.definitions.Groups = rapid.Permutation(s.definitions.Groups).Draw(t, "groups")
		slices.Reverse(s.definitions.Avatars)
		s.user.Memberships = rapid.Permutation(s.user.Memberships).Draw(t, "memberships")
		again, after := s.resolve(t, surfaces[1], 2)
		if a, b := toolIDs(w, before.Effective), toolIDs(again, after.Effective); !slices.Equal(a, b) {
			t.Fatalf("%v, then %v", a, b)
		}
		if a, b := fmt.Sprint(slices.Collect(before.Withheld())), fmt.Sprint(slices.Collect(after.Withheld())); a != b {
			t.Fatalf("%s, then %s", a, b)
		}
	})
}

func TestFoldingAvatarsAndToolsInAnyOrderIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		var tools, avatars []enable.Entry
		for _, e := range s.log {
			if e.Avatar != "" {
				avatars = append(avatars, e)
			} else {
				tools = append(tools, e)
			}
		}
		whole := fmt.Sprint(canonical(enable.State{}.Fold(s.log...)))
		for _, order := range [][]enable.Entry{append(slices.Clone(tools), avatars...), append(slices.Clone(avatars), tools...)} {
			if got := fmt.Sprint(canonical(enable.State{}.Fold(order...))); got != whole {
				t.Fatalf("%s, then %s", whole, got)
			}
		}
		var step enable.State
		for _, e := range s.log {
			step = step.Fold(e)
		}
		if got := fmt.Sprint(canonical(step)); got != whole {
			t.Fatalf("entry by entry: %s, at once: %s", got, whole)
		}
	})
}

// canonical is a state without pointers, so that it prints by value; maps print sorted.
func canonical(s enable.State) any {
	tools := map[id.Tool]string{}
	for tool, state := range s.Tools {
		through := int32(-1)
		if state.ThroughTurn != nil {
			through = *state.ThroughTurn
		}
		tools[tool] = fmt.Sprint(state.Lasting, state.LastingSince, through)
	}
	return []any{s.Avatars, tools}
}

func TestTheFoldIsTheLastLiveEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		turn := rapid.Int32Range(0, 8).Draw(t, "at turn")
		// Turns never go back: those of the log are at most the chat's.
		for _, e := range s.log {
			turn = max(turn, e.Turn)
		}
		w, answer := s.resolve(t, availability.Web, turn)
		for n := range uint(w.Catalog.Len()) {
			var last enable.Action
			for _, e := range s.log {
				live := e.TTLTurns == 0 || (e.Turn <= turn && turn < e.Turn+e.TTLTurns)
				if e.Tool == w.Catalog.Tool(n).ID && live {
					last = e.Action
				}
			}
			if on, off := answer.Enable.ByChat.Test(n), answer.Enable.OffByChat.Test(n); on != (last == enable.ActionEnable) || off != (last == enable.ActionDisable) {
				t.Fatalf("%s: on %t, off %t; the last live entry is %q", w.Catalog.Tool(n).ID, on, off, last)
			}
		}
	})
}
