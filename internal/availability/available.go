// Package availability decides what a user may use on a surface, whatever the conversation:
//
//	available = (offered - revoked) | granted | owned
//
// less what is retired, switched off, somebody else's, or, on a device, beyond what the device can do.
package availability

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Snapshot is the compiled availability rules over one catalogue. It never changes.
type Snapshot struct {
	catalog     *catalog.Snapshot
	deviceTypes map[id.DeviceType]*compiledDeviceType
	groups      map[id.Group]*compiledGroup
	groupIDs    []id.Group // sorted
}

type compiledDeviceType struct {
	DeviceType
	offered   *catalog.Set
	incapable *catalog.Set // tools that need what the type lacks
}

type compiledGroup struct {
	Group
	grants, revokes *catalog.Set
}

// Compile compiles device types and groups over a catalogue.
func Compile(tools *catalog.Snapshot, deviceTypes []DeviceType, groups []Group) *Snapshot {
	s := &Snapshot{
		catalog:     tools,
		deviceTypes: make(map[id.DeviceType]*compiledDeviceType, len(deviceTypes)),
		groups:      make(map[id.Group]*compiledGroup, len(groups)),
	}
	needing := needing(tools)
	for _, d := range deviceTypes {
		c := &compiledDeviceType{DeviceType: d, offered: tools.SetOf(d.Tools), incapable: tools.NewSet()}
		for capability, set := range needing {
			if !slices.Contains(d.Capabilities, capability) {
				c.incapable.InPlaceUnion(set)
			}
		}
		s.deviceTypes[d.ID] = c
	}
	for _, g := range groups {
		s.groups[g.ID] = &compiledGroup{Group: g, grants: tools.SetOf(g.Grants), revokes: tools.SetOf(g.Revokes)}
		s.groupIDs = append(s.groupIDs, g.ID)
	}
	slices.Sort(s.groupIDs)
	return s
}

// needing returns the tools that need each capability.
func needing(tools *catalog.Snapshot) map[string]*catalog.Set {
	sets := map[string]*catalog.Set{}
	for n := range uint(tools.Len()) {
		for _, capability := range tools.Tool(n).RequiredCapabilities {
			if sets[capability] == nil {
				sets[capability] = tools.NewSet()
			}
			sets[capability].Set(n)
		}
	}
	return sets
}

// missing returns what a tool needs and a device type lacks, sorted.
func missing(tool *catalog.Tool, deviceType *DeviceType) []string {
	var lacks []string
	for _, capability := range tool.RequiredCapabilities {
		if !slices.Contains(deviceType.Capabilities, capability) {
			lacks = append(lacks, capability)
		}
	}
	slices.Sort(lacks)
	return lacks
}

// Decision is what is available, and the parts that it was made of.
type Decision struct {
	Offered   *catalog.Set // by the surface
	Revoked   *catalog.Set // by the user's groups
	Granted   *catalog.Set // by the user's groups
	Foreign   *catalog.Set // privately owned by others
	Incapable *catalog.Set // beyond what the device can do
	Available *catalog.Set
}

// Decide says what is available to a user on a surface at an instant. The surface must be the web or a
// device of the user.
func (s *Snapshot) Decide(user *User, surface Surface, now time.Time) Decision {
	granted, revoked := s.patches(user, now)
	return s.decide(user, surface, granted, revoked)
}

func (s *Snapshot) decide(user *User, surface Surface, granted, revoked *catalog.Set) Decision {
	owned := s.catalog.OwnedBy(user.ID)
	d := Decision{
		Offered:   s.offered(user, surface),
		Revoked:   revoked,
		Granted:   granted,
		Foreign:   s.catalog.Private().Difference(owned),
		Incapable: s.incapable(user, surface),
	}
	d.Available = d.Offered.Difference(d.Revoked)
	d.Available.InPlaceUnion(d.Granted)
	d.Available.InPlaceUnion(owned)
	d.Available.InPlaceDifference(s.catalog.Retired())
	d.Available.InPlaceDifference(s.catalog.TypeDisabled())
	d.Available.InPlaceDifference(d.Foreign)
	d.Available.InPlaceDifference(d.Incapable)
	return d
}

// offered is what the device's type lists; for the web, what the types of all the user's devices list.
func (s *Snapshot) offered(user *User, surface Surface) *catalog.Set {
	set := s.catalog.NewSet()
	for _, device := range user.Devices {
		if t := s.deviceTypes[device.Type]; t != nil && (surface.IsWeb() || surface.Device == device.ID) {
			set.InPlaceUnion(t.offered)
		}
	}
	return set
}

