package grpcserver

import (
	"encoding/json"
	"fmt"
	gostrings "strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

func manifestFromProto(p *toolgrantv1.Manifest) admin.Manifest {
	var m admin.Manifest
	for _, t := range p.GetToolTypes() {
		m.ToolTypes = append(m.ToolTypes, catalog.ToolType{ID: id.ToolType(t.GetToolTypeId()), Title: t.GetTitle(),
			Source: catalog.Source(gostrings.TrimPrefix(t.GetSource().String(), "TOOL_SOURCE_")), ToolClass: t.GetToolClass(),
			MCPServer: id.MCPServer(t.GetMcpServerId()), ConfigSchema: jsonFromStruct(t.GetConfigSchema()),
			InputSchema: jsonFromStruct(t.GetInputSchema()), Disabled: t.GetDisabled()})
	}
	for _, t := range p.GetTools() {
		m.Tools = append(m.Tools, toolFromProto(t))
	}
	for _, s := range p.GetMcpServers() {
		server := catalog.MCPServer{ID: id.MCPServer(s.GetMcpServerId()), Title: s.GetTitle(), Endpoint: s.GetEndpoint(),
			Transport: catalog.TransportStreamableHTTP, Priority: s.GetPriority(), HeadersFromEnv: s.GetHeadersFromEnv()}
		if s.GetTransport() == toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO {
			server.Transport = catalog.TransportStdio
		}
		m.MCPServers = append(m.MCPServers, server)
	}
	for _, d := range p.GetDeviceTypes() {
		m.DeviceTypes = append(m.DeviceTypes, availability.DeviceType{ID: id.DeviceType(d.GetDeviceTypeId()), Title: d.GetTitle(),
			Capabilities: d.GetCapabilities(), Tools: ids[id.Tool](d.GetToolIds())})
	}
	for _, g := range p.GetGroups() {
		m.Groups = append(m.Groups, availability.Group{ID: id.Group(g.GetGroupId()), Title: g.GetTitle(), Priority: g.GetPriority(),
			Grants: ids[id.Tool](g.GetGrantToolIds()), Revokes: ids[id.Tool](g.GetRevokeToolIds())})
	}
	for _, a := range p.GetAvatars() {
		m.Avatars = append(m.Avatars, enable.Avatar{ID: id.Avatar(a.GetAvatarId()), Title: a.GetTitle(), Tools: ids[id.Tool](a.GetToolIds())})
	}
	for _, d := range p.GetDefaultAvatars() {
		m.DefaultAvatars = append(m.DefaultAvatars, enable.DefaultAvatar{Avatar: id.Avatar(d.GetAvatarId()),
			User: id.User(d.GetUserId()), DeviceType: id.DeviceType(d.GetDeviceTypeId())})
	}
	for _, u := range p.GetUsers() {
		user := availability.User{ID: id.User(u.GetUserId())}
		for _, d := range u.GetDevices() {
			user.Devices = append(user.Devices, availability.Device{ID: id.Device(d.GetDeviceId()), Type: id.DeviceType(d.GetDeviceTypeId())})
		}
		for _, g := range u.GetMemberships() {
			user.Memberships = append(user.Memberships, availability.Membership{Group: id.Group(g.GetGroupId()),
				Start: timeFromProto(g.GetStartTime()), Expire: timeFromProto(g.GetExpireTime())})
		}
		m.Users = append(m.Users, user)
	}
	m.Canonicalize()
	return m
}

func toolFromProto(t *toolgrantv1.Tool) catalog.Tool {
	tool := catalog.Tool{ID: id.Tool(t.GetToolId()), Type: id.ToolType(t.GetToolTypeId()), Name: t.GetName(), Title: t.GetTitle(),
		Description: t.GetDescription(), Prompt: t.GetPrompt(), Category: t.GetCategory(), Config: jsonFromStruct(t.GetConfig()),
		Status: catalog.StatusActive, Core: t.GetCore(), Precedence: t.GetPrecedence(), Risk: catalog.RiskLow,
		RequiredCapabilities: t.GetRequiredCapabilities(), Owner: id.User(t.GetOwnerUserId()), Keywords: t.GetKeywords(),
		Aliases: t.GetAliases(), Examples: t.GetExamples(), Related: ids[id.Tool](t.GetRelatedToolIds())}
	if tool.Config == nil {
		tool.Config = json.RawMessage("{}")
	}
	if t.GetStatus() == toolgrantv1.ToolStatus_TOOL_STATUS_RETIRED {
		tool.Status = catalog.StatusRetired
	}
	if t.GetRisk() != toolgrantv1.ToolRisk_TOOL_RISK_UNSPECIFIED {
		tool.Risk = catalog.Risk(gostrings.TrimPrefix(t.GetRisk().String(), "TOOL_RISK_"))
	}
	for tag, text := range t.GetLocalized() {
		if tool.Localized == nil {
			tool.Localized = map[string]catalog.LocalizedText{}
		}
		tool.Localized[tag] = catalog.LocalizedText{Title: text.GetTitle(), Description: text.GetDescription()}
	}
	return tool
}

func manifestToProto(m *admin.Manifest) (*toolgrantv1.Manifest, error) {
	p := &toolgrantv1.Manifest{}
	for _, t := range m.ToolTypes {
		configSchema, err := structFromJSON(t.ConfigSchema)
		if err != nil {
			return nil, err
		}
		inputSchema, err := structFromJSON(t.InputSchema)
		if err != nil {
			return nil, err
		}
		p.ToolTypes = append(p.ToolTypes, &toolgrantv1.ToolType{ToolTypeId: string(t.ID), Title: t.Title,
			Source:    toolgrantv1.ToolSource(toolgrantv1.ToolSource_value["TOOL_SOURCE_"+string(t.Source)]),
			ToolClass: t.ToolClass, McpServerId: string(t.MCPServer), ConfigSchema: configSchema, InputSchema: inputSchema, Disabled: t.Disabled})
	}
	for _, t := range m.Tools {
		config, err := structFromJSON(t.Config)
		if err != nil {
			return nil, err
		}
		if len(config.GetFields()) == 0 {
			config = nil
		}
		tool := &toolgrantv1.Tool{ToolId: string(t.ID), ToolTypeId: string(t.Type), Name: t.Name, Title: t.Title,
			Description: t.Description, Prompt: t.Prompt, Category: t.Category, Config: config,
			Status: toolgrantv1.ToolStatus(toolgrantv1.ToolStatus_value["TOOL_STATUS_"+string(t.Status)]), Core: t.Core,
			Precedence: t.Precedence, Risk: toolgrantv1.ToolRisk(toolgrantv1.ToolRisk_value["TOOL_RISK_"+string(t.Risk)]),
			RequiredCapabilities: t.RequiredCapabilities, OwnerUserId: string(t.Owner), Keywords: t.Keywords,
			Aliases: t.Aliases, Examples: t.Examples, RelatedToolIds: strings(t.Related)}
		for tag, text := range t.Localized {
			if tool.Localized == nil {
				tool.Localized = map[string]*toolgrantv1.LocalizedText{}
			}
			tool.Localized[tag] = &toolgrantv1.LocalizedText{Title: text.Title, Description: text.Description}
		}
		p.Tools = append(p.Tools, tool)
	}
	for _, s := range m.MCPServers {
		p.McpServers = append(p.McpServers, &toolgrantv1.McpServer{McpServerId: string(s.ID), Title: s.Title, Endpoint: s.Endpoint,
			Transport: toolgrantv1.McpTransport(toolgrantv1.McpTransport_value["MCP_TRANSPORT_"+string(s.Transport)]),
			Priority:  s.Priority, HeadersFromEnv: s.HeadersFromEnv})
	}
	for _, d := range m.DeviceTypes {
		p.DeviceTypes = append(p.DeviceTypes, &toolgrantv1.DeviceType{DeviceTypeId: string(d.ID), Title: d.Title,
			Capabilities: d.Capabilities, ToolIds: strings(d.Tools)})
	}
	for _, g := range m.Groups {
		p.Groups = append(p.Groups, &toolgrantv1.Group{GroupId: string(g.ID), Title: g.Title, Priority: g.Priority,
			GrantToolIds: strings(g.Grants), RevokeToolIds: strings(g.Revokes)})
	}
	for _, a := range m.Avatars {
		p.Avatars = append(p.Avatars, &toolgrantv1.Avatar{AvatarId: string(a.ID), Title: a.Title, ToolIds: strings(a.Tools)})
	}
	for _, d := range m.DefaultAvatars {
		p.DefaultAvatars = append(p.DefaultAvatars, &toolgrantv1.DefaultAvatar{AvatarId: string(d.Avatar),
			UserId: string(d.User), DeviceTypeId: string(d.DeviceType)})
	}
	for _, u := range m.Users {
		user := &toolgrantv1.User{UserId: string(u.ID)}
		for _, d := range u.Devices {
			user.Devices = append(user.Devices, &toolgrantv1.Device{DeviceId: string(d.ID), DeviceTypeId: string(d.Type)})
		}
		for _, g := range u.Memberships {
			user.Memberships = append(user.Memberships, &toolgrantv1.Membership{GroupId: string(g.Group),
				StartTime: timeToProto(g.Start), ExpireTime: timeToProto(g.Expire)})
		}
		p.Users = append(p.Users, user)
	}
	return p, nil
}

// warnings are what is accepted, but probably not meant.
func warnings(m *toolgrantv1.Manifest) []*toolgrantv1.Warning {
	var list []*toolgrantv1.Warning
	for i, t := range m.GetTools() {
		if len(t.GetName()) > 64 || gostrings.Contains(t.GetName(), ".") {
			list = append(list, &toolgrantv1.Warning{Field: fmt.Sprintf("tools[%d].name", i),
				Description: "some model providers accept at most 64 characters, and no dot"})
		}
	}
	return list
}

func jsonFromStruct(s *structpb.Struct) json.RawMessage {
	if s == nil {
		return nil
	}
	data, err := json.Marshal(s.AsMap()) // sorted keys; a Struct holds nothing that does not marshal but NaN
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

func timeFromProto(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime().Truncate(time.Microsecond)
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func ids[T ~string](list []string) []T {
	converted := make([]T, len(list))
	for i, s := range list {
		converted[i] = T(s)
	}
	return converted
}
