package admin

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
)

// Plan returns what makes the stored objects equal to the manifest's, in the order in which it is written,
// or every fault. stored holds the whole catalogue, and of the users those that the manifest names (all, to
// prune users). prune deletes the objects that the manifest does not name, in sections that name any.
func Plan(stored, manifest Manifest, prune bool) ([]Change, error) {
	if err := validate(stored, manifest, prune); err != nil {
		return nil, err
	}
	var p plan
	section(&p, SectionUsers, stored.Users, manifest.Users, prune, func(u availability.User) string { return string(u.ID) })
	section(&p, SectionMCPServers, stored.MCPServers, manifest.MCPServers, prune, func(m catalog.MCPServer) string { return string(m.ID) })
	section(&p, SectionToolTypes, stored.ToolTypes, manifest.ToolTypes, prune, func(t catalog.ToolType) string { return string(t.ID) })
	section(&p, SectionTools, stored.Tools, manifest.Tools, prune, func(t catalog.Tool) string { return string(t.ID) })
	section(&p, SectionDeviceTypes, stored.DeviceTypes, manifest.DeviceTypes, prune, func(d availability.DeviceType) string { return string(d.ID) })
	section(&p, SectionGroups, stored.Groups, manifest.Groups, prune, func(g availability.Group) string { return string(g.ID) })
	section(&p, SectionAvatars, stored.Avatars, manifest.Avatars, prune, func(a enable.Avatar) string { return string(a.ID) })
	section(&p, SectionDefaultAvatars, stored.DefaultAvatars, manifest.DefaultAvatars, prune, DefaultAvatarID)
	// What refers goes before what is referred to.
	slices.Reverse(p.deletes)
	return append(p.puts, p.deletes...), nil
}

// DefaultAvatarID names a row of the default avatars: "user/device type", * for any.
func DefaultAvatarID(d enable.DefaultAvatar) string {
	user, deviceType := string(d.User), string(d.DeviceType)
	if user == "" {
		user = "*"
	}
	if deviceType == "" {
		deviceType = "*"
	}
	return user + "/" + deviceType
}

type plan struct{ puts, deletes []Change }

func section[T any](p *plan, name Section, stored, wanted []T, prune bool, idOf func(T) string) {
	before := index(stored, idOf)
	after := index(wanted, idOf)
	for _, id := range slices.Sorted(maps.Keys(after)) {
		object := after[id]
		old, exists := before[id]
		if !exists {
			p.puts = append(p.puts, Change{Action: ActionCreate, Section: name, ID: id, Object: object})
		} else if fields := difference(old, object); len(fields) > 0 {
			p.puts = append(p.puts, Change{Action: ActionUpdate, Section: name, ID: id, Fields: fields, Object: object})
		}
	}
	if !prune || len(wanted) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[id]; !kept {
			p.deletes = append(p.deletes, Change{Action: ActionDelete, Section: name, ID: id, Object: before[id]})
		}
	}
}

func index[T any](objects []T, idOf func(T) string) map[string]T {
	byID := make(map[string]T, len(objects))
	for _, o := range objects {
		byID[idOf(o)] = o
	}
	return byID
}

// difference compares two objects field by field, as JSON.
func difference(before, after any) []FieldChange {
	old, wanted := fieldsOf(before), fieldsOf(after)
	var changes []FieldChange
	for _, field := range slices.Sorted(maps.Keys(wanted)) {
		if !bytes.Equal(old[field], wanted[field]) {
			changes = append(changes, FieldChange{Field: field, Before: string(old[field]), After: string(wanted[field])})
		}
	}
	return changes
}

// fieldsOf returns an object's fields in a form where equal values look equal: lists that are empty and
// lists that are absent, and JSON objects in any order of their keys.
func fieldsOf(object any) map[string]json.RawMessage {
	data, err := json.Marshal(object)
	if err != nil {
		panic("admin: " + err.Error()) // domain types always marshal; raw JSON in them was validated
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		panic("admin: " + err.Error())
	}
	canonical := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				value = nil
			}
		case map[string]any:
			if len(v) == 0 {
				value = nil
			}
		}
		canonical[name], _ = json.Marshal(value) // it was unmarshalled just now
	}
	return canonical
}
