package availability

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// DeviceType is a kind of device: what it can do and which tools it offers.
type DeviceType struct {
	ID           id.DeviceType
	Title        string
	Capabilities []string
	Tools        []id.Tool
}

// Group is a group of users that grants and revokes tools.
type Group struct {
	ID       id.Group
	Title    string
	Priority int32
	Grants   []id.Tool
	Revokes  []id.Tool
}

// Device is a device of a user.
type Device struct {
	ID   id.Device
	Type id.DeviceType
}

// Membership is a user's membership of a group. A zero Start means since ever, a zero Expire for ever.
type Membership struct {
	Group  id.Group
	Start  time.Time // inclusive
	Expire time.Time // exclusive
}

// ActiveAt tells whether the membership counts at an instant.
func (m Membership) ActiveAt(now time.Time) bool {
	return (m.Start.IsZero() || !now.Before(m.Start)) && (m.Expire.IsZero() || now.Before(m.Expire))
}

// User is what availability knows of a user.
type User struct {
	ID          id.User
	Devices     []Device // by id
	Memberships []Membership
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

// Surface is where a conversation is open: a device, or, if Device is empty, the web.
type Surface struct {
	Device id.Device
}

// Web is the web as a surface.
var Web = Surface{}

// IsWeb tells whether the surface is the web.
func (s Surface) IsWeb() bool { return s.Device == "" }
