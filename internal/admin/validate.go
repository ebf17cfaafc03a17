package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// world is what will be stored: the edit's objects over the stored ones, without those that go.
type world struct {
	servers     map[id.MCPServer]catalog.MCPServer
	types       map[id.ToolType]catalog.ToolType
	tools       map[id.Tool]catalog.Tool
	deviceTypes map[id.DeviceType]availability.DeviceType
	groups      map[id.Group]availability.Group
	avatars     map[id.Avatar]enable.Avatar
	users       map[id.User]availability.User

	gone       map[Ref]bool
	violations []fault.Violation
}

func (w *world) fault(path, format string, arguments ...any) {
	w.violations = append(w.violations, fault.Violation{Field: path, Description: fmt.Sprintf(format, arguments...)})
}

// merge lays wanted objects over the stored ones that stay and reports ids that occur twice.
func merge[K ~string, T any](w *world, section Section, field string, stored, wanted []T, idOf func(T) K) map[K]T {
	merged := make(map[K]T, len(stored)+len(wanted))
	for _, o := range stored {
		if len(w.gone) == 0 || !w.gone[Ref{section, string(idOf(o))}] {
			merged[idOf(o)] = o
		}
	}
	first := make(map[K]int, len(wanted))
	for i, o := range wanted {
		if j, twice := first[idOf(o)]; twice {
			w.fault(fmt.Sprintf("%s[%d].%s", section, i, field), "%q occurs twice: first in %s[%d]", idOf(o), section, j)
			continue
		}
		first[idOf(o)], merged[idOf(o)] = i, o
	}
	return merged
}

// validate checks the edit's objects, and the stored objects that refer to what it changes.
func validate(stored Manifest, e Edit, gone map[Ref]bool, referrers []Referrer) error {
	w := &world{gone: gone}
	w.servers = merge(w, SectionMCPServers, "mcp_server_id", stored.MCPServers, e.MCPServers, func(o catalog.MCPServer) id.MCPServer { return o.ID })
	w.types = merge(w, SectionToolTypes, "tool_type_id", stored.ToolTypes, e.ToolTypes, func(o catalog.ToolType) id.ToolType { return o.ID })
	w.tools = merge(w, SectionTools, "tool_id", stored.Tools, e.Tools, func(o catalog.Tool) id.Tool { return o.ID })
	w.deviceTypes = merge(w, SectionDeviceTypes, "device_type_id", stored.DeviceTypes, e.DeviceTypes, func(o availability.DeviceType) id.DeviceType { return o.ID })
	w.groups = merge(w, SectionGroups, "group_id", stored.Groups, e.Groups, func(o availability.Group) id.Group { return o.ID })
	w.avatars = merge(w, SectionAvatars, "avatar_id", stored.Avatars, e.Avatars, func(o enable.Avatar) id.Avatar { return o.ID })
	w.users = merge(w, SectionUsers, "user_id", stored.Users, e.Users, func(o availability.User) id.User { return o.ID })
	merge(w, SectionDefaultAvatars, "avatar_id", nil, e.DefaultAvatars, DefaultAvatarID)

	at := func(section Section, i int) string { return fmt.Sprintf("%s[%d]", section, i) }
	for i, o := range e.MCPServers {
		w.checkServer(at(SectionMCPServers, i), o)
	}
	for i, o := range e.ToolTypes {
		w.checkType(at(SectionToolTypes, i), o)
	}
	for i, o := range e.Tools {
		w.checkTool(at(SectionTools, i), o)
	}
	w.checkFallbacks(e.Tools)
	for i, o := range e.DeviceTypes {
		w.checkShared(at(SectionDeviceTypes, i)+".tool_ids", o.Tools)
	}
	for i, o := range e.Groups {
		w.checkShared(at(SectionGroups, i)+".grant_tool_ids", o.Grants)
		w.checkShared(at(SectionGroups, i)+".revoke_tool_ids", o.Revokes)
	}
	for i, o := range e.Avatars {
		w.checkExist(at(SectionAvatars, i)+".tool_ids", o.Tools)
	}
	for i, o := range e.DefaultAvatars {
		w.checkDefault(at(SectionDefaultAvatars, i), o)
	}
	w.checkQuotas(stored, e)
	owners := deviceOwners(stored, e, gone)
	for i, o := range e.Users {
		w.checkUser(at(SectionUsers, i), o, owners)
	}
	w.checkDependents(stored, e)
	inUse := len(e.Delete) > 0 || len(w.violations) == 0
	for _, r := range referrers {
		w.violations = append(w.violations, r.violation())
	}
	if len(w.violations) == 0 {
		return nil
	}
	slices.SortStableFunc(w.violations, func(a, b fault.Violation) int { return strings.Compare(a.Field, b.Field) })
	if inUse {
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonInUse,
			Message: "it cannot go: others refer to it", Violations: w.violations}
	}
	return fault.Invalid(w.violations...)
}

