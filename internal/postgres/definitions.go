package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// readDefinitions reads what changed of a catalogue's definitions. Lists that did not change are shared with
// the catalogue before.
func (s *Store) readDefinitions(ctx context.Context, tx db.DBTX, c *compiledCatalog, since changes) error {
	d := &c.definitions
	return errors.Join(
		refresh(ctx, tx, since, "tool_type", &d.ToolTypes, s.toolTypes, func(t catalog.ToolType) string { return string(t.ID) }),
		refresh(ctx, tx, since, "tool", &d.Tools, s.tools, func(t catalog.Tool) string { return string(t.ID) }),
		refresh(ctx, tx, since, "mcp_server", &c.definitions.MCPServers, s.mcpServers, func(m catalog.MCPServer) string { return string(m.ID) }),
		refresh(ctx, tx, since, "device_type", &d.DeviceTypes, s.deviceTypes, func(t availability.DeviceType) string { return string(t.ID) }),
		refresh(ctx, tx, since, "group", &d.Groups, s.groups, func(g availability.Group) string { return string(g.ID) }),
		refresh(ctx, tx, since, "avatar", &d.Avatars, s.avatars, func(a enable.Avatar) string { return string(a.ID) }),
		refresh(ctx, tx, since, "default_avatar", &d.DefaultAvatars, s.defaultAvatars, admin.DefaultAvatarID),
		s.refreshRouting(ctx, tx, since, &d.Routing),
	)
}

// refresh replaces those objects of a list, which is sorted by id, that changed.
func refresh[T any](ctx context.Context, tx db.DBTX, since changes, kind string, list *[]T,
	read func(ctx context.Context, tx db.DBTX, every bool, ids []string) ([]T, error), idOf func(T) string) error {
	changed := since.ids[kind]
	if len(changed) == 0 && !since.lost {
		return nil
	}
	found, err := read(ctx, tx, since.lost, changed)
	if err != nil || since.lost {
		*list = found
		return err
	}
	slices.Sort(changed)
	kept := make([]T, 0, len(*list)+len(found))
	for _, object := range *list {
		if _, replaced := slices.BinarySearch(changed, idOf(object)); !replaced {
			kept = append(kept, object)
		}
	}
	*list = append(kept, found...)
	slices.SortFunc(*list, func(a, b T) int { return cmp.Compare(idOf(a), idOf(b)) })
	return nil
}

func (s *Store) toolTypes(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []catalog.ToolType, err error) {
	quotas, err := s.queries.ListToolTypeQuotas(ctx, tx, db.ListToolTypeQuotasParams{Every: every, Ids: ids})
	if err != nil {
		return nil, err
	}
	rules := quotasByOwner(quotas, func(q db.Quota) *string { return q.ToolTypeID })
	observed, err := s.queries.ListMcpObservations(ctx, tx, db.ListMcpObservationsParams{Every: every, Ids: ids})
	if err != nil {
		return nil, err
	}
	observations := make(map[string][]catalog.Observation)
	for _, o := range observed {
		observation := catalog.Observation{Name: o.Name, Since: o.ObserveTime}
		if o.Function != nil {
			observation.Function = &catalog.Function{}
			if err := json.Unmarshal(o.Function, observation.Function); err != nil {
				return nil, fmt.Errorf("tool type %q: observation of %q: %w", o.ToolTypeID, o.Name, err)
			}
		}
		observations[o.ToolTypeID] = append(observations[o.ToolTypeID], observation)
	}
	rows, err := s.queries.ListToolTypes(ctx, tx, db.ListToolTypesParams{Every: every, Ids: ids})
	for _, t := range rows {
		var functions []catalog.Function
		if err := json.Unmarshal(t.Functions, &functions); err != nil {
			return nil, fmt.Errorf("tool type %q: functions: %w", t.ToolTypeID, err)
		}
		list = append(list, catalog.ToolType{ID: id.ToolType(t.ToolTypeID), Title: t.Title,
			Source: catalog.Source(t.Source), ToolClass: t.ToolClass, MCPServer: id.MCPServer(orEmpty(t.McpServerID)),
			ConfigSchema: t.ConfigSchema, InputSchema: t.InputSchema, Disabled: t.Disabled, Functions: functions,
			Quotas: rules[t.ToolTypeID], Observations: observations[t.ToolTypeID]})
	}
	return list, err
}

