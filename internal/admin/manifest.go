// Package admin decides what an operator's manifest changes: it validates the manifest against what is
// stored, every fault with its path, and plans the writes. It does no I/O.
package admin

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
)

// Manifest is the administered world, or a part of it.
type Manifest struct {
	effective.Definitions
	MCPServers []catalog.MCPServer
	Users      []availability.User
}

// Section is a kind of object in a manifest.
type Section string

// The sections, in the order in which objects are written, so that what is referred to comes first.
const (
	SectionUsers          Section = "users" // their rows; devices and memberships follow the rest
	SectionMCPServers     Section = "mcp_servers"
	SectionToolTypes      Section = "tool_types"
	SectionTools          Section = "tools"
	SectionDeviceTypes    Section = "device_types"
	SectionGroups         Section = "groups"
	SectionAvatars        Section = "avatars"
	SectionDefaultAvatars Section = "default_avatars"
)

// Action is what happens to an object.
type Action string

// The actions.
const (
	ActionCreate Action = "CREATE"
	ActionUpdate Action = "UPDATE"
	ActionDelete Action = "DELETE"
)

// Change is one object that a manifest changes.
type Change struct {
	Action  Action
	Section Section
	ID      string
	Fields  []FieldChange // of an update
	// Object is the object after the change, before it for a DELETE: a catalog.Tool and the like.
	Object any
}

// FieldChange is one field that changes, as JSON.
type FieldChange struct{ Field, Before, After string }

// Canonicalize sorts what has no order, as storage returns it, so that equal manifests look equal.
func (m *Manifest) Canonicalize() {
	for i := range m.Tools {
		slices.Sort(m.Tools[i].Related)
	}
	for i := range m.DeviceTypes {
		slices.Sort(m.DeviceTypes[i].Tools)
	}
	for i := range m.Groups {
		slices.Sort(m.Groups[i].Grants)
		slices.Sort(m.Groups[i].Revokes)
	}
	for i := range m.Avatars {
		slices.Sort(m.Avatars[i].Tools)
	}
	for i := range m.Users {
		u := &m.Users[i]
		slices.SortFunc(u.Devices, func(a, b availability.Device) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortFunc(u.Memberships, func(a, b availability.Membership) int { return cmp.Compare(a.Group, b.Group) })
		for j := range u.Memberships {
			u.Memberships[j].Start = instant(u.Memberships[j].Start)
			u.Memberships[j].Expire = instant(u.Memberships[j].Expire)
		}
	}
}

// instant drops the time zone; the zero time stays zero.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