// deviceOwners says whose each device is. Of users that claim one device, a stored one that the edit leaves
// alone has it, else the first.
func deviceOwners(stored Manifest, e Edit, gone map[Ref]bool) map[id.Device]id.User {
	owners, given := map[id.Device]id.User{}, map[id.User]bool{}
	for _, u := range e.Users {
		given[u.ID] = true
	}
	claim := func(u availability.User) {
		for _, d := range u.Devices {
			if _, taken := owners[d.ID]; !taken {
				owners[d.ID] = u.ID
			}
		}
	}
	for _, u := range stored.Users {
		if !given[u.ID] && !gone[Ref{SectionUsers, string(u.ID)}] {
			claim(u)
		}
	}
	for _, u := range e.Users {
		claim(u)
	}
	return owners
}

func (w *world) checkServer(path string, s catalog.MCPServer) {
	if s.Transport != catalog.TransportStreamableHTTP {
		if _, err := s.CommandLine(); err != nil {
			w.fault(path+".endpoint", "%s", oneLine(err))
		}
		return
	}
	if u, err := url.Parse(s.Endpoint); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		w.fault(path+".endpoint", "must be an http or https URL: %q", s.Endpoint)
	}
}

func (w *world) checkType(path string, t catalog.ToolType) {
	_, exists := w.servers[t.MCPServer]
	switch {
	case t.MCPServer != "" && t.Source == catalog.SourceNative:
		w.fault(path+".mcp_server_id", "a native tool type has no MCP server")
	case t.MCPServer == "" && t.Source == catalog.SourceExternalMCP:
		w.fault(path+".mcp_server_id", "an external MCP tool type needs an MCP server")
	case t.MCPServer != "" && !exists:
		w.fault(path+".mcp_server_id", "no such MCP server %q", t.MCPServer)
	}
	if t.InputSchema != nil && t.Source == catalog.SourceExternalMCP {
		w.fault(path+".input_schema", "the functions of an external MCP server describe themselves")
	}
	w.checkSchema(path+".config_schema", t.ConfigSchema)
	w.checkSchema(path+".input_schema", t.InputSchema)
	w.checkFunctions(path, t)
}

func (w *world) checkSchema(path string, schema json.RawMessage) {
	if compiled, err := compileSchema(schema); err != nil {
		w.fault(path, "not a JSON Schema: %s", oneLine(err))
	} else if compiled != nil && endless(compiled) {
		w.fault(path, "it refers to itself without end")
	}
}

func (w *world) checkTool(path string, t catalog.Tool) {
	toolType, ok := w.types[t.Type]
	if !ok {
		w.fault(path+".tool_type_id", "no such tool type %q", t.Type)
	} else if schema, err := compileSchema(toolType.ConfigSchema); err == nil && schema != nil {
		w.checkConfig(path+".config", schema, t.Config)
	}
	if ok {
		w.checkToolMCP(path, t, toolType)
	}
	if t.Owner != "" {
		if _, ok := w.users[t.Owner]; !ok {
			w.fault(path+".owner_user_id", "no such user %q", t.Owner)
		}
		if t.Core {
			w.fault(path+".core", "a private tool cannot be a core tool")
		}
	}
	for i, related := range t.Related {
		other, ok := w.tools[related]
		switch field := fmt.Sprintf("%s.related_tool_ids[%d]", path, i); {
		case related == t.ID:
			w.fault(field, "a tool is not related to itself")
		case !ok:
			w.fault(field, "no such tool %q", related)
		case other.Owner != "" && other.Owner != t.Owner:
			w.fault(field, "%q is another user's private tool", related)
		}
	}
	for tag := range t.Localized {
		if _, err := language.Parse(tag); err != nil {
			w.fault(fmt.Sprintf("%s.localized[%q]", path, tag), "not a BCP 47 language tag")
		}
	}
	w.checkCapability(path, t)
}

