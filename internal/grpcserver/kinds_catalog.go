package grpcserver

import (
	"encoding/json"
	gostrings "strings"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

var toolTypes = kind[*toolgrantv1.ToolType, catalog.ToolType]{
	noun: "tool_type", section: admin.SectionToolTypes,
	objects: func(m *admin.Manifest) *[]catalog.ToolType { return &m.ToolTypes },
	name:    func(t catalog.ToolType) string { return string(t.ID) },
	etag:    func(t *toolgrantv1.ToolType) *string { return &t.Etag },
	fromProto: func(t *toolgrantv1.ToolType) catalog.ToolType {
		return catalog.ToolType{ID: id.ToolType(t.GetToolTypeId()), Title: t.GetTitle(),
			Source: catalog.Source(gostrings.TrimPrefix(t.GetSource().String(), "TOOL_SOURCE_")), ToolClass: t.GetToolClass(),
			MCPServer: id.MCPServer(t.GetMcpServerId()), ConfigSchema: jsonFromStruct(t.GetConfigSchema()),
			InputSchema: jsonFromStruct(t.GetInputSchema()), Disabled: t.GetDisabled(),
			Functions: functionsFromProto(t.GetFunctions()), Quotas: quotasFromProto(t.GetQuotas())}
	},
	toProto: func(t catalog.ToolType) (*toolgrantv1.ToolType, error) {
		configSchema, err := structFromJSON(t.ConfigSchema)
		if err != nil {
			return nil, err
		}
		inputSchema, err := structFromJSON(t.InputSchema)
		if err != nil {
			return nil, err
		}
		functions, err := functionsToProto(t.Functions)
		if err != nil {
			return nil, err
		}
		return &toolgrantv1.ToolType{ToolTypeId: string(t.ID), Title: t.Title, Source: sourceToProto(t.Source),
			ToolClass: t.ToolClass, McpServerId: string(t.MCPServer), ConfigSchema: configSchema, InputSchema: inputSchema,
			Disabled: t.Disabled, Functions: functions, Quotas: quotasToProto(t.Quotas)}, nil
	},
}

var tools = kind[*toolgrantv1.Tool, catalog.Tool]{
	noun: "tool", section: admin.SectionTools,
	objects:   func(m *admin.Manifest) *[]catalog.Tool { return &m.Tools },
	name:      func(t catalog.Tool) string { return string(t.ID) },
	etag:      func(t *toolgrantv1.Tool) *string { return &t.Etag },
	fromProto: toolFromProto,
	toProto:   toolToProto,
	warnings: func(t *toolgrantv1.Tool) []fault.Violation {
		if len(t.GetName()) > 64 || gostrings.Contains(t.GetName(), ".") {
			return []fault.Violation{{Field: "name", Description: "some model providers accept at most 64 characters, and no dot"}}
		}
		return nil
	},
}

func toolFromProto(t *toolgrantv1.Tool) catalog.Tool {
	tool := catalog.Tool{ID: id.Tool(t.GetToolId()), Type: id.ToolType(t.GetToolTypeId()), Name: t.GetName(), Title: t.GetTitle(),
		Description: t.GetDescription(), Prompt: t.GetPrompt(), Category: t.GetCategory(), Config: jsonFromStruct(t.GetConfig()),
		Status: catalog.StatusActive, Core: t.GetCore(), Precedence: t.GetPrecedence(), Risk: catalog.RiskLow,
		RequiredCapabilities: t.GetRequiredCapabilities(), Owner: id.User(t.GetOwnerUserId()), Keywords: t.GetKeywords(),
		Aliases: t.GetAliases(), Examples: t.GetExamples(), Related: ids[id.Tool](t.GetRelatedToolIds()),
		Capability: capabilityFromProto(t.GetCapability()), Health: healthPolicyFromProto(t.GetHealth()),
		MCP:    catalog.ToolMCP{Functions: t.GetMcp().GetFunctions(), HeadersFromEnv: t.GetMcp().GetHeadersFromEnv()},
		Quotas: quotasFromProto(t.GetQuotas())}
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

func toolToProto(t catalog.Tool) (*toolgrantv1.Tool, error) {
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
		Precedence: t.Precedence, Risk: riskToProto(t.Risk), RequiredCapabilities: t.RequiredCapabilities,
		OwnerUserId: string(t.Owner), Keywords: t.Keywords, Aliases: t.Aliases, Examples: t.Examples,
		RelatedToolIds: strings(t.Related), Capability: capabilityToProto(&t.Capability), Health: healthPolicyToProto(t.Health),
		Quotas: quotasToProto(t.Quotas)}
	if len(t.MCP.Functions)+len(t.MCP.HeadersFromEnv) > 0 {
		tool.Mcp = &toolgrantv1.ToolMcp{Functions: t.MCP.Functions, HeadersFromEnv: t.MCP.HeadersFromEnv}
	}
	for tag, text := range t.Localized {
		if tool.Localized == nil {
			tool.Localized = map[string]*toolgrantv1.LocalizedText{}
		}
		tool.Localized[tag] = &toolgrantv1.LocalizedText{Title: text.Title, Description: text.Description}
	}
	return tool, nil
}

var mcpServers = kind[*toolgrantv1.McpServer, catalog.MCPServer]{
	noun: "mcp_server", section: admin.SectionMCPServers,
	objects: func(m *admin.Manifest) *[]catalog.MCPServer { return &m.MCPServers },
	name:    func(s catalog.MCPServer) string { return string(s.ID) },
	etag:    func(s *toolgrantv1.McpServer) *string { return &s.Etag },
	fromProto: func(s *toolgrantv1.McpServer) catalog.MCPServer {
		server := catalog.MCPServer{ID: id.MCPServer(s.GetMcpServerId()), Title: s.GetTitle(), Endpoint: s.GetEndpoint(),
			Transport: catalog.TransportStreamableHTTP, Priority: s.GetPriority(), HeadersFromEnv: s.GetHeadersFromEnv()}
		if s.GetTransport() == toolgrantv1.McpTransport_MCP_TRANSPORT_STDIO {
			server.Transport = catalog.TransportStdio
		}
		return server
	},
	toProto: func(s catalog.MCPServer) (*toolgrantv1.McpServer, error) {
		return &toolgrantv1.McpServer{McpServerId: string(s.ID), Title: s.Title, Endpoint: s.Endpoint,
			Transport: toolgrantv1.McpTransport(toolgrantv1.McpTransport_value["MCP_TRANSPORT_"+string(s.Transport)]),
			Priority:  s.Priority, HeadersFromEnv: s.HeadersFromEnv}, nil
	},
}

func sourceToProto(s catalog.Source) toolgrantv1.ToolSource {
	return toolgrantv1.ToolSource(toolgrantv1.ToolSource_value["TOOL_SOURCE_"+string(s)])
}

func riskToProto(r catalog.Risk) toolgrantv1.ToolRisk {
	return toolgrantv1.ToolRisk(toolgrantv1.ToolRisk_value["TOOL_RISK_"+string(r)])
}
