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

// clearReferences removes the rows by which an object refers to others. Those of all objects that change or go
// are removed before anything is written: else a foreign key could be hurt on the way to a state that hurts none.
func (s *Store) clearReferences(ctx context.Context, tx pgx.Tx, object any) error {
	q := s.queries
	switch o := object.(type) {
	case availability.User:
		if err := q.ClearDevices(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		return q.ClearMemberships(ctx, tx, string(o.ID))
	case catalog.Tool:
		if err := q.ClearToolFallbacks(ctx, tx, string(o.ID)); err != nil {
			return err
		}
		return q.ClearToolRelations(ctx, tx, string(o.ID))
	case availability.DeviceType:
		return q.ClearDeviceTypeTools(ctx, tx, string(o.ID))
	case availability.Group:
		return q.ClearGroupTools(ctx, tx, string(o.ID))
	case enable.Avatar:
		return q.ClearAvatarTools(ctx, tx, string(o.ID))
	}
	return nil
}

// putObject writes an object's own row.
func (s *Store) putObject(ctx context.Context, tx pgx.Tx, object any) error {
	q := s.queries
	switch o := object.(type) {
	case availability.User:
		return q.PutUser(ctx, tx, userParams(o))
	case catalog.MCPServer:
		headers, err := json.Marshal(o.HeadersFromEnv)
		if err != nil {
			return err
		}
		return q.PutMcpServer(ctx, tx, db.PutMcpServerParams{McpServerID: string(o.ID), Title: o.Title,
			Transport: string(o.Transport), Endpoint: o.Endpoint, Priority: o.Priority, HeadersFromEnv: headers})
	case catalog.ToolType:
		functions, err := json.Marshal(o.Functions)
		if err != nil {
			return err
		}
		if len(o.Functions) == 0 {
			functions = json.RawMessage("[]")
		}
		return q.PutToolType(ctx, tx, db.PutToolTypeParams{ToolTypeID: string(o.ID), Title: o.Title, Source: string(o.Source),
			ToolClass: o.ToolClass, McpServerID: orNull(o.MCPServer), ConfigSchema: o.ConfigSchema, InputSchema: o.InputSchema,
			Disabled: o.Disabled, Functions: functions})
	case catalog.Tool:
		return s.putTool(ctx, tx, o)
	case availability.DeviceType:
		return q.PutDeviceType(ctx, tx, db.PutDeviceTypeParams{DeviceTypeID: string(o.ID), Title: o.Title, Capabilities: orNone(o.Capabilities)})
	case availability.Group:
		return q.PutGroup(ctx, tx, db.PutGroupParams{GroupID: string(o.ID), Title: o.Title, Priority: o.Priority,
			Permissions: orNone(o.Permissions)})
	case enable.Avatar:
		return q.PutAvatar(ctx, tx, db.PutAvatarParams{AvatarID: string(o.ID), Title: o.Title})
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
	alone := t.Capability
	alone.Fallback = nil // has a table
	capability, err := json.Marshal(alone)
	if err != nil {
		return err
	}
	mcp, err := json.Marshal(t.MCP)
	if err != nil {
		return err
	}
	config := t.Config
	if config == nil {
		config = json.RawMessage("{}")
	}
	return s.queries.PutTool(ctx, tx, db.PutToolParams{ToolID: string(t.ID), ToolTypeID: string(t.Type), Name: t.Name,
		Title: t.Title, Description: t.Description, Prompt: t.Prompt, Category: t.Category, Config: config,
		Status: string(t.Status), Core: t.Core, Precedence: t.Precedence, Risk: string(t.Risk),
		RequiredCapabilities: orNone(t.RequiredCapabilities), OwnerUserID: orNull(t.Owner), Keywords: orNone(t.Keywords),
		Aliases: orNone(t.Aliases), Examples: orNone(t.Examples), Localized: localized,
		Capability: capability, FailThreshold: numberOrNull(t.Health.FailThreshold), CooldownMs: numberOrNull(t.Health.CooldownMs), Mcp: mcp})
}

// addReferences writes the rows by which an object refers to others, which are there now, and its rules.
func (s *Store) addReferences(ctx context.Context, tx pgx.Tx, object any) error {
	q := s.queries
	switch o := object.(type) {
	case availability.User:
		return s.addUserFacts(ctx, tx, o)
	case catalog.ToolType:
		return s.putQuotas(ctx, tx, "", o.ID, o.Quotas)
	case catalog.Tool:
		if err := s.putQuotas(ctx, tx, o.ID, "", o.Quotas); err != nil {
			return err
		}
		if err := q.AddToolFallbacks(ctx, tx, db.AddToolFallbacksParams{ToolID: string(o.ID), FallbackToolIds: as[string](o.Capability.Fallback)}); err != nil {
			return err
		}
		return q.AddToolRelations(ctx, tx, db.AddToolRelationsParams{ToolID: string(o.ID), RelatedToolIds: as[string](o.Related)})
	case availability.DeviceType:
		return q.AddDeviceTypeTools(ctx, tx, db.AddDeviceTypeToolsParams{DeviceTypeID: string(o.ID), ToolIds: as[string](o.Tools)})
	case availability.Group:
		if err := q.AddGroupTools(ctx, tx, db.AddGroupToolsParams{GroupID: string(o.ID), ToolIds: as[string](o.Grants), Effect: "GRANT"}); err != nil {
			return err
		}
		return q.AddGroupTools(ctx, tx, db.AddGroupToolsParams{GroupID: string(o.ID), ToolIds: as[string](o.Revokes), Effect: "REVOKE"})
	case enable.Avatar:
		return q.AddAvatarTools(ctx, tx, db.AddAvatarToolsParams{AvatarID: string(o.ID), ToolIds: as[string](o.Tools)})
	}
	return nil
}

// userParams folds a user into one row.
func userParams(u availability.User) db.PutUserParams {
	p := db.PutUserParams{UserID: string(u.ID), DeviceIds: []string{}, DeviceTypeIds: []string{},
		GroupIds: []string{}, StartTimes: []time.Time{}, ExpireTimes: []time.Time{}}
	for _, d := range u.Devices {
		p.DeviceIds, p.DeviceTypeIds = append(p.DeviceIds, string(d.ID)), append(p.DeviceTypeIds, string(d.Type))
	}
	for _, m := range u.Memberships {
		p.GroupIds = append(p.GroupIds, string(m.Group))
		p.StartTimes, p.ExpireTimes = append(p.StartTimes, m.Start), append(p.ExpireTimes, m.Expire)
	}
	return p
}

func (s *Store) addUserFacts(ctx context.Context, tx pgx.Tx, u availability.User) error {
	folded := userParams(u)
	if err := s.queries.AddDevices(ctx, tx, db.AddDevicesParams{UserID: folded.UserID, DeviceIds: folded.DeviceIds, DeviceTypeIds: folded.DeviceTypeIds}); err != nil {
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

func numberOrNull(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
