package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// compiledCatalog is the catalogue at one version. The version decides the content, so a reader whose
// snapshot shows the version may use it as if it had read the tables.
type compiledCatalog struct {
	version     int64
	definitions effective.Definitions
	servers     []catalog.MCPServer
	world       *effective.World
}

// catalogAt returns the catalogue as tx sees it. tx must see one snapshot, or hold the catalogue's lock.
func (s *Store) catalogAt(ctx context.Context, tx db.DBTX) (*compiledCatalog, error) {
	version, err := s.queries.CatalogVersion(ctx, tx)
	if err != nil {
		return nil, err
	}
	if c := s.compiled.Load(); c != nil && c.version == version {
		return c, nil
	}
	c := &compiledCatalog{version: version}
	if err := s.loadDefinitions(ctx, tx, c); err != nil {
		return nil, err
	}
	if c.world, err = effective.Compile(c.definitions); err != nil {
		return nil, err
	}
	// A reader with an older snapshot must not put its catalogue in the place of a newer one.
	for held := s.compiled.Load(); held == nil || held.version < version; held = s.compiled.Load() {
		if s.compiled.CompareAndSwap(held, c) {
			break
		}
	}
	return c, nil
}

func (s *Store) loadDefinitions(ctx context.Context, tx db.DBTX, c *compiledCatalog) error {
	d := &c.definitions
	types, err := s.queries.ListToolTypes(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range types {
		d.ToolTypes = append(d.ToolTypes, catalog.ToolType{ID: id.ToolType(t.ToolTypeID), Title: t.Title,
			Source: catalog.Source(t.Source), ToolClass: t.ToolClass, MCPServer: id.MCPServer(orEmpty(t.McpServerID)),
			ConfigSchema: t.ConfigSchema, InputSchema: t.InputSchema, Disabled: t.Disabled})
	}
	tools, err := s.queries.ListTools(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range tools {
		tool := catalog.Tool{ID: id.Tool(t.ToolID), Type: id.ToolType(t.ToolTypeID), Name: t.Name, Title: t.Title,
			Description: t.Description, Prompt: t.Prompt, Category: t.Category, Config: t.Config,
			Status: catalog.Status(t.Status), Core: t.Core, Precedence: t.Precedence, Risk: catalog.Risk(t.Risk),
			RequiredCapabilities: t.RequiredCapabilities, Owner: id.User(orEmpty(t.OwnerUserID)), Keywords: t.Keywords,
			Aliases: t.Aliases, Examples: t.Examples, Related: as[id.Tool](t.RelatedToolIds)}
		if err := json.Unmarshal(t.Localized, &tool.Localized); err != nil {
			return fmt.Errorf("tool %q: localized: %w", t.ToolID, err)
		}
		d.Tools = append(d.Tools, tool)
	}
	servers, err := s.queries.ListMcpServers(ctx, tx)
	if err != nil {
		return err
	}
	for _, m := range servers {
		server := catalog.MCPServer{ID: id.MCPServer(m.McpServerID), Title: m.Title,
			Transport: catalog.Transport(m.Transport), Endpoint: m.Endpoint, Priority: m.Priority}
		if err := json.Unmarshal(m.HeadersFromEnv, &server.HeadersFromEnv); err != nil {
			return fmt.Errorf("mcp server %q: headers_from_env: %w", m.McpServerID, err)
		}
		c.servers = append(c.servers, server)
	}
	deviceTypes, err := s.queries.ListDeviceTypes(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range deviceTypes {
		d.DeviceTypes = append(d.DeviceTypes, availability.DeviceType{ID: id.DeviceType(t.DeviceTypeID), Title: t.Title,
			Capabilities: t.Capabilities, Tools: as[id.Tool](t.ToolIds)})
	}
	groups, err := s.queries.ListGroups(ctx, tx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, availability.Group{ID: id.Group(g.GroupID), Title: g.Title, Priority: g.Priority,
			Grants: as[id.Tool](g.GrantToolIds), Revokes: as[id.Tool](g.RevokeToolIds)})
	}
	avatars, err := s.queries.ListAvatars(ctx, tx)
	if err != nil {
		return err
	}
	for _, a := range avatars {
		d.Avatars = append(d.Avatars, enable.Avatar{ID: id.Avatar(a.AvatarID), Title: a.Title, Tools: as[id.Tool](a.ToolIds)})
	}
	defaults, err := s.queries.ListDefaultAvatars(ctx, tx)
	if err != nil {
		return err
	}
	for _, a := range defaults {
		d.DefaultAvatars = append(d.DefaultAvatars, enable.DefaultAvatar{Avatar: id.Avatar(a.AvatarID),
			User: id.User(orEmpty(a.UserID)), DeviceType: id.DeviceType(orEmpty(a.DeviceTypeID))})
	}
	return nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
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
