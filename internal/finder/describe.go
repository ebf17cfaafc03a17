package finder

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Bounds of what is read of a tool's schemas; the index has bounds of its own.
const (
	maxParameters     = 256
	maxParameterDepth = 4
)

// Shared describes the shared tools of a catalogue.
func Shared(world *effective.World) []discovery.Tool {
	c := newCommon(world, nil)
	tools := make([]discovery.Tool, 0, world.Catalog.Len())
	for n := range uint(world.Catalog.Len()) {
		if t := world.Catalog.Tool(n); t.Owner == "" {
			tools = append(tools, describe(t, world.Catalog.Type(n), c.servers))
		}
	}
	return tools
}

// Private describes a user's private tools.
func Private(world *effective.World, owner id.User) []discovery.Tool {
	c := newCommon(world, nil)
	var tools []discovery.Tool
	for n := range world.Catalog.OwnedBy(owner).EachSet() {
		tools = append(tools, describe(world.Catalog.Tool(n), world.Catalog.Type(n), c.servers))
	}
	return tools
}

// describe tells of a tool what a search needs to know.
func describe(t *catalog.Tool, toolType *catalog.ToolType, servers map[id.MCPServer]*catalog.MCPServer) discovery.Tool {
	d := discovery.Tool{ID: t.ID, Name: t.Name, Titles: []string{t.Title}, Descriptions: []string{t.Description}, Keywords: t.Keywords,
		Aliases: t.Aliases, Domains: t.Capability.Domains, Examples: slices.Concat(t.Examples, t.Capability.DeterministicFor), Category: t.Category,
		Created: t.Created}
	for _, language := range slices.Sorted(maps.Keys(t.Localized)) {
		d.Titles = append(d.Titles, t.Localized[language].Title)
		d.Descriptions = append(d.Descriptions, t.Localized[language].Description)
	}
	if server := servers[toolType.MCPServer]; server != nil {
		d.Server = string(server.ID)
		d.ServerDescription = server.Title
	}
	if toolType.Source != catalog.SourceExternalMCP {
		d.Parameters = parameters(nil, toolType.InputSchema)
		return d
	}
	for i := range toolType.Functions {
		f := &toolType.Functions[i]
		if !t.MCP.Has(f.Name) {
			continue
		}
		d.Parameters = append(d.Parameters, discovery.Parameter{Name: f.Name, Description: f.Title + "\n" + f.Description})
		d.Parameters = parameters(d.Parameters, f.InputSchema)
	}
	return d
}

// object is what is read of a JSON Schema.
type object struct {
	Description string                     `json:"description"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Items       json.RawMessage            `json:"items"`
}

// parameters adds the properties that a JSON Schema declares, in the order of their names. A schema that is not read
// as such has none.
func parameters(list []discovery.Parameter, schema json.RawMessage) []discovery.Parameter {
	return properties(list, schema, maxParameterDepth)
}

func properties(list []discovery.Parameter, schema json.RawMessage, depth int) []discovery.Parameter {
	var o object
	if len(schema) == 0 || depth == 0 || json.Unmarshal(schema, &o) != nil {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
		if len(list) >= maxParameters {
			return list
		}
		var property object
		_ = json.Unmarshal(o.Properties[name], &property) // true is a schema too
		list = append(list, discovery.Parameter{Name: name, Description: property.Description})
		list = properties(list, o.Properties[name], depth-1)
	}
	return properties(list, o.Items, depth-1)
}

// alike tells whether a search would know the same of two tools. It may be wrong only by telling alike ones apart.
func alike(a, b *catalog.Tool, aType, bType *catalog.ToolType) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.Category == b.Category && a.Owner == b.Owner && a.Created.Equal(b.Created) &&
		slices.Equal(a.Keywords, b.Keywords) && slices.Equal(a.Aliases, b.Aliases) && slices.Equal(a.Examples, b.Examples) &&
		slices.Equal(a.Capability.Domains, b.Capability.Domains) && slices.Equal(a.Capability.DeterministicFor, b.Capability.DeterministicFor) &&
		maps.Equal(a.Localized, b.Localized) && slices.Equal(a.MCP.Functions, b.MCP.Functions) && (aType == bType || sameType(aType, bType))
}

func sameType(a, b *catalog.ToolType) bool {
	return a.Source == b.Source && a.MCPServer == b.MCPServer && string(a.InputSchema) == string(b.InputSchema) &&
		slices.EqualFunc(a.Functions, b.Functions, func(x, y catalog.Function) bool {
			return x.Name == y.Name && x.Title == y.Title && x.Description == y.Description && string(x.InputSchema) == string(y.InputSchema)
		})
}
