package grpcserver

import (
	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

var avatars = kind[*toolgrantv1.Avatar, enable.Avatar]{
	noun: "avatar", section: admin.SectionAvatars,
	objects: func(m *admin.Manifest) *[]enable.Avatar { return &m.Avatars },
	name:    func(a enable.Avatar) string { return string(a.ID) },
	etag:    func(a *toolgrantv1.Avatar) *string { return &a.Etag },
	fromProto: func(a *toolgrantv1.Avatar) enable.Avatar {
		return enable.Avatar{ID: id.Avatar(a.GetAvatarId()), Title: a.GetTitle(), Tools: ids[id.Tool](a.GetToolIds())}
	},
	toProto: func(a enable.Avatar) (*toolgrantv1.Avatar, error) {
		return &toolgrantv1.Avatar{AvatarId: string(a.ID), Title: a.Title, ToolIds: strings(a.Tools)}, nil
	},
}

var defaultAvatars = kind[*toolgrantv1.DefaultAvatar, enable.DefaultAvatar]{
	noun: "default_avatar", section: admin.SectionDefaultAvatars,
	objects: func(m *admin.Manifest) *[]enable.DefaultAvatar { return &m.DefaultAvatars },
	name:    admin.DefaultAvatarID,
	etag:    func(d *toolgrantv1.DefaultAvatar) *string { return &d.Etag },
	fromProto: func(d *toolgrantv1.DefaultAvatar) enable.DefaultAvatar {
		return enable.DefaultAvatar{Avatar: id.Avatar(d.GetAvatarId()), User: id.User(d.GetUserId()), DeviceType: id.DeviceType(d.GetDeviceTypeId())}
	},
	toProto: func(d enable.DefaultAvatar) (*toolgrantv1.DefaultAvatar, error) {
		return &toolgrantv1.DefaultAvatar{AvatarId: string(d.Avatar), UserId: string(d.User), DeviceTypeId: string(d.DeviceType)}, nil
	},
}
