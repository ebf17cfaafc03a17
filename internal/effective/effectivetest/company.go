package effectivetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Company is a big world: so many tools, device types with 200 of them each, Avatars with 30 each, five groups.
func Company(tools, deviceTypes, avatars int) effective.Definitions {
	random := rand.New(rand.NewPCG(1, 2))
	d := effective.Definitions{ToolTypes: []catalog.ToolType{{ID: "type", Source: catalog.SourceNative}}}
	for i := range tools {
		tool := catalog.Tool{ID: id.Tool(fmt.Sprintf("tool-%05d", i)), Type: "type", Name: fmt.Sprintf("tool_%d", i/2), Title: "A tool", Description: "What it does, when to use it and what it takes, in a sentence or two.", Status: catalog.StatusActive}
		if i%10 == 0 {
			tool.RequiredCapabilities = []string{[]string{"display", "camera", "speaker"}[i/10%3]}
		}
		d.Tools = append(d.Tools, tool)
	}
	some := func(n int) []id.Tool {
		picked := make([]id.Tool, min(n, tools))
		for i := range picked {
			picked[i] = d.Tools[random.IntN(tools)].ID
		}
		return picked
	}
	for i := range deviceTypes {
		d.DeviceTypes = append(d.DeviceTypes, availability.DeviceType{ID: id.DeviceType(fmt.Sprint("type-", i)), Capabilities: []string{"speaker"}, Tools: some(200)})
	}
	for i := range avatars {
		d.Avatars = append(d.Avatars, enable.Avatar{ID: id.Avatar(fmt.Sprint("avatar-", i)), Tools: some(30)})
	}
	for i := range 5 {
		d.Groups = append(d.Groups, availability.Group{ID: id.Group(fmt.Sprint("group-", i)), Priority: int32(i), Grants: some(50), Revokes: some(20)})
	}
	d.DefaultAvatars = []enable.DefaultAvatar{{Avatar: d.Avatars[0].ID}}
	return d
}

// CompanyQuestion is that of a user of a company with two devices and two groups, in a chat with two active Avatars
// and a tool that it turned on.
func CompanyQuestion(now time.Time) effective.Question {
	user := &availability.User{ID: "u", Devices: []availability.Device{{ID: "d1", Type: "type-1"}, {ID: "d2", Type: "type-2"}},
		Memberships: []availability.Membership{{Group: "group-1"}, {Group: "group-3"}}}
	q := effective.Question{User: user, Surface: availability.Surface{Device: "d1"}, Now: now}
	q.Chat = q.Chat.Fold(enable.Entry{Sequence: 1, Avatar: "avatar-1", Action: enable.ActionEnable},
		enable.Entry{Sequence: 2, Avatar: "avatar-2", Action: enable.ActionEnable}, enable.Entry{Sequence: 3, Tool: "tool-00007", Action: enable.ActionEnable})
	return q
}
