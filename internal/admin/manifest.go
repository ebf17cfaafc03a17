// Package admin decides what an operator's manifest changes: it validates the manifest against what is
// stored, every fault with its path, and plans the writes. It does no I/O.
package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// Manifest is the administered world, or a part of it.
type Manifest struct {
	effective.Definitions
	Users []availability.User
}

// Edit is what is to become of the stored objects.
type Edit struct {
	// Manifest holds objects as they shall be.
	Manifest
	// Prune deletes the objects that the manifest does not name, in those of its sections that name any.
	Prune bool
	// Delete names objects that shall go. They are refused as in use, not as invalid, while others name them.
	Delete []Ref
	// Etags of objects as they were read: if one has changed since, it is not changed.
	Etags map[Ref]string
	// Approval says that the edit pins what MCP servers changed, which an operator has looked at.
	Approval bool
}

// Ref names an object among all of the world.
type Ref struct {
	Section Section
	ID      string
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

// Kind names an object of the section: "tool" is one of tools.
func (s Section) Kind() string { return strings.TrimSuffix(string(s), "s") }

// Action is what happens to an object.
type Action string

// The actions.
const (
	ActionCreate Action = "CREATE"
	ActionUpdate Action = "UPDATE"
	ActionDelete Action = "DELETE"
)

// Change is one object that an edit changes.
type Change struct {
	Ref
	Action Action
	Fields []FieldChange // of an update
	Before any           // the object before an update
	// Object is the object after the change, before it for a DELETE: a catalog.Tool and the like.
	Object any
	// Approval is the edit's.
	Approval bool
}

// FieldChange is one field that changes, as JSON.
type FieldChange struct{ Field, Before, After string }

// Canonicalize brings what has no order into that in which storage returns it, so that equal manifests look
// equal. It changes no list in place.
func (m *Manifest) Canonicalize() {
	for i := range m.ToolTypes {
		m.ToolTypes[i].Quotas = byID(m.ToolTypes[i].Quotas)
	}
	for i := range m.Tools {
		m.Tools[i].Related = sorted(m.Tools[i].Related)
		m.Tools[i].Quotas = byID(m.Tools[i].Quotas)
	}
	for i := range m.DeviceTypes {
		m.DeviceTypes[i].Tools = sorted(m.DeviceTypes[i].Tools)
	}
	for i := range m.Groups {
		m.Groups[i].Grants, m.Groups[i].Revokes = sorted(m.Groups[i].Grants), sorted(m.Groups[i].Revokes)
	}
	for i := range m.Avatars {
		m.Avatars[i].Tools = sorted(m.Avatars[i].Tools)
	}
	for i := range m.Users {
		u := &m.Users[i]
		u.Devices, u.Memberships = slices.Clone(u.Devices), slices.Clone(u.Memberships)
		slices.SortFunc(u.Devices, func(a, b availability.Device) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortFunc(u.Memberships, func(a, b availability.Membership) int { return cmp.Compare(a.Group, b.Group) })
		for j := range u.Memberships {
			u.Memberships[j].Start = instant(u.Memberships[j].Start)
			u.Memberships[j].Expire = instant(u.Memberships[j].Expire)
		}
	}
}

func sorted[T cmp.Ordered](list []T) []T { return slices.Sorted(slices.Values(list)) }

func byID(rules []quota.Rule) []quota.Rule {
	return slices.SortedFunc(slices.Values(rules), func(a, b quota.Rule) int { return cmp.Compare(a.ID, b.ID) })
}

// instant drops the time zone; the zero time stays zero.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
