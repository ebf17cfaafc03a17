package grpcserver

import (
	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/id"
)

var deviceTypes = kind[*toolgrantv1.DeviceType, availability.DeviceType]{
	noun: "device_type", section: admin.SectionDeviceTypes,
	objects: func(m *admin.Manifest) *[]availability.DeviceType { return &m.DeviceTypes },
	name:    func(d availability.DeviceType) string { return string(d.ID) },
	etag:    func(d *toolgrantv1.DeviceType) *string { return &d.Etag },
	fromProto: func(d *toolgrantv1.DeviceType) availability.DeviceType {
		return availability.DeviceType{ID: id.DeviceType(d.GetDeviceTypeId()), Title: d.GetTitle(),
			Capabilities: d.GetCapabilities(), Tools: ids[id.Tool](d.GetToolIds())}
	},
	toProto: func(d availability.DeviceType) (*toolgrantv1.DeviceType, error) {
		return &toolgrantv1.DeviceType{DeviceTypeId: string(d.ID), Title: d.Title, Capabilities: d.Capabilities, ToolIds: strings(d.Tools)}, nil
	},
}

var groups = kind[*toolgrantv1.Group, availability.Group]{
	noun: "group", section: admin.SectionGroups,
	objects: func(m *admin.Manifest) *[]availability.Group { return &m.Groups },
	name:    func(g availability.Group) string { return string(g.ID) },
	etag:    func(g *toolgrantv1.Group) *string { return &g.Etag },
	fromProto: func(g *toolgrantv1.Group) availability.Group {
		return availability.Group{ID: id.Group(g.GetGroupId()), Title: g.GetTitle(), Priority: g.GetPriority(),
			Grants: ids[id.Tool](g.GetGrantToolIds()), Revokes: ids[id.Tool](g.GetRevokeToolIds()),
			Permissions: g.GetPermissions()}
	},
	toProto: func(g availability.Group) (*toolgrantv1.Group, error) {
		return &toolgrantv1.Group{GroupId: string(g.ID), Title: g.Title, Priority: g.Priority,
			GrantToolIds: strings(g.Grants), RevokeToolIds: strings(g.Revokes), Permissions: g.Permissions}, nil
	},
}

var users = kind[*toolgrantv1.User, availability.User]{
	noun: "user", section: admin.SectionUsers,
	objects: func(m *admin.Manifest) *[]availability.User { return &m.Users },
	name:    func(u availability.User) string { return string(u.ID) },
	etag:    func(u *toolgrantv1.User) *string { return &u.Etag },
	fromProto: func(u *toolgrantv1.User) availability.User {
		user := availability.User{ID: id.User(u.GetUserId())}
		for _, d := range u.GetDevices() {
			user.Devices = append(user.Devices, devices.fromProto(d))
		}
		for _, m := range u.GetMemberships() {
			user.Memberships = append(user.Memberships, memberships.fromProto(m))
		}
		return user
	},
	toProto: func(u availability.User) (*toolgrantv1.User, error) {
		user := &toolgrantv1.User{UserId: string(u.ID)}
		for _, d := range u.Devices {
			user.Devices = append(user.Devices, devices.toProto(d))
		}
		for _, m := range u.Memberships {
			user.Memberships = append(user.Memberships, memberships.toProto(m))
		}
		return user, nil
	},
}

var devices = userPart[*toolgrantv1.Device, availability.Device]{
	noun: "device", field: "devices", idField: "device_id",
	parts: func(u *availability.User) *[]availability.Device { return &u.Devices },
	name:  func(d availability.Device) string { return string(d.ID) },
	fromProto: func(d *toolgrantv1.Device) availability.Device {
		return availability.Device{ID: id.Device(d.GetDeviceId()), Type: id.DeviceType(d.GetDeviceTypeId())}
	},
	toProto: func(d availability.Device) *toolgrantv1.Device {
		return &toolgrantv1.Device{DeviceId: string(d.ID), DeviceTypeId: string(d.Type)}
	},
}

var memberships = userPart[*toolgrantv1.Membership, availability.Membership]{
	noun: "membership", field: "memberships", idField: "group_id",
	parts: func(u *availability.User) *[]availability.Membership { return &u.Memberships },
	name:  func(m availability.Membership) string { return string(m.Group) },
	fromProto: func(m *toolgrantv1.Membership) availability.Membership {
		return availability.Membership{Group: id.Group(m.GetGroupId()), Start: timeFromProto(m.GetStartTime()), Expire: timeFromProto(m.GetExpireTime())}
	},
	toProto: func(m availability.Membership) *toolgrantv1.Membership {
		return &toolgrantv1.Membership{GroupId: string(m.Group), StartTime: timeToProto(m.Start), ExpireTime: timeToProto(m.Expire)}
	},
}
