package catalog

import (
	"encoding/json"

	"github.com/toolgrant/toolgrant/internal/id"
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
	ID        id.ToolType
	Title     string
	Source    Source
	ToolClass string       // empty: the same as ID
	MCPServer id.MCPServer // empty: none
	// ConfigSchema and InputSchema are JSON Schemas of a tool's config and of its function's arguments; nil:
	// none.
	ConfigSchema json.RawMessage
	InputSchema  json.RawMessage
	Disabled     bool // the kill switch
}

// LocalizedText is a title and a description in one language.
type LocalizedText struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

// Tool is a tool type with a configuration and a prompt: the unit of control.
type Tool struct {
	ID                   id.Tool
	Type                 id.ToolType
	Name                 string // what a model sees; tools of one name are alternatives
	Title                string
	Description          string
	Prompt               string
	Category             string
	Config               json.RawMessage // an object; nil: {}
	Status               Status
	Core                 bool
	Precedence           int32
	Risk                 Risk
	RequiredCapabilities []string
	Owner                id.User // empty: shared
	Keywords             []string
	Aliases              []string
	Examples             []string
	Localized            map[string]LocalizedText // by BCP 47 tag
	Related              []id.Tool
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