func (s *Store) tools(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []catalog.Tool, err error) {
	quotas, err := s.queries.ListToolQuotas(ctx, tx, db.ListToolQuotasParams{Every: every, Ids: ids})
	if err != nil {
		return nil, err
	}
	rules := quotasByOwner(quotas, func(q db.Quota) *string { return q.ToolID })
	fallbacks := make(map[string][]id.Tool)
	chains, err := s.queries.ListToolFallbacks(ctx, tx, db.ListToolFallbacksParams{Every: every, Ids: ids})
	if err != nil {
		return nil, err
	}
	for _, f := range chains {
		fallbacks[f.ToolID] = append(fallbacks[f.ToolID], id.Tool(f.FallbackToolID))
	}
	rows, err := s.queries.ListTools(ctx, tx, db.ListToolsParams{Every: every, Ids: ids})
	for _, t := range rows {
		tool := catalog.Tool{ID: id.Tool(t.ToolID), Type: id.ToolType(t.ToolTypeID), Name: t.Name, Title: t.Title,
			Description: t.Description, Prompt: t.Prompt, Category: t.Category, Config: t.Config,
			Status: catalog.Status(t.Status), Core: t.Core, Precedence: t.Precedence, Risk: catalog.Risk(t.Risk),
			RequiredCapabilities: t.RequiredCapabilities, Owner: id.User(orEmpty(t.OwnerUserID)), Keywords: t.Keywords,
			Aliases: t.Aliases, Examples: t.Examples, Related: as[id.Tool](t.RelatedToolIds),
			Health: catalog.HealthPolicy{FailThreshold: orEmpty(t.FailThreshold), CooldownMs: orEmpty(t.CooldownMs)},
			Quotas: rules[t.ToolID], Created: orEmpty(t.CreateTime)}
		if err := json.Unmarshal(t.Localized, &tool.Localized); err != nil {
			return nil, fmt.Errorf("tool %q: localized: %w", t.ToolID, err)
		}
		if err := json.Unmarshal(t.Capability, &tool.Capability); err != nil {
			return nil, fmt.Errorf("tool %q: capability: %w", t.ToolID, err)
		}
		if err := json.Unmarshal(t.Mcp, &tool.MCP); err != nil {
			return nil, fmt.Errorf("tool %q: mcp: %w", t.ToolID, err)
		}
		tool.Capability.Fallback = fallbacks[t.ToolID]
		list = append(list, tool)
	}
	return list, err
}

func (s *Store) mcpServers(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []catalog.MCPServer, err error) {
	rows, err := s.queries.ListMcpServers(ctx, tx, db.ListMcpServersParams{Every: every, Ids: ids})
	for _, m := range rows {
		server := catalog.MCPServer{ID: id.MCPServer(m.McpServerID), Title: m.Title,
			Transport: catalog.Transport(m.Transport), Endpoint: m.Endpoint, Priority: m.Priority}
		if err := json.Unmarshal(m.HeadersFromEnv, &server.HeadersFromEnv); err != nil {
			return nil, fmt.Errorf("mcp server %q: headers_from_env: %w", m.McpServerID, err)
		}
		list = append(list, server)
	}
	return list, err
}

func (s *Store) deviceTypes(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []availability.DeviceType, err error) {
	rows, err := s.queries.ListDeviceTypes(ctx, tx, db.ListDeviceTypesParams{Every: every, Ids: ids})
	for _, t := range rows {
		list = append(list, availability.DeviceType{ID: id.DeviceType(t.DeviceTypeID), Title: t.Title,
			Capabilities: t.Capabilities, Tools: as[id.Tool](t.ToolIds)})
	}
	return list, err
}

func (s *Store) groups(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []availability.Group, err error) {
	rows, err := s.queries.ListGroups(ctx, tx, db.ListGroupsParams{Every: every, Ids: ids})
	for _, g := range rows {
		list = append(list, availability.Group{ID: id.Group(g.GroupID), Title: g.Title, Priority: g.Priority,
			Grants: as[id.Tool](g.GrantToolIds), Revokes: as[id.Tool](g.RevokeToolIds), Permissions: g.Permissions})
	}
	return list, err
}

func (s *Store) avatars(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []enable.Avatar, err error) {
	rows, err := s.queries.ListAvatars(ctx, tx, db.ListAvatarsParams{Every: every, Ids: ids})
	for _, a := range rows {
		list = append(list, enable.Avatar{ID: id.Avatar(a.AvatarID), Title: a.Title, Tools: as[id.Tool](a.ToolIds)})
	}
	return list, err
}

func (s *Store) defaultAvatars(ctx context.Context, tx db.DBTX, every bool, ids []string) (list []enable.DefaultAvatar, err error) {
	rows, err := s.queries.ListDefaultAvatars(ctx, tx, db.ListDefaultAvatarsParams{Every: every, Ids: ids})
	for _, a := range rows {
		list = append(list, enable.DefaultAvatar{Avatar: id.Avatar(a.AvatarID),
			User: id.User(orEmpty(a.UserID)), DeviceType: id.DeviceType(orEmpty(a.DeviceTypeID))})
	}
	return list, err
}

func orEmpty[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

func orNull[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	text := string(s)
	return &text
}

// as converts a list of strings into another kind of string.
func as[To, From ~string](list []From) []To {
	converted := make([]To, len(list))
	for i, s := range list {
		converted[i] = To(s)
	}
	return converted
}
