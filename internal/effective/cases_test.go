package effective_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// TestCases asks the pure functions what internal/grpcserver's test of this name asks the server.
func TestCases(t *testing.T) {
	effectivetest.Run(t, "testdata", func(t *testing.T, file *effectivetest.File) func(*testing.T, *effectivetest.Question) effectivetest.Answer {
		var m manifest
		if err := file.World.Decode(&m); err != nil {
			t.Fatal(err)
		}
		world, err := effective.Compile(m.definitions())
		if err != nil {
			t.Fatal(err)
		}
		return func(_ *testing.T, q *effectivetest.Question) effectivetest.Answer {
			answer, err := ask(world, &m, q)
			if f, ok := fault.As(err); ok {
				return effectivetest.Answer{Refused: string(f.Reason)}
			}
			return answer
		}
	})
}

// manifest is the part of a manifest that the rules rest on.
type manifest struct {
	ToolTypes []struct {
		ID       id.ToolType `yaml:"tool_type_id"`
		Source   string      `yaml:"source"`
		Disabled bool        `yaml:"disabled"`
	} `yaml:"tool_types"`
	Tools []struct {
		ID         id.Tool                          `yaml:"tool_id"`
		Type       id.ToolType                      `yaml:"tool_type_id"`
		Name       string                           `yaml:"name"`
		Title      string                           `yaml:"title"`
		Status     string                           `yaml:"status"`
		Core       bool                             `yaml:"core"`
		Precedence int32                            `yaml:"precedence"`
		Required   []string                         `yaml:"required_capabilities"`
		Owner      id.User                          `yaml:"owner_user_id"`
		Localized  map[string]catalog.LocalizedText `yaml:"localized"`
	} `yaml:"tools"`
	DeviceTypes []struct {
		ID           id.DeviceType `yaml:"device_type_id"`
		Capabilities []string      `yaml:"capabilities"`
		Tools        []id.Tool     `yaml:"tool_ids"`
	} `yaml:"device_types"`
	Groups []struct {
		ID       id.Group  `yaml:"group_id"`
		Title    string    `yaml:"title"`
		Priority int32     `yaml:"priority"`
		Grants   []id.Tool `yaml:"grant_tool_ids"`
		Revokes  []id.Tool `yaml:"revoke_tool_ids"`
	} `yaml:"groups"`
	Avatars []struct {
		ID    id.Avatar `yaml:"avatar_id"`
		Tools []id.Tool `yaml:"tool_ids"`
	} `yaml:"avatars"`
	Defaults []struct {
		Avatar     id.Avatar     `yaml:"avatar_id"`
		User       id.User       `yaml:"user_id"`
		DeviceType id.DeviceType `yaml:"device_type_id"`
	} `yaml:"default_avatars"`
	Users []struct {
		ID      id.User `yaml:"user_id"`
		Devices []struct {
			ID   id.Device     `yaml:"device_id"`
			Type id.DeviceType `yaml:"device_type_id"`
		} `yaml:"devices"`
		Memberships []struct {
			Group  id.Group  `yaml:"group_id"`
			Start  time.Time `yaml:"start_time"`
			Expire time.Time `yaml:"expire_time"`
		} `yaml:"memberships"`
	} `yaml:"users"`
}

func (m *manifest) definitions() effective.Definitions {
	var d effective.Definitions
	for _, t := range m.ToolTypes {
		d.ToolTypes = append(d.ToolTypes, catalog.ToolType{ID: t.ID, Source: catalog.Source(strings.TrimPrefix(t.Source, "TOOL_SOURCE_")), Disabled: t.Disabled})
	}
	for _, t := range m.Tools {
		status := catalog.StatusActive
		if t.Status == "TOOL_STATUS_RETIRED" {
			status = catalog.StatusRetired
		}
		d.Tools = append(d.Tools, catalog.Tool{ID: t.ID, Type: t.Type, Name: t.Name, Title: t.Title, Status: status, Core: t.Core,
			Precedence: t.Precedence, RequiredCapabilities: t.Required, Owner: t.Owner, Localized: t.Localized})
	}
	for _, t := range m.DeviceTypes {
		d.DeviceTypes = append(d.DeviceTypes, availability.DeviceType{ID: t.ID, Capabilities: t.Capabilities, Tools: t.Tools})
	}
	for _, g := range m.Groups {
		d.Groups = append(d.Groups, availability.Group{ID: g.ID, Title: g.Title, Priority: g.Priority, Grants: g.Grants, Revokes: g.Revokes})
	}
	for _, a := range m.Avatars {
		d.Avatars = append(d.Avatars, enable.Avatar{ID: a.ID, Tools: a.Tools})
	}
	for _, a := range m.Defaults {
		d.DefaultAvatars = append(d.DefaultAvatars, enable.DefaultAvatar{Avatar: a.Avatar, User: a.User, DeviceType: a.DeviceType})
	}
	return d
}

