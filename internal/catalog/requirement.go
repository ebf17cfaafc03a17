package catalog

import (
	"fmt"
	"strings"

	"github.com/toolgrant/toolgrant/internal/id"
)

// RequirementKind is what a requirement is about.
type RequirementKind string

// The kinds, as they are spelled. Those that end in a separator are followed by a name.
const (
	RequireModel           RequirementKind = "model."      // what the model can do
	RequireProvider        RequirementKind = "provider."   // what the model's provider supports
	RequireServer          RequirementKind = "mcp.server=" // an MCP server that is reachable
	RequirePermission      RequirementKind = "permission=" // what the user's groups give
	RequireNetwork         RequirementKind = "network"     // these three the deployment allows
	RequireFilesystemRead  RequirementKind = "filesystem.read"
	RequireFilesystemWrite RequirementKind = "filesystem.write"
)

// Requirement is one precondition of a call.
type Requirement struct {
	Kind RequirementKind
	Name string // empty for kinds that take none
}

// ParseRequirement reads an entry of Capability.Requires. What it does not know is refused: a requirement that
// nobody checks would be a promise that nobody keeps.
func ParseRequirement(text string) (Requirement, error) {
	for _, kind := range [...]RequirementKind{RequireNetwork, RequireFilesystemRead, RequireFilesystemWrite} {
		if text == string(kind) {
			return Requirement{Kind: kind}, nil
		}
	}
	for _, kind := range [...]RequirementKind{RequireModel, RequireProvider, RequireServer, RequirePermission} {
		name, found := strings.CutPrefix(text, string(kind))
		switch {
		case !found:
		case !id.Valid(name):
			return Requirement{}, fmt.Errorf("%q needs a name after %q: 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -", text, kind)
		default:
			return Requirement{Kind: kind, Name: name}, nil
		}
	}
	return Requirement{}, fmt.Errorf("no such requirement %q: it is one of model.NAME, provider.NAME, mcp.server=ID, "+
		"permission=NAME, network, filesystem.read, filesystem.write", text)
}
