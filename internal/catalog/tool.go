package catalog

import (
	"encoding/json"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// Source is where the code of a tool type runs.
type Source string

// The sources.
const (
	SourceNative      Source = "NATIVE"
	SourceInternalMCP Source = "INTERNAL_MCP"
	SourceExternalMCP Source = "EXTERNAL_MCP"
)

// MCP tells whether the code is reached through an MCP server.
func (s Source) MCP() bool { return s == SourceInternalMCP || s == SourceExternalMCP }

// Status is whether a tool is still in service.
type Status string

// The statuses.
const (
	StatusActive  Status = "ACTIVE"
	StatusRetired Status = "RETIRED"
)

// Risk is how much harm a call can do.
type Risk string

// The risks.
const (
	RiskLow    Risk = "LOW"
	RiskMedium Risk = "MEDIUM"
	RiskHigh   Risk = "HIGH"
)

// ToolType is one tool class in code, one tool of the built-in MCP server, or one whole external MCP server.
type ToolType struct {
	ID        id.ToolType  `json:"tool_type_id"`
	Title     string       `json:"title"`
	Source    Source       `json:"source"`
	ToolClass string       `json:"tool_class"`    // empty: the same as ID
	MCPServer id.MCPServer `json:"mcp_server_id"` // empty: none
	// ConfigSchema and InputSchema are JSON Schemas of a tool's config and of its function's arguments; nil:
	// none.
	ConfigSchema json.RawMessage `json:"config_schema"`
	InputSchema  json.RawMessage `json:"input_schema"`
	Disabled     bool            `json:"disabled"`  // the kill switch
	Functions    []Function      `json:"functions"` // of an external MCP server, as they are pinned
	// Observations are where the server differs from that. They are not the operator's: no edit touches them.
	Observations []Observation `json:"-"`
	// Quotas count the calls of all tools of the type together.
	Quotas []quota.Rule `json:"quotas"`
}

// LocalizedText is a title and a description in one language.
type LocalizedText struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// Tool is a tool type with a configuration and a prompt: the unit of control.
type Tool struct {
	ID                   id.Tool                  `json:"tool_id"`
	Type                 id.ToolType              `json:"tool_type_id"`
	Name                 string                   `json:"name"` // what a model sees; tools of one name are alternatives
	Title                string                   `json:"title"`
	Description          string                   `json:"description"`
	Prompt               string                   `json:"prompt"`
	Category             string                   `json:"category"`
	Config               json.RawMessage          `json:"config"` // an object; nil: {}
	Status               Status                   `json:"status"`
	Core                 bool                     `json:"core"`
	Precedence           int32                    `json:"precedence"`
	Risk                 Risk                     `json:"risk"`
	RequiredCapabilities []string                 `json:"required_capabilities"`
	Owner                id.User                  `json:"owner_user_id"` // empty: shared
	Keywords             []string                 `json:"keywords"`
	Aliases              []string                 `json:"aliases"`
	Examples             []string                 `json:"examples"`
	Localized            map[string]LocalizedText `json:"localized"` // by BCP 47 tag
	Related              []id.Tool                `json:"related_tool_ids"`
	Capability           Capability               `json:"capability"`
	Health               HealthPolicy             `json:"health"`
	MCP                  ToolMCP                  `json:"mcp"`
	Quotas               []quota.Rule             `json:"quotas"` // besides the type's
	// Created is since when the tool is there; the zero time: since before that was noted. It is not the operator's: no edit
	// touches it.
	Created time.Time `json:"-"`
}

// TitleIn returns what people call the tool in a language: the localized title, else the title, else the
// name.
func (t *Tool) TitleIn(language string) string {
	if text, ok := t.Localized[language]; ok && text.Title != "" {
		return text.Title
	}
	if t.Title != "" {
		return t.Title
	}
	return t.Name
}
