package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// ApplyManifest makes the stored objects equal to the manifest's in one transaction, and returns what
// changed and the revision. Writers of the catalogue take turns, so what was validated is what is written.
func (s *Store) ApplyManifest(ctx context.Context, m admin.Manifest, prune, dryRun bool) (changes []admin.Change, r string, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.queries.LockCatalog(ctx, tx); err != nil {
			return err
		}
		stored, err := s.storedFor(ctx, tx, m, prune)
		if err != nil {
			return err
		}
		if changes, err = admin.Plan(stored, m, prune); err != nil {
			return err
		}
		if !dryRun && len(changes) > 0 {
			if err := s.applyChanges(ctx, tx, changes); err != nil {
				return err
			}
		}
		named, err := s.writeRevision(ctx, tx)
		if err != nil {
			return err
		}
		r = named.String()
		if dryRun || len(changes) == 0 {
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return changes, r, err
}

// ExportManifest returns what is stored, and the revision that it is complete through.
func (s *Store) ExportManifest(ctx context.Context, omitUsers bool) (m admin.Manifest, r string, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		snapshot, err := s.queries.Snapshot(ctx, tx)
		if err != nil {
			return err
		}
		read, err := s.readRevision(snapshot.Snapshot)
		if err != nil {
			return err
		}
		c, err := s.catalogAt(ctx, tx)
		if err != nil {
			return err
		}
		m, r = admin.Manifest{Definitions: c.definitions, MCPServers: c.servers}, read.String()
		if !omitUsers {
			m.Users, err = s.users(ctx, tx, nil)
		}
		return err
	})
	return m, r, err
}

// storedFor reads the catalogue and the users that a manifest touches or refers to.
func (s *Store) storedFor(ctx context.Context, tx pgx.Tx, m admin.Manifest, prune bool) (admin.Manifest, error) {
	c, err := s.catalogAt(ctx, tx)
	if err != nil {
		return admin.Manifest{}, err
	}
	stored := admin.Manifest{Definitions: c.definitions, MCPServers: c.servers}
	if prune && len(m.Users) > 0 {
		stored.Users, err = s.users(ctx, tx, nil)
		return stored, err
	}
	names := []string{}
	var devices []string
	for _, u := range m.Users {
		names = append(names, string(u.ID))
		for _, d := range u.Devices {
			devices = append(devices, string(d.ID))
		}
	}
	for _, tools := range [][]catalog.Tool{stored.Tools, m.Tools} {
		for _, t := range tools {
			names = append(names, string(t.Owner))
		}
	}
	for _, defaults := range [][]enable.DefaultAvatar{stored.DefaultAvatars, m.DefaultAvatars} {
		for _, d := range defaults {
			names = append(names, string(d.User))
		}
	}
	owners, err := s.queries.DeviceOwners(ctx, tx, devices)
	if err != nil {
		return admin.Manifest{}, err
	}
	for _, o := range owners {
		names = append(names, o.UserID)
	}
	stored.Users, err = s.users(ctx, tx, names)
	return stored, err
}

// users reads the users of some ids; nil: all.
func (s *Store) users(ctx context.Context, tx pgx.Tx, names []string) ([]availability.User, error) {
	rows, err := s.queries.ListUsers(ctx, tx, db.ListUsersParams{UserIds: names, AtMost: math.MaxInt32})
	if err != nil {
		return nil, err
	}
	users := make([]availability.User, len(rows))
	for i, row := range rows {
		users[i] = *userFromRow(id.User(row.UserID), row.DeviceIds, row.DeviceTypeIds, row.GroupIds, row.StartTimes, row.ExpireTimes)
	}
	return users, nil
}

// applyChanges writes a plan. Users' rows come first, since tools and defaults refer to them; their devices
// and memberships, and relations of tools, refer to the catalogue and come after it. Deletes come last, when
// nothing refers to their objects any more.
func (s *Store) applyChanges(ctx context.Context, tx pgx.Tx, changes []admin.Change) error {
	for _, c := range changes {
		if c.Action != admin.ActionDelete {
			if err := s.putObject(ctx, tx, c.Object); err != nil {
				return err
			}
		}
		if err := s.queries.RecordChange(ctx, tx, db.RecordChangeParams{Kind: kindOf[c.Section], ObjectID: c.ID}); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if u, ok := c.Object.(availability.User); ok && c.Action != admin.ActionDelete {
			if err := s.putUserFacts(ctx, tx, u); err != nil {
				return err
			}
		}
		if t, ok := c.Object.(catalog.Tool); ok && c.Action != admin.ActionDelete {
			if err := s.queries.AddToolRelations(ctx, tx, db.AddToolRelationsParams{ToolID: string(t.ID), RelatedToolIds: as[string](t.Related)}); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if c.Action == admin.ActionDelete {
			if err := s.deleteObject(ctx, tx, c.Object); err != nil {
				return err
			}
		}
	}
	return s.queries.AdvanceCatalog(ctx, tx)
}

var kindOf = map[admin.Section]string{
	admin.SectionUsers: "user", admin.SectionMCPServers: "mcp_server", admin.SectionToolTypes: "tool_type",
	admin.SectionTools: "tool", admin.SectionDeviceTypes: "device_type", admin.SectionGroups: "group",
	admin.SectionAvatars: "avatar", admin.SectionDefaultAvatars: "default_avatar",
}

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
