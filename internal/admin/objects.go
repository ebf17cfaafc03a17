package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolgrant/toolgrant/internal/enable"
)

// object is an object of any section, as plans see it.
type object struct {
	Ref
	value any
}

// objects lists a manifest's objects, section by section in the order in which they are written.
func (m *Manifest) objects() []object {
	var all []object
	for _, o := range m.Users {
		all = append(all, object{Ref{SectionUsers, string(o.ID)}, o})
	}
	for _, o := range m.MCPServers {
		all = append(all, object{Ref{SectionMCPServers, string(o.ID)}, o})
	}
	for _, o := range m.ToolTypes {
		all = append(all, object{Ref{SectionToolTypes, string(o.ID)}, o})
	}
	for _, o := range m.Tools {
		all = append(all, object{Ref{SectionTools, string(o.ID)}, o})
	}
	for _, o := range m.DeviceTypes {
		all = append(all, object{Ref{SectionDeviceTypes, string(o.ID)}, o})
	}
	for _, o := range m.Groups {
		all = append(all, object{Ref{SectionGroups, string(o.ID)}, o})
	}
	for _, o := range m.Avatars {
		all = append(all, object{Ref{SectionAvatars, string(o.ID)}, o})
	}
	for _, o := range m.DefaultAvatars {
		all = append(all, object{Ref{SectionDefaultAvatars, DefaultAvatarID(o)}, o})
	}
	return all
}

// DefaultAvatarID names a row of the default avatars: "user,device type", * for any. No id holds a comma,
// and all that ids hold sorts behind it, so that rows sort by user first.
func DefaultAvatarID(d enable.DefaultAvatar) string {
	user, deviceType := string(d.User), string(d.DeviceType)
	if user == "" {
		user = "*"
	}
	if deviceType == "" {
		deviceType = "*"
	}
	return user + "," + deviceType
}

// Etag is a fingerprint of an object's content: equal objects have equal ones.
func Etag(value any) string {
	content, err := json.Marshal(fieldsOf(value)) // sorted by key
	if err != nil {
		panic("admin: " + err.Error()) // it was JSON
	}
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// difference compares two objects field by field, as JSON.
func difference(before, after any) []FieldChange {
	old, wanted := fieldsOf(before), fieldsOf(after)
	var changes []FieldChange
	for _, field := range slices.Sorted(maps.Keys(wanted)) {
		if !bytes.Equal(old[field], wanted[field]) {
			changes = append(changes, FieldChange{Field: field, Before: jsonOrNone(old[field]), After: jsonOrNone(wanted[field])})
		}
	}
	return changes
}

func jsonOrNone(value json.RawMessage) string {
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// fieldsOf returns an object's fields in a form where equal values look equal: lists that are empty and
// lists that are absent, and JSON objects in any order of their keys.
func fieldsOf(value any) map[string]json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic("admin: " + err.Error()) // domain types always marshal; raw JSON in them was validated
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		panic("admin: " + err.Error())
	}
	canonical := make(map[string]json.RawMessage, len(fields))
	for name, field := range fields {
		switch v := field.(type) {
		case []any:
			if len(v) == 0 {
				field = nil
			}
		case map[string]any:
			if len(v) == 0 {
				field = nil
			}
		}
		canonical[name], _ = json.Marshal(field) // it was unmarshalled just now
	}
	return canonical
}
