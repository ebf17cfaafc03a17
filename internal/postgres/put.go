package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

func (s *Store) putObject(ctx context.Context, tx pgx.Tx, object any) error {
	q := s.queries
	switch o := object.(type) {
	case availability.User:
		if err := q.PutUser(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		// Cleared before any user's are written, since a device may move from one user to another.
		if err := q.ClearDevices(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		return q.ClearMemberships(ctx, tx, string(o.ID))
	case catalog.MCPServer:
		headers, err := json.Marshal(o.HeadersFromEnv)
		if err != nil {
			return err
		}
		return q.PutMcpServer(ctx, tx, db.PutMcpServerParams{McpServerID: string(o.ID), Title: o.Title,
			Transport: string(o.Transport), Endpoint: o.Endpoint, Priority: o.Priority, HeadersFromEnv: headers})
	case catalog.ToolType:
		return q.PutToolType(ctx, tx, db.PutToolTypeParams{ToolTypeID: string(o.ID), Title: o.Title, Source: string(o.Source),
			ToolClass: o.ToolClass, McpServerID: orNull(o.MCPServer), ConfigSchema: o.ConfigSchema, InputSchema: o.InputSchema,
			Disabled: o.Disabled})
	case catalog.Tool:
		return s.putTool(ctx, tx, o)
	case availability.DeviceType:
		if err := q.PutDeviceType(ctx, tx, db.PutDeviceTypeParams{DeviceTypeID: string(o.ID), Title: o.Title, Capabilities: orNone(o.Capabilities)}); err != nil {
			return err
		}
		if err := q.ClearDeviceTypeTools(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		return q.AddDeviceTypeTools(ctx, tx, db.AddDeviceTypeToolsParams{DeviceTypeID: string(o.ID), ToolIds: as[string](o.Tools)})
	case availability.Group:
		if err := q.PutGroup(ctx, tx, db.PutGroupParams{GroupID: string(o.ID), Title: o.Title, Priority: o.Priority}); err != nil {
			return err
		}
		if err := q.ClearGroupTools(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		if err := q.AddGroupTools(ctx, tx, db.AddGroupToolsParams{GroupID: string(o.ID), ToolIds: as[string](o.Grants), Effect: "GRANT"}); err != nil {
			return err
		}
		return q.AddGroupTools(ctx, tx, db.AddGroupToolsParams{GroupID: string(o.ID), ToolIds: as[string](o.Revokes), Effect: "REVOKE"})
	case enable.Avatar:
		if err := q.PutAvatar(ctx, tx, db.PutAvatarParams{AvatarID: string(o.ID), Title: o.Title}); err != nil {
			return err
		}
		if err := q.ClearAvatarTools(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		return q.AddAvatarTools(ctx, tx, db.AddAvatarToolsParams{AvatarID: string(o.ID), ToolIds: as[string](o.Tools)})
	case enable.DefaultAvatar:
		return q.PutDefaultAvatar(ctx, tx, db.PutDefaultAvatarParams{AvatarID: string(o.Avatar), UserID: orNull(o.User), DeviceTypeID: orNull(o.DeviceType)})
	}
	return fmt.Errorf("no table for %T", object)
}

func (s *Store) putTool(ctx context.Context, tx pgx.Tx, t catalog.Tool) error {
	localized, err := json.Marshal(t.Localized)
	if err != nil {
		return err
	}
	config := t.Config
	if config == nil {
		config = json.RawMessage("{}")
	}
	if err := s.queries.PutTool(ctx, tx, db.PutToolParams{ToolID: string(t.ID), ToolTypeID: string(t.Type), Name: t.Name,
		Title: t.Title, Description: t.Description, Prompt: t.Prompt, Category: t.Category, Config: config,
		Status: string(t.Status), Core: t.Core, Precedence: t.Precedence, Risk: string(t.Risk),
		RequiredCapabilities: orNone(t.RequiredCapabilities), OwnerUserID: orNull(t.Owner), Keywords: orNone(t.Keywords),
		Aliases: orNone(t.Aliases), Examples: orNone(t.Examples), Localized: localized}); err != nil {
		return err
	}
	return s.queries.ClearToolRelations(ctx, tx, string(t.ID))
}

func (s *Store) putUserFacts(ctx context.Context, tx pgx.Tx, u availability.User) error {
	devices := db.AddDevicesParams{UserID: string(u.ID), DeviceIds: []string{}, DeviceTypeIds: []string{}}
	for _, d := range u.Devices {
		devices.DeviceIds = append(devices.DeviceIds, string(d.ID))
		devices.DeviceTypeIds = append(devices.DeviceTypeIds, string(d.Type))
	}
	if err := s.queries.AddDevices(ctx, tx, devices); err != nil {
		return err
	}
	for _, m := range u.Memberships {
		if err := s.queries.AddMembership(ctx, tx, db.AddMembershipParams{UserID: string(u.ID), GroupID: string(m.Group),
			StartTime: timeOrNull(m.Start), ExpireTime: timeOrNull(m.Expire)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteObject(ctx context.Context, tx pgx.Tx, object any) error {
	q := s.queries
	switch o := object.(type) {
	case availability.User:
		return q.DeleteUser(ctx, tx, string(o.ID))
	case catalog.MCPServer:
		return q.DeleteMcpServer(ctx, tx, string(o.ID))
	case catalog.ToolType:
		return q.DeleteToolType(ctx, tx, string(o.ID))
	case catalog.Tool:
		return q.DeleteTool(ctx, tx, string(o.ID))
	case availability.DeviceType:
		return q.DeleteDeviceType(ctx, tx, string(o.ID))
	case availability.Group:
		return q.DeleteGroup(ctx, tx, string(o.ID))
	case enable.Avatar:
		return q.DeleteAvatar(ctx, tx, string(o.ID))
	case enable.DefaultAvatar:
		return q.DeleteDefaultAvatar(ctx, tx, db.DeleteDefaultAvatarParams{UserID: string(o.User), DeviceTypeID: string(o.DeviceType)})
	}
	return fmt.Errorf("no table for %T", object)
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