// facts is what the store would read for a user who asks on a surface.
func (m *manifest) facts(world *effective.World, name id.User, surface availability.Surface) (effective.Facts, error) {
	facts := effective.Facts{World: world}
	for _, u := range m.Users {
		user := &availability.User{ID: u.ID}
		for _, d := range u.Devices {
			user.Devices = append(user.Devices, availability.Device{ID: d.ID, Type: d.Type})
			facts.DeviceExists = facts.DeviceExists || d.ID == surface.Device
		}
		slices.SortFunc(user.Devices, func(a, b availability.Device) int { return cmp.Compare(a.ID, b.ID) })
		for _, g := range u.Memberships {
			user.Memberships = append(user.Memberships, availability.Membership{Group: g.Group, Start: g.Start, Expire: g.Expire})
		}
		slices.SortFunc(user.Memberships, func(a, b availability.Membership) int { return cmp.Compare(a.Group, b.Group) })
		if u.ID == name {
			facts.User = user
		}
	}
	if facts.User == nil {
		return facts, fault.Missing("user", string(name))
	}
	return facts, nil
}

// ask answers a question as the server does, without its storage.
func ask(world *effective.World, m *manifest, q *effectivetest.Question) (effectivetest.Answer, error) {
	surface := availability.Surface{Device: id.Device(q.Device)}
	facts, err := m.facts(world, id.User(q.User), surface)
	if err != nil {
		return effectivetest.Answer{}, err
	}
	if q.Created() {
		if facts.Chat, err = create(world, m, q); err != nil {
			return effectivetest.Answer{}, err
		}
	}
	for _, e := range q.Log {
		if err := write(&facts, surface, e, q.Now); err != nil {
			return effectivetest.Answer{}, err
		}
	}
	asked, _, err := facts.Ask(surface, q.Turn, q.Now)
	if err != nil {
		return effectivetest.Answer{}, err
	}
	answer := plain(world, world.Resolve(asked))
	if q.Explain != "" {
		if !world.Catalog.ExistsFor(facts.User.ID, id.Tool(q.Explain)) {
			return effectivetest.Answer{}, fault.Missing("tool", q.Explain)
		}
		n, _ := world.Catalog.Number(id.Tool(q.Explain))
		for _, step := range world.Resolve(asked).Explain(n) {
			var rows []string
			for _, row := range step.Rows {
				rows = append(rows, row.Kind+"/"+row.ID)
			}
			answer.Steps = append(answer.Steps, effectivetest.Step(string(step.Rule), string(step.Outcome), rows...))
		}
	}
	return answer, nil
}

func create(world *effective.World, m *manifest, q *effectivetest.Question) (*enable.Chat, error) {
	var surface availability.Surface
	if q.CreatedOn != effectivetest.Web {
		surface.Device = id.Device(q.CreatedOn)
	}
	facts, err := m.facts(world, id.User(q.CreatedBy), surface)
	if err != nil {
		return nil, err
	}
	entries, err := facts.FirstEntries(surface)
	if err != nil {
		return nil, err
	}
	chat, _ := enable.Chat{ID: "chat", User: facts.User.ID}.Append(entries, nil)
	return &chat, nil
}

func write(facts *effective.Facts, surface availability.Surface, e effectivetest.Entry, now time.Time) error {
	if e.AskedInTurn != nil {
		asked, advance, err := facts.Ask(surface, e.AskedInTurn, now)
		if advance {
			facts.Chat.Turn = asked.Turn
		}
		return err
	}
	entries := []enable.Entry{{Tool: id.Tool(e.Enable + e.Disable), Avatar: id.Avatar(e.EnableAvatar + e.DisableAvatar),
		Action: enable.ActionEnable, TTLTurns: e.TTLTurns}}
	if e.Disable != "" || e.DisableAvatar != "" {
		entries[0].Action = enable.ActionDisable
	}
	var err error
	if entries[0].Avatar != "" {
		err = facts.World.Enable.CheckAvatars(entries)
	} else {
		err = enable.CheckTools(facts.World.Catalog, facts.Chat.User, entries)
	}
	if err == nil {
		*facts.Chat, _ = facts.Chat.Append(entries, e.Turn)
	}
	return err
}

// plain words an answer as cases do.
func plain(world *effective.World, a *effective.Answer) effectivetest.Answer {
	avatars, available := texts(a.Enable.ActiveAvatars), texts(toolIDs(world, a.Availability.Available))
	p := effectivetest.Answer{Effective: texts(toolIDs(world, a.Effective)), Avatars: &avatars, Available: &available}
	for n := range a.Effective.EachSet() {
		if left, ok := a.Enable.TurnsLeft(n); ok {
			if p.ExpiresAfterTurns == nil {
				p.ExpiresAfterTurns = map[string]int32{}
			}
			p.ExpiresAfterTurns[string(world.Catalog.Tool(n).ID)] = left
		}
	}
	for w := range a.Withheld() {
		var surfaces []string
		for _, s := range w.Surfaces {
			surfaces = append(surfaces, cmp.Or(string(s.Device), effectivetest.Web))
		}
		p.Withheld = append(p.Withheld, effectivetest.Withheld{Tool: string(w.Tool), Reason: string(w.Reason),
			MissingCapabilities: w.MissingCapabilities, Groups: texts(w.Groups), GrantingGroups: texts(w.GrantingGroups),
			Surfaces: surfaces, ShadowedBy: string(w.ShadowedBy), Message: w.Message, MessageZH: w.MessageZH})
	}
	return p
}

func toolIDs(w *effective.World, set *catalog.Set) []id.Tool {
	var ids []id.Tool
	for n := range set.EachSet() {
		ids = append(ids, w.Catalog.Tool(n).ID)
	}
	return ids
}

func texts[T ~string](ids []T) []string {
	list := []string{}
	for _, name := range ids {
		list = append(list, string(name))
	}
	return list
}
