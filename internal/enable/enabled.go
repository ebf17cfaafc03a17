// Package enable decides what a conversation turned on: its active avatars' tools, plus and minus the
// chat's own changes, plus the core tools.
package enable

import (
	"slices"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Avatar is an LLM persona; it binds the tools that it turns on.
type Avatar struct {
	ID    id.Avatar `json:"avatar_id"`
	Title string    `json:"title"`
	Tools []id.Tool `json:"tool_ids"`
}

// DefaultAvatar says which avatar a conversation starts with. An empty User or DeviceType means any.
type DefaultAvatar struct {
	Avatar     id.Avatar     `json:"avatar_id"`
	User       id.User       `json:"user_id"`
	DeviceType id.DeviceType `json:"device_type_id"`
}

// Snapshot is the compiled avatars over one catalogue. It never changes.
type Snapshot struct {
	catalog  *catalog.Snapshot
	avatars  map[id.Avatar]*catalog.Set
	defaults map[defaultKey]id.Avatar
}

type defaultKey struct {
	user       id.User
	deviceType id.DeviceType
}

// Compile compiles avatars and defaults over a catalogue.
func Compile(tools *catalog.Snapshot, avatars []Avatar, defaults []DefaultAvatar) *Snapshot {
	s := &Snapshot{
		catalog:  tools,
		avatars:  make(map[id.Avatar]*catalog.Set, len(avatars)),
		defaults: make(map[defaultKey]id.Avatar, len(defaults)),
	}
	for _, a := range avatars {
		s.avatars[a.ID] = tools.SetOf(a.Tools)
	}
	for _, d := range defaults {
		s.defaults[defaultKey{d.User, d.DeviceType}] = d.Avatar
	}
	return s
}

// Default returns the most specific default avatar. The device type is empty for the web, which matches
// only rows for any device type.
func (s *Snapshot) Default(user id.User, deviceType id.DeviceType) (id.Avatar, bool) {
	for _, key := range []defaultKey{{user, deviceType}, {user, ""}, {"", deviceType}, {"", ""}} {
		if avatar, ok := s.defaults[key]; ok {
			return avatar, true
		}
	}
	return "", false
}

// Decision is what is enabled, and the parts that it was made of.
type Decision struct {
	ActiveAvatars []id.Avatar // sorted
	ByChat        *catalog.Set
	OffByChat     *catalog.Set
	Enabled       *catalog.Set

	snapshot *Snapshot
	state    State
	turn     int32
}

// Decide says what a chat with this state turned on in a turn, for a user on a device of this type (empty:
// the web).
func (s *Snapshot) Decide(state State, turn int32, user id.User, deviceType id.DeviceType) Decision {
	d := Decision{ByChat: s.catalog.NewSet(), OffByChat: s.catalog.NewSet(), Enabled: s.catalog.NewSet(),
		snapshot: s, state: state, turn: turn}
	if len(state.Avatars) > 0 {
		for _, avatar := range state.ActiveAvatars() {
			if s.avatars[avatar] != nil {
				d.ActiveAvatars = append(d.ActiveAvatars, avatar)
			}
		}
		slices.Sort(d.ActiveAvatars)
	} else if avatar, ok := s.Default(user, deviceType); ok {
		d.ActiveAvatars = []id.Avatar{avatar}
	}
	for _, avatar := range d.ActiveAvatars {
		d.Enabled.InPlaceUnion(s.avatars[avatar])
	}
	for tool, t := range state.Tools {
		n, ok := s.catalog.Number(tool)
		switch {
		case !ok:
		case t.LiveTTL(turn) || t.Lasting == ActionEnable:
			d.ByChat.Set(n)
		case t.Lasting == ActionDisable:
			d.OffByChat.Set(n)
		}
	}
	d.Enabled.InPlaceUnion(d.ByChat)
	d.Enabled.InPlaceDifference(d.OffByChat)
	d.Enabled.InPlaceUnion(s.catalog.Core())
	return d
}

// Binding returns the active avatars that bind a tool, sorted.
func (d *Decision) Binding(tool uint) []id.Avatar {
	var binding []id.Avatar
	for _, avatar := range d.ActiveAvatars {
		if d.snapshot.avatars[avatar].Test(tool) {
			binding = append(binding, avatar)
		}
	}
	return binding
}

// TurnsLeft says for how many turns, this one included, a tool stays enabled, if nothing but an enabling
// with a TTL keeps it on.
func (d *Decision) TurnsLeft(tool uint) (int32, bool) {
	t := d.state.Tools[d.snapshot.catalog.Tool(tool).ID]
	if !t.LiveTTL(d.turn) || t.Lasting == ActionEnable || d.snapshot.catalog.Core().Test(tool) {
		return 0, false
	}
	if t.Lasting == "" && len(d.Binding(tool)) > 0 {
		return 0, false
	}
	return *t.ThroughTurn - d.turn + 1, true
}
