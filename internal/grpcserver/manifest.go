package grpcserver

import (
	"fmt"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/fault"
)

func editFromProto(p *toolgrantv1.Manifest) admin.Edit {
	e := admin.Edit{Etags: map[admin.Ref]string{}}
	e.ToolTypes = toolTypes.manyFromProto(p.GetToolTypes(), e.Etags)
	e.Tools = tools.manyFromProto(p.GetTools(), e.Etags)
	e.MCPServers = mcpServers.manyFromProto(p.GetMcpServers(), e.Etags)
	e.DeviceTypes = deviceTypes.manyFromProto(p.GetDeviceTypes(), e.Etags)
	e.Groups = groups.manyFromProto(p.GetGroups(), e.Etags)
	e.Avatars = avatars.manyFromProto(p.GetAvatars(), e.Etags)
	e.DefaultAvatars = defaultAvatars.manyFromProto(p.GetDefaultAvatars(), e.Etags)
	e.Users = users.manyFromProto(p.GetUsers(), e.Etags)
	return e
}

func manifestToProto(m *admin.Manifest) (p *toolgrantv1.Manifest, err error) {
	p = &toolgrantv1.Manifest{}
	if p.ToolTypes, err = toolTypes.manyToProto(m.ToolTypes); err != nil {
		return nil, err
	}
	if p.Tools, err = tools.manyToProto(m.Tools); err != nil {
		return nil, err
	}
	if p.McpServers, err = mcpServers.manyToProto(m.MCPServers); err != nil {
		return nil, err
	}
	if p.DeviceTypes, err = deviceTypes.manyToProto(m.DeviceTypes); err != nil {
		return nil, err
	}
	if p.Groups, err = groups.manyToProto(m.Groups); err != nil {
		return nil, err
	}
	if p.Avatars, err = avatars.manyToProto(m.Avatars); err != nil {
		return nil, err
	}
	if p.DefaultAvatars, err = defaultAvatars.manyToProto(m.DefaultAvatars); err != nil {
		return nil, err
	}
	p.Users, err = users.manyToProto(m.Users)
	return p, err
}

func changesToProto(changes []admin.Change) []*toolgrantv1.Change {
	var list []*toolgrantv1.Change
	for _, c := range changes {
		p := &toolgrantv1.Change{Section: string(c.Section), Id: c.ID,
			Action: toolgrantv1.ChangeAction(toolgrantv1.ChangeAction_value["CHANGE_ACTION_"+string(c.Action)])}
		for _, f := range c.Fields {
			p.Fields = append(p.Fields, &toolgrantv1.FieldChange{Field: f.Field, Before: f.Before, After: f.After})
		}
		list = append(list, p)
	}
	return list
}

// warningsOf are what a manifest is accepted with, but probably does not mean.
func warningsOf(m *toolgrantv1.Manifest) []*toolgrantv1.Warning {
	var list []*toolgrantv1.Warning
	for i, t := range m.GetTools() {
		list = append(list, warningsToProto(fmt.Sprintf("tools[%d].", i), tools.warnings(t))...)
	}
	return list
}

func warningsToProto(path string, warnings []fault.Violation) []*toolgrantv1.Warning {
	var list []*toolgrantv1.Warning
	for _, w := range warnings {
		list = append(list, &toolgrantv1.Warning{Field: path + w.Field, Description: w.Description})
	}
	return list
}
