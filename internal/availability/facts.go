package availability

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// DeviceType is a kind of device: what it can do and which tools it offers.
type DeviceType struct {
	ID           id.DeviceType `json:"device_type_id"`
	Title        string        `json:"title"`
	Capabilities []string      `json:"capabilities"`
	Tools        []id.Tool     `json:"tool_ids"`
}

// Group is a group of users that grants and revokes tools.
type Group struct {
	ID       id.Group  `json:"group_id"`
	Title    string    `json:"title"`
	Priority int32     `json:"priority"`
	Grants   []id.Tool `json:"grant_tool_ids"`
	Revokes  []id.Tool `json:"revoke_tool_ids"`
	// Permissions are what members are permitted, for tools that require it.
	Permissions []string `json:"permissions"`
}

// Device is a device of a user.
type Device struct {
	ID   id.Device     `json:"device_id"`
	Type id.DeviceType `json:"device_type_id"`
}

// Membership is a user's membership of a group. A zero Start means since ever, a zero Expire for ever.
type Membership struct {
	Group  id.Group  `json:"group_id"`
	Start  time.Time `json:"start_time,omitzero"`  // inclusive
	Expire time.Time `json:"expire_time,omitzero"` // exclusive
}

// ActiveAt tells whether the membership counts at an instant.
func (m Membership) ActiveAt(now time.Time) bool {
	return (m.Start.IsZero() || !now.Before(m.Start)) && (m.Expire.IsZero() || now.Before(m.Expire))
}

// User is what availability knows of a user.
type User struct {
	ID          id.User      `json:"user_id"`
	Devices     []Device     `json:"devices"` // by id
	Memberships []Membership `json:"memberships"`
}

// Device returns the user's device of an id.
func (u *User) Device(device id.Device) (Device, bool) {
	for _, d := range u.Devices {
		if d.ID == device {
			return d, true
		}
	}
	return Device{}, false
}

// NextChange is the next instant after now at which a membership starts or expires; zero: none does.
func (u *User) NextChange(now time.Time) time.Time {
	var next time.Time
	for _, m := range u.Memberships {
		for _, at := range [...]time.Time{m.Start, m.Expire} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// Surface is where a conversation is open: a device, or, if Device is empty, the web.
type Surface struct {
	Device id.Device
}

// Web is the web as a surface.
var Web = Surface{}

// IsWeb tells whether the surface is the web.
func (s Surface) IsWeb() bool { return s.Device == "" }
