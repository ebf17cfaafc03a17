package effectivetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Manifest is the part of a manifest that the rules rest on, read without knowing any protos.
type Manifest struct {
	MCPServers []struct {
		ID       id.MCPServer `yaml:"mcp_server_id"`
		Endpoint string       `yaml:"endpoint"`
		Priority int32        `yaml:"priority"`
	} `yaml:"mcp_servers"`
	ToolTypes []struct {
		ID          id.ToolType  `yaml:"tool_type_id"`
		Source      string       `yaml:"source"`
		ToolClass   string       `yaml:"tool_class"`
		MCPServer   id.MCPServer `yaml:"mcp_server_id"`
		Disabled    bool         `yaml:"disabled"`
		InputSchema document     `yaml:"input_schema"`
		Functions   []function   `yaml:"functions"`
	} `yaml:"tool_types"`
	Tools []struct {
		ID         id.Tool                          `yaml:"tool_id"`
		Type       id.ToolType                      `yaml:"tool_type_id"`
		Name       string                           `yaml:"name"`
		Title      string                           `yaml:"title"`
		Status     string                           `yaml:"status"`
		Core       bool                             `yaml:"core"`
		Precedence int32                            `yaml:"precedence"`
		Risk       string                           `yaml:"risk"`
		Config     document                         `yaml:"config"`
		Required   []string                         `yaml:"required_capabilities"`
		Owner      id.User                          `yaml:"owner_user_id"`
		Localized  map[string]catalog.LocalizedText `yaml:"localized"`
		Capability struct {
			Requires            []string `yaml:"requires"`
			ProviderConstraints []string `yaml:"provider_constraints"`
			DegradePolicy       struct {
				Fallback []id.Tool `yaml:"fallback_tool_ids"`
			} `yaml:"degrade_policy"`
		} `yaml:"capability"`
	} `yaml:"tools"`
	DeviceTypes []struct {
		ID           id.DeviceType `yaml:"device_type_id"`
		Capabilities []string      `yaml:"capabilities"`
		Tools        []id.Tool     `yaml:"tool_ids"`
	} `yaml:"device_types"`
	Groups []struct {
		ID          id.Group  `yaml:"group_id"`
		Title       string    `yaml:"title"`
		Priority    int32     `yaml:"priority"`
		Grants      []id.Tool `yaml:"grant_tool_ids"`
		Revokes     []id.Tool `yaml:"revoke_tool_ids"`
		Permissions []string  `yaml:"permissions"`
	} `yaml:"groups"`
	Avatars []struct {
		ID    id.Avatar `yaml:"avatar_id"`
		Tools []id.Tool `yaml:"tool_ids"`
	} `yaml:"avatars"`
	Defaults []struct {
		Avatar     id.Avatar     `yaml:"avatar_id"`
		User       id.User       `yaml:"user_id"`
		DeviceType id.DeviceType `yaml:"device_type_id"`
	} `yaml:"default_avatars"`
	Users []struct {
		ID      id.User `yaml:"user_id"`
		Devices []struct {
			ID   id.Device     `yaml:"device_id"`
			Type id.DeviceType `yaml:"device_type_id"`
		} `yaml:"devices"`
		Memberships []struct {
			Group  id.Group  `yaml:"group_id"`
			Start  time.Time `yaml:"start_time"`
			Expire time.Time `yaml:"expire_time"`
		} `yaml:"memberships"`
	} `yaml:"users"`
}

type function struct {
	Name        string   `yaml:"name"`
	InputSchema document `yaml:"input_schema"`
	Risk        string   `yaml:"risk"`
	Annotations *struct {
		ReadOnly    *bool `yaml:"read_only_hint"`
		Destructive *bool `yaml:"destructive_hint"`
	} `yaml:"annotations"`
}

// document is a JSON document, written as YAML.
type document json.RawMessage

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *document) UnmarshalYAML(node *yaml.Node) error {
	var value any
	if err := node.Decode(&value); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*d = data
	return nil
}

// Definitions are what a World is compiled from.
func (m *Manifest) Definitions() effective.Definitions {
	d := effective.Definitions{ToolTypes: m.toolTypes(), Tools: m.tools()}
	for _, t := range m.DeviceTypes {
		d.DeviceTypes = append(d.DeviceTypes, availability.DeviceType{ID: t.ID, Capabilities: t.Capabilities, Tools: t.Tools})
	}
	for _, g := range m.Groups {
		d.Groups = append(d.Groups, availability.Group{ID: g.ID, Title: g.Title, Priority: g.Priority, Grants: g.Grants,
			Revokes: g.Revokes, Permissions: g.Permissions})
	}
	for _, a := range m.Avatars {
		d.Avatars = append(d.Avatars, enable.Avatar{ID: a.ID, Tools: a.Tools})
	}
	for _, a := range m.Defaults {
		d.DefaultAvatars = append(d.DefaultAvatars, enable.DefaultAvatar{Avatar: a.Avatar, User: a.User, DeviceType: a.DeviceType})
	}
	return d
}

// Servers are the MCP servers, which a World does not need, but calls do.
func (m *Manifest) Servers() []catalog.MCPServer {
	var servers []catalog.MCPServer
	for _, s := range m.MCPServers {
		servers = append(servers, catalog.MCPServer{ID: s.ID, Endpoint: s.Endpoint, Priority: s.Priority})
	}
	return servers
}

func (m *Manifest) toolTypes() []catalog.ToolType {
	var types []catalog.ToolType
	for _, t := range m.ToolTypes {
		compiled := catalog.ToolType{ID: t.ID, Source: catalog.Source(strings.TrimPrefix(t.Source, "TOOL_SOURCE_")),
			ToolClass: t.ToolClass, MCPServer: t.MCPServer, Disabled: t.Disabled, InputSchema: json.RawMessage(t.InputSchema)}
		for _, f := range t.Functions {
			one := catalog.Function{Name: f.Name, InputSchema: json.RawMessage(f.InputSchema), Declared: risk(f.Risk)}
			if f.Annotations != nil {
				one.Annotations = &catalog.Annotations{ReadOnly: f.Annotations.ReadOnly, Destructive: f.Annotations.Destructive}
			}
			compiled.Functions = append(compiled.Functions, one)
		}
		types = append(types, compiled)
	}
	return types
}

func (m *Manifest) tools() []catalog.Tool {
	var tools []catalog.Tool
	for _, t := range m.Tools {
		tool := catalog.Tool{ID: t.ID, Type: t.Type, Name: t.Name, Title: t.Title, Status: catalog.StatusActive, Core: t.Core,
			Precedence: t.Precedence, Risk: catalog.RiskLow, Config: json.RawMessage(t.Config), RequiredCapabilities: t.Required,
			Owner: t.Owner, Localized: t.Localized,
			Capability: catalog.Capability{Requires: t.Capability.Requires, ProviderConstraints: t.Capability.ProviderConstraints,
				Fallback: t.Capability.DegradePolicy.Fallback}}
		if t.Status == "TOOL_STATUS_RETIRED" {
			tool.Status = catalog.StatusRetired
		}
		if t.Risk != "" {
			tool.Risk = risk(t.Risk)
		}
		tools = append(tools, tool)
	}
	return tools
}

func risk(name string) catalog.Risk { return catalog.Risk(strings.TrimPrefix(name, "TOOL_RISK_")) }
