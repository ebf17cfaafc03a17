package postgres_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// drawEdit draws an edit of a small world. Many are refused, and of an empty world nearly all, because of what they refer to;
// those that are whole have all of that.
func drawEdit(t *rapid.T) admin.Edit {
	e := admin.Edit{Prune: rapid.IntRange(0, 3).Draw(t, "prune") == 0}
	whole := rapid.IntRange(0, 4).Draw(t, "whole") == 0
	some := func(label string) bool { return whole || rapid.IntRange(0, 2).Draw(t, label) > 0 }
	title := func() string { return rapid.SampledFrom([]string{"", "A", "<é>"}).Draw(t, "title") }
	tools := func(label string) (list []id.Tool) {
		for i := range 3 {
			if rapid.Bool().Draw(t, label) {
				list = append(list, id.Tool(fmt.Sprint("tool", 2-i)))
			}
		}
		return list
	}
	if some("servers") {
		e.MCPServers = append(e.MCPServers, catalog.MCPServer{ID: "server", Title: title(), Transport: catalog.TransportStreamableHTTP,
			Endpoint: "https://example.com", HeadersFromEnv: map[string]string{"Authorization": "TOKEN"}})
	}
	for i, source := range []catalog.Source{catalog.SourceNative, catalog.SourceExternalMCP} {
		if some("type") {
			o := catalog.ToolType{ID: id.ToolType(fmt.Sprint("type", i)), Source: source, Title: title(), Disabled: rapid.Bool().Draw(t, "disabled")}
			if source.MCP() {
				o.MCPServer = "server"
			} else {
				o.ConfigSchema = json.RawMessage(`{"type": "object"}`)
			}
			e.ToolTypes = append(e.ToolTypes, o)
		}
	}
	for i := range 3 {
		if some("tool") {
			o := catalog.Tool{ID: id.Tool(fmt.Sprint("tool", i)), Type: id.ToolType(fmt.Sprint("type", i%2)), Name: "name", Title: title(),
				Status: catalog.StatusActive, Risk: catalog.RiskLow, Precedence: rapid.Int32Range(-1, 1).Draw(t, "precedence"),
				Config:   json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"b": 1e3, "a": [null, "\u0001"]}`}).Draw(t, "config")),
				Keywords: rapid.SampledFrom([][]string{nil, {"b", "a"}}).Draw(t, "keywords")}
			if !whole && rapid.IntRange(0, 3).Draw(t, "private") == 0 {
				o.Owner = "user0"
			}
			e.Tools = append(e.Tools, o)
		}
	}
	if some("device types") {
		e.DeviceTypes = append(e.DeviceTypes, availability.DeviceType{ID: "phone", Title: title(), Tools: tools("offered")})
	}
	if some("groups") {
		e.Groups = append(e.Groups, availability.Group{ID: "group", Title: title(), Grants: tools("granted"), Priority: 1})
	}
	if some("avatars") {
		e.Avatars = append(e.Avatars, enable.Avatar{ID: "avatar", Title: title(), Tools: tools("of the avatar")})
	}
	if rapid.Bool().Draw(t, "default") {
		e.DefaultAvatars = append(e.DefaultAvatars, enable.DefaultAvatar{Avatar: "avatar", User: rapid.SampledFrom([]id.User{"", "user1"}).Draw(t, "whose")})
	}
	for i := range 2 {
		if some("user") {
			u := availability.User{ID: id.User(fmt.Sprint("user", i))}
			if rapid.Bool().Draw(t, "device") {
				u.Devices = append(u.Devices, availability.Device{ID: id.Device(fmt.Sprint("device", i)), Type: "phone"})
			}
			if rapid.Bool().Draw(t, "membership") {
				zone := time.FixedZone("elsewhere", 3600)
				u.Memberships = append(u.Memberships, availability.Membership{Group: "group", Expire: time.Date(2030, 1, 1, 0, 0, 0, 1000, zone)})
			}
			e.Users = append(e.Users, u)
		}
	}
	return e
}

// etags fingerprints all objects of a manifest, by kind and id.
func etags(m *admin.Manifest) map[string]string {
	all := map[string]string{}
	add := func(section admin.Section, name string, object any) {
		all[section.Kind()+" "+name] = admin.Etag(object)
	}
	for _, o := range m.MCPServers {
		add(admin.SectionMCPServers, string(o.ID), o)
	}
	for _, o := range m.ToolTypes {
		add(admin.SectionToolTypes, string(o.ID), o)
	}
	for _, o := range m.Tools {
		add(admin.SectionTools, string(o.ID), o)
	}
	for _, o := range m.DeviceTypes {
		add(admin.SectionDeviceTypes, string(o.ID), o)
	}
	for _, o := range m.Groups {
		add(admin.SectionGroups, string(o.ID), o)
	}
	for _, o := range m.Avatars {
		add(admin.SectionAvatars, string(o.ID), o)
	}
	for _, o := range m.DefaultAvatars {
		add(admin.SectionDefaultAvatars, admin.DefaultAvatarID(o), o)
	}
	for _, o := range m.Users {
		add(admin.SectionUsers, string(o.ID), o)
	}
	return all
}

// etagOf fingerprints the object of a state.
func etagOf(t *rapid.T, kind string, state *audit.State) string {
	object := map[string]func() any{
		"mcp_server": read[catalog.MCPServer](t, state), "tool_type": read[catalog.ToolType](t, state), "tool": read[catalog.Tool](t, state),
		"device_type": read[availability.DeviceType](t, state), "group": read[availability.Group](t, state),
		"avatar": read[enable.Avatar](t, state), "default_avatar": read[enable.DefaultAvatar](t, state), "user": read[availability.User](t, state),
	}[kind]
	return admin.Etag(object())
}

func read[T any](t *rapid.T, state *audit.State) func() any {
	return func() any {
		var object T
		data, err := json.Marshal(state.Fields)
		if err == nil {
			err = json.Unmarshal(data, &object)
		}
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
}

// Whoever replays the log has the world: each entry begins with what the one before left, and all together end
// with what is stored.
func TestTheAuditLogReplaysToWhatIsStored(t *testing.T) {
	ctx := caller.With(testkit.Context(t), caller.Caller{Actor: "claimed:ann"})
	store, err := postgres.Open(ctx, testkit.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	replayed := map[string]string{}
	var last audit.Key
	written, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		edit := drawEdit(t)
		changes, _, err := store.Edit(ctx, nil, func(admin.Manifest) (admin.Edit, error) { return edit, nil })
		if _, ok := fault.As(err); ok {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
		stored, _, err := store.Export(ctx)
		if err != nil {
			t.Fatal(err)
		}
		newest, more, _, err := store.AuditEntries(ctx, audit.Filter{}, audit.Key{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		entries := 0
		for i := range newest {
			if newest[i].Sequence > last.Sequence {
				entries++
			}
		}
		if entries != len(changes) || entries == len(newest) && more {
			t.Fatalf("%d entries tell of %d changes", entries, len(changes))
		}
		for i := entries - 1; i >= 0; i-- { // oldest first
			e := newest[i]
			name := e.Kind + " " + e.ObjectID
			before := ""
			if e.Before != nil {
				before = etagOf(t, e.Kind, e.Before)
			}
			if before != replayed[name] {
				t.Fatalf("%s of %s: it was another before", e.Action, name)
			}
			if e.After == nil {
				delete(replayed, name)
			} else {
				replayed[name] = etagOf(t, e.Kind, e.After)
			}
			last, written = e.Key, written+1
		}
		if want := etags(&stored); !maps.Equal(replayed, want) {
			t.Fatalf("replayed %v, stored %v", replayed, want)
		}
	})
	t.Logf("%d entries; %d edits were refused", written, refused)
	if written < 100 {
		t.Error("too few edits passed")
	}
}