func (w *world) checkConfig(path string, schema *jsonschema.Schema, config json.RawMessage) {
	if config == nil {
		config = json.RawMessage("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err == nil {
		err = schema.Validate(value)
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return
	}
	for _, leaf := range leaves(broken) {
		field := path
		for _, step := range leaf.InstanceLocation {
			field += "." + step
		}
		w.fault(field, "%s", oneLine(leaf.ErrorKind))
	}
}

// endless tells whether a schema refers to itself for one and the same value, so that no object satisfies it.
// (For a part of the value it may: so trees are described.)
func endless(schema *jsonschema.Schema) bool {
	var broken *jsonschema.ValidationError
	return errors.As(schema.Validate(map[string]any{}), &broken) &&
		slices.ContainsFunc(leaves(broken), func(leaf *jsonschema.ValidationError) bool {
			_, cycle := leaf.ErrorKind.(*kind.RefCycle)
			return cycle
		})
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

func (w *world) checkExist(path string, tools []id.Tool) {
	for i, tool := range tools {
		if _, ok := w.tools[tool]; !ok {
			w.fault(fmt.Sprintf("%s[%d]", path, i), "no such tool %q", tool)
		}
	}
}

func (w *world) checkShared(path string, tools []id.Tool) {
	w.checkExist(path, tools)
	for i, tool := range tools {
		if w.tools[tool].Owner != "" {
			w.fault(fmt.Sprintf("%s[%d]", path, i), "%q is a private tool, which only avatars may name", tool)
		}
	}
}

func (w *world) checkDefault(path string, d enable.DefaultAvatar) {
	if _, ok := w.avatars[d.Avatar]; !ok {
		w.fault(path+".avatar_id", "no such avatar %q", d.Avatar)
	}
	if _, ok := w.users[d.User]; !ok && d.User != "" {
		w.fault(path+".user_id", "no such user %q", d.User)
	}
	if _, ok := w.deviceTypes[d.DeviceType]; !ok && d.DeviceType != "" {
		w.fault(path+".device_type_id", "no such device type %q", d.DeviceType)
	}
}

func (w *world) checkUser(path string, u availability.User, owner map[id.Device]id.User) {
	devices, groups := map[id.Device]bool{}, map[id.Group]bool{}
	for i, d := range u.Devices {
		field := fmt.Sprintf("%s.devices[%d]", path, i)
		if _, ok := w.deviceTypes[d.Type]; !ok {
			w.fault(field+".device_type_id", "no such device type %q", d.Type)
		}
		if devices[d.ID] {
			w.fault(field+".device_id", "%q occurs twice", d.ID)
		} else if owner[d.ID] != u.ID {
			w.fault(field+".device_id", "%q belongs to another user", d.ID)
		}
		devices[d.ID] = true
	}
	for i, m := range u.Memberships {
		field := fmt.Sprintf("%s.memberships[%d].group_id", path, i)
		if _, ok := w.groups[m.Group]; !ok {
			w.fault(field, "no such group %q", m.Group)
		}
		if groups[m.Group] {
			w.fault(field, "%q occurs twice", m.Group)
		}
		groups[m.Group] = true
	}
}

// compileSchema compiles a JSON Schema; nil for none. References to other documents are refused.
func compileSchema(schema json.RawMessage) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const location = "schema:///" // a relative one would become a path on this machine
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, document); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are refused: %s", url)
}

func oneLine(v any) string {
	if broken, ok := v.(jsonschema.ErrorKind); ok {
		v = broken.LocalizedString(printer)
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}
