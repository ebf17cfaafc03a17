// Package availability decides what a user may use on a surface, whatever the conversation:
//
//	available = (offered - revoked) | granted | owned
//
// less what is retired, switched off, in quarantine, somebody else's, or, on a device, beyond what the device can do.
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
	sorted      []*compiledGroup // by id
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
		c := &compiledGroup{Group: g, grants: tools.SetOf(g.Grants), revokes: tools.SetOf(g.Revokes)}
		s.groups[g.ID] = c
		s.sorted = append(s.sorted, c)
	}
	slices.SortFunc(s.sorted, func(a, b *compiledGroup) int { return cmp.Compare(a.ID, b.ID) })
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

	snapshot *Snapshot
	active   []*compiledGroup // the user's, the highest priority first
}

// Decide says what is available to a user on a surface at an instant. The surface must be the web or a
// device of the user.
func (s *Snapshot) Decide(user *User, surface Surface, now time.Time) Decision {
	d := Decision{
		Foreign:  s.catalog.Private().Difference(s.catalog.OwnedBy(user.ID)),
		snapshot: s,
		active:   s.activeGroups(user, now),
	}
	d.Granted, d.Revoked = s.patches(d.active)
	return d.on(user, surface)
}

// on is the same decision on a surface: what it offers and cannot do, and so what is available.
func (d Decision) on(user *User, surface Surface) Decision {
	s := d.snapshot
	d.Offered, d.Incapable = s.offered(user, surface), s.incapable(user, surface)
	d.Available = d.Offered.Difference(d.Revoked)
	d.Available.InPlaceUnion(d.Granted)
	d.Available.InPlaceUnion(s.catalog.OwnedBy(user.ID))
	d.Available.InPlaceDifference(s.catalog.Retired())
	d.Available.InPlaceDifference(s.catalog.TypeDisabled())
	d.Available.InPlaceDifference(s.catalog.Quarantined())
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

// Elsewhere is what is available to a user on another surface.
type Elsewhere struct {
	Surface   Surface
	Available *catalog.Set
}

// Elsewhere returns what is available on the user's other surfaces than the one that was decided for: devices
// by id, then the web.
func (d *Decision) Elsewhere(user *User, surface Surface) []Elsewhere {
	var others []Elsewhere
	consider := func(other Surface) {
		if other != surface {
			others = append(others, Elsewhere{other, d.on(user, other).Available})
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