// incapable is what the device cannot do; the web is not limited.
func (s *Snapshot) incapable(user *User, surface Surface) *catalog.Set {
	if device, ok := user.Device(surface.Device); ok {
		if t := s.deviceTypes[device.Type]; t != nil {
			return t.incapable
		}
	}
	return s.catalog.NewSet()
}

// patches folds the user's active groups, the highest priority first: what a higher one decided stays, and
// at one priority revoke beats grant.
func (s *Snapshot) patches(user *User, now time.Time) (granted, revoked *catalog.Set) {
	granted, revoked = s.catalog.NewSet(), s.catalog.NewSet()
	active := s.activeGroups(user, now)
	for len(active) > 0 {
		level := 1
		for level < len(active) && active[level].Priority == active[0].Priority {
			level++
		}
		grants, revokes := s.catalog.NewSet(), s.catalog.NewSet()
		for _, g := range active[:level] {
			grants.InPlaceUnion(g.grants)
			revokes.InPlaceUnion(g.revokes)
		}
		revokes.InPlaceDifference(granted)
		revoked.InPlaceUnion(revokes)
		grants.InPlaceDifference(revoked)
		granted.InPlaceUnion(grants)
		active = active[level:]
	}
	return granted, revoked
}

// activeGroups returns the groups that count, the highest priority first, then by id.
func (s *Snapshot) activeGroups(user *User, now time.Time) []*compiledGroup {
	var active []*compiledGroup
	for _, m := range user.Memberships {
		if g := s.groups[m.Group]; g != nil && m.ActiveAt(now) {
			active = append(active, g)
		}
	}
	slices.SortFunc(active, func(a, b *compiledGroup) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return active
}

// RevokingGroups returns the user's active groups that decided to revoke a revoked tool, sorted.
func (s *Snapshot) RevokingGroups(user *User, tool uint, now time.Time) []id.Group {
	var revoking []id.Group
	var priority int32
	for _, g := range s.activeGroups(user, now) {
		if len(revoking) > 0 && g.Priority < priority {
			break
		}
		if g.revokes.Test(tool) {
			revoking, priority = append(revoking, g.ID), g.Priority
		}
	}
	slices.Sort(revoking)
	return revoking
}

// GrantingGroups returns the groups that would grant a tool to the user, were the user an active member of
// one of them besides, sorted.
func (s *Snapshot) GrantingGroups(user *User, tool uint, now time.Time) []id.Group {
	active := s.activeGroups(user, now)
	var granting []id.Group
	for _, name := range s.groupIDs {
		g := s.groups[name]
		beaten := func(other *compiledGroup) bool { return other.revokes.Test(tool) && other.Priority >= g.Priority }
		if g.grants.Test(tool) && !g.revokes.Test(tool) && !slices.ContainsFunc(active, beaten) {
			granting = append(granting, name)
		}
	}
	return granting
}

// Elsewhere is what is available to a user on another surface.
type Elsewhere struct {
	Surface   Surface
	Available *catalog.Set
}

// Elsewhere returns what is available on the user's other surfaces, devices by id, then the web; given what was
// decided for one surface.
func (s *Snapshot) Elsewhere(user *User, surface Surface, decided *Decision) []Elsewhere {
	var others []Elsewhere
	consider := func(other Surface) {
		if other != surface {
			others = append(others, Elsewhere{other, s.decide(user, other, decided.Granted, decided.Revoked).Available})
		}
	}
	for _, device := range user.Devices {
		consider(Surface{Device: device.ID})
	}
	consider(Web)
	return others
}

// MissingCapabilities returns what a tool needs and the surface lacks, sorted.
func (s *Snapshot) MissingCapabilities(user *User, surface Surface, tool uint) []string {
	device, ok := user.Device(surface.Device)
	if !ok || s.deviceTypes[device.Type] == nil {
		return nil
	}
	return missing(s.catalog.Tool(tool), &s.deviceTypes[device.Type].DeviceType)
}

// Group returns the group of an id.
func (s *Snapshot) Group(name id.Group) (Group, bool) {
	if g, ok := s.groups[name]; ok {
		return g.Group, true
	}
	return Group{}, false
}

// Offers tells whether a device type lists a tool.
func (s *Snapshot) Offers(deviceType id.DeviceType, tool uint) bool {
	t, ok := s.deviceTypes[deviceType]
	return ok && t.offered.Test(tool)
}
