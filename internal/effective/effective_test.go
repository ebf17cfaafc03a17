package effective_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

// A case file holds a world in the shape of a manifest and questions with the expected answers. It is read
// here without the protos: the rules know nothing of them.
type caseFile struct {
	World struct {
		ToolTypes []struct {
			ID       id.ToolType  `yaml:"tool_type_id"`
			Source   string       `yaml:"source"`
			Server   id.MCPServer `yaml:"mcp_server_id"`
			Disabled bool         `yaml:"disabled"`
		} `yaml:"tool_types"`
		McpServers []map[string]any `yaml:"mcp_servers"`
		Tools      []struct {
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
	} `yaml:"world"`
	Questions []question `yaml:"questions"`
}

type question struct {
	Name   string    `yaml:"name"`
	User   id.User   `yaml:"user"`
	Device id.Device `yaml:"device"` // empty: the web
	Now    time.Time `yaml:"now"`    // default 2026-01-01
	Turn   int32     `yaml:"turn"`
	Log    []struct {
		Enable        id.Tool   `yaml:"enable"`
		Disable       id.Tool   `yaml:"disable"`
		EnableAvatar  id.Avatar `yaml:"enable_avatar"`
		DisableAvatar id.Avatar `yaml:"disable_avatar"`
		TTL           int32     `yaml:"ttl_turns"`
		Turn          int32     `yaml:"turn"`
	} `yaml:"log"`
	Effective []id.Tool          `yaml:"effective"`
	Avatars   []id.Avatar        `yaml:"avatars"`
	TurnsLeft map[id.Tool]int32  `yaml:"expires_after_turns"`
	Withheld  []expectedWithheld `yaml:"withheld"`
}

type expectedWithheld struct {
	Tool       id.Tool          `yaml:"tool"`
	Reason     effective.Reason `yaml:"reason"`
	Missing    []string         `yaml:"missing_capabilities"`
	Groups     []id.Group       `yaml:"groups"`
	Granting   []id.Group       `yaml:"granting_groups"`
	Surfaces   []string         `yaml:"surfaces"` // device ids; "web"
	ShadowedBy id.Tool          `yaml:"shadowed_by"`
	Message    string           `yaml:"message"`    // not compared if empty
	MessageZH  string           `yaml:"message_zh"` // not compared if empty
}

func (f *caseFile) definitions() effective.Definitions {
	var d effective.Definitions
	for _, t := range f.World.ToolTypes {
		d.ToolTypes = append(d.ToolTypes, catalog.ToolType{ID: t.ID, Source: catalog.Source(t.Source[len("TOOL_SOURCE_"):]), Disabled: t.Disabled})
	}
	for _, t := range f.World.Tools {
		status := catalog.StatusActive
		if t.Status == "TOOL_STATUS_RETIRED" {
			status = catalog.StatusRetired
		}
		d.Tools = append(d.Tools, catalog.Tool{ID: t.ID, Type: t.Type, Name: t.Name, Title: t.Title, Status: status, Core: t.Core,
			Precedence: t.Precedence, RequiredCapabilities: t.Required, Owner: t.Owner, Localized: t.Localized})
	}
	for _, t := range f.World.DeviceTypes {
		d.DeviceTypes = append(d.DeviceTypes, availability.DeviceType{ID: t.ID, Capabilities: t.Capabilities, Tools: t.Tools})
	}
	for _, g := range f.World.Groups {
		d.Groups = append(d.Groups, availability.Group{ID: g.ID, Title: g.Title, Priority: g.Priority, Grants: g.Grants, Revokes: g.Revokes})
	}
	for _, a := range f.World.Avatars {
		d.Avatars = append(d.Avatars, enable.Avatar{ID: a.ID, Tools: a.Tools})
	}
	for _, a := range f.World.Defaults {
		d.DefaultAvatars = append(d.DefaultAvatars, enable.DefaultAvatar{Avatar: a.Avatar, User: a.User, DeviceType: a.DeviceType})
	}
	return d
}

func (f *caseFile) user(t *testing.T, name id.User) *availability.User {
	t.Helper()
	for _, u := range f.World.Users {
		if u.ID != name {
			continue
		}
		user := &availability.User{ID: name}
		for _, d := range u.Devices {
			user.Devices = append(user.Devices, availability.Device{ID: d.ID, Type: d.Type})
		}
		for _, m := range u.Memberships {
			user.Memberships = append(user.Memberships, availability.Membership{Group: m.Group, Start: m.Start, Expire: m.Expire})
		}
		return user
	}
	t.Fatalf("the world has no user %q", name)
	return nil
}

func (q *question) ask(user *availability.User) effective.Question {
	asked := effective.Question{User: user, Surface: availability.Surface{Device: q.Device}, Turn: q.Turn, Now: q.Now}
	if asked.Now.IsZero() {
		asked.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	for i, e := range q.Log {
		entry := enable.Entry{Sequence: int32(i + 1), Tool: e.Enable + e.Disable, Avatar: e.EnableAvatar + e.DisableAvatar,
			Action: enable.ActionEnable, TTLTurns: e.TTL, Turn: e.Turn}
		if e.Disable != "" || e.DisableAvatar != "" {
			entry.Action = enable.ActionDisable
		}
		asked.Chat = asked.Chat.Fold(entry)
	}
	return asked
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file caseFile
		if err := yaml.Unmarshal(data, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		world, err := effective.Compile(file.definitions())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, q := range file.Questions {
			t.Run(filepath.Base(path)+"/"+q.Name, func(t *testing.T) {
				answer := world.Resolve(q.ask(file.user(t, q.User)))
				equal(t, "effective", toolIDs(world, answer.Effective), q.Effective)
				if q.Avatars != nil {
					equal(t, "avatars", answer.Enable.ActiveAvatars, q.Avatars)
				}
				for tool, want := range q.TurnsLeft {
					n, _ := world.Catalog.Number(tool)
					left, ok := answer.Enable.TurnsLeft(n)
					if left != want || ok != (want > 0) {
						t.Errorf("%s expires after %d turns, want %d", tool, left, want)
					}
				}
				checkWithheld(t, answer.Withheld(), q.Withheld)
			})
		}
	}
}

func checkWithheld(t *testing.T, got []effective.Withheld, want []expectedWithheld) {
	t.Helper()
	var gotIDs, wantIDs []id.Tool
	for _, w := range got {
		gotIDs = append(gotIDs, w.Tool)
	}
	for _, w := range want {
		wantIDs = append(wantIDs, w.Tool)
	}
	equal(t, "withheld", gotIDs, wantIDs)
	if t.Failed() {
		return
	}
	for i, w := range want {
		g := got[i]
		equal(t, string(w.Tool)+" reason", []effective.Reason{g.Reason}, []effective.Reason{w.Reason})
		equal(t, string(w.Tool)+" missing capabilities", g.MissingCapabilities, w.Missing)
		equal(t, string(w.Tool)+" groups", g.Groups, w.Groups)
		equal(t, string(w.Tool)+" granting groups", g.GrantingGroups, w.Granting)
		equal(t, string(w.Tool)+" shadowed by", []id.Tool{g.ShadowedBy}, []id.Tool{w.ShadowedBy})
		var surfaces []string
		for _, s := range g.Surfaces {
			if s.IsWeb() {
				surfaces = append(surfaces, "web")
			} else {
				surfaces = append(surfaces, string(s.Device))
			}
		}
		equal(t, string(w.Tool)+" surfaces", surfaces, w.Surfaces)
		if w.Message != "" {
			equal(t, "message", []string{g.Message, g.MessageZH}, []string{w.Message, w.MessageZH})
		}
		if g.Message == "" || g.MessageZH == "" {
			t.Errorf("%s: a message is missing", w.Tool)
		}
	}
}

func toolIDs(w *effective.World, set *catalog.Set) []id.Tool {
	var ids []id.Tool
	for n := range set.EachSet() {
		ids = append(ids, w.Catalog.Tool(n).ID)
	}
	return ids
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
