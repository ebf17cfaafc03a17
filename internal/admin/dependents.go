package admin

import (
	"fmt"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Referrer is one of those that keep an object from going and are no part of a Manifest, or too many for it:
// a user who is a member of a group or has a device of a type, or a chat of a user.
type Referrer struct {
	To    Ref    // a group, a device type or a user
	ID    string // the user, or the user's chat
	Total int64  // how many such referrers the object has
}

// violation words that a referrer is in the way.
func (r Referrer) violation() fault.Violation {
	var field, noun string
	switch r.To.Section {
	case SectionGroups:
		field, noun = "stored user "+r.ID+".memberships", "group"
	case SectionDeviceTypes:
		field, noun = "stored user "+r.ID+".devices", "device type"
	default:
		field, noun = "stored chat "+r.ID+".user_id", "user"
	}
	description := fmt.Sprintf("refers to %s %q", noun, r.To.ID)
	if r.Total > 1 {
		description += fmt.Sprintf(", as one of %d", r.Total)
	}
	return fault.Violation{Field: field, Description: description}
}

// checkDependents checks the stored objects that the edit leaves alone, but that refer to what it changes:
// to what goes, to types whose schema may have changed, to tools that became private. The others were valid
// when they were stored, and are not looked at: a catalogue is large, an edit mostly small. Users are not
// looked at either: Referrers tells which of them are in the way.
func (w *world) checkDependents(stored Manifest, e Edit) {
	given := make(map[Ref]bool)
	for _, o := range e.objects() {
		given[o.Ref] = true
	}
	left := func(section Section, name string) bool {
		ref := Ref{section, name}
		return !given[ref] && !w.gone[ref]
	}
	hidden := make(map[id.Tool]bool) // tools that go, or change hands
	for _, t := range stored.Tools {
		if now, stays := w.tools[t.ID]; !stays || now.Owner != t.Owner {
			hidden[t.ID] = true
		}
	}
	names := func(tools []id.Tool) bool {
		if len(hidden) == 0 {
			return false
		}
		for _, tool := range tools {
			if hidden[tool] {
				return true
			}
		}
		return false
	}
	touched := func(section Section, name string) bool {
		ref := Ref{section, name}
		return given[ref] || w.gone[ref]
	}
	for _, o := range stored.ToolTypes {
		if left(SectionToolTypes, string(o.ID)) && touched(SectionMCPServers, string(o.MCPServer)) {
			w.checkType("stored tool type "+string(o.ID), o)
		}
	}
	for _, o := range stored.Tools {
		if left(SectionTools, string(o.ID)) &&
			(touched(SectionToolTypes, string(o.Type)) || touched(SectionUsers, string(o.Owner)) || names(o.Related) ||
				names(o.Capability.Fallback) || requireServer(o.Capability.Requires, func(server string) bool { return touched(SectionMCPServers, server) })) {
			w.checkTool("stored tool "+string(o.ID), o)
		}
	}
	for _, o := range stored.DeviceTypes {
		if left(SectionDeviceTypes, string(o.ID)) && names(o.Tools) {
			w.checkShared("stored device type "+string(o.ID)+".tool_ids", o.Tools)
		}
	}
	for _, o := range stored.Groups {
		if left(SectionGroups, string(o.ID)) && (names(o.Grants) || names(o.Revokes)) {
			w.checkShared("stored group "+string(o.ID)+".grant_tool_ids", o.Grants)
			w.checkShared("stored group "+string(o.ID)+".revoke_tool_ids", o.Revokes)
		}
	}
	for _, o := range stored.Avatars {
		if left(SectionAvatars, string(o.ID)) && names(o.Tools) {
			w.checkExist("stored avatar "+string(o.ID)+".tool_ids", o.Tools)
		}
	}
	for _, o := range stored.DefaultAvatars {
		if left(SectionDefaultAvatars, DefaultAvatarID(o)) {
			w.checkDefault("stored default avatar "+DefaultAvatarID(o), o)
		}
	}
}
