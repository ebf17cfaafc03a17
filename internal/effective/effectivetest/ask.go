package effectivetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Ask turns a conversation into a question as the server does, without its storage, or refuses as it does.
func (m *Manifest) Ask(world *effective.World, c *Conversation) (effective.Question, error) {
	surface := availability.Surface{Device: id.Device(c.Device)}
	facts, err := m.facts(world, id.User(c.User), surface)
	if err != nil {
		return effective.Question{}, err
	}
	if c.Created() {
		if facts.Chat, err = m.create(world, c); err != nil {
			return effective.Question{}, err
		}
	}
	for _, e := range c.Log {
		if err := write(&facts, surface, e, c.Now); err != nil {
			return effective.Question{}, err
		}
	}
	asked, _, err := facts.Ask(surface, c.Turn, c.Now)
	return asked, err
}

// facts is what the store would read for a user who asks on a surface.
func (m *Manifest) facts(world *effective.World, name id.User, surface availability.Surface) (effective.Facts, error) {
	facts := effective.Facts{World: world}
	for _, u := range m.Users {
		user := &availability.User{ID: u.ID}
		for _, d := range u.Devices {
			user.Devices = append(user.Devices, availability.Device{ID: d.ID, Type: d.Type})
			facts.DeviceExists = facts.DeviceExists || d.ID == surface.Device
		}
		slices.SortFunc(user.Devices, func(a, b availability.Device) int { return cmp.Compare(a.ID, b.ID) })
		for _, g := range u.Memberships {
			user.Memberships = append(user.Memberships, availability.Membership{Group: g.Group, Start: g.Start, Expire: g.Expire})
		}
		slices.SortFunc(user.Memberships, func(a, b availability.Membership) int { return cmp.Compare(a.Group, b.Group) })
		if u.ID == name {
			facts.User = user
		}
	}
	if facts.User == nil {
		return facts, fault.Missing("user", string(name))
	}
	return facts, nil
}

func (m *Manifest) create(world *effective.World, c *Conversation) (*enable.Chat, error) {
	var surface availability.Surface
	if c.CreatedOn != Web {
		surface.Device = id.Device(c.CreatedOn)
	}
	facts, err := m.facts(world, id.User(c.CreatedBy), surface)
	if err != nil {
		return nil, err
	}
	entries, err := facts.FirstEntries(surface)
	if err != nil {
		return nil, err
	}
	chat, _ := enable.Chat{ID: "chat", User: facts.User.ID}.Append(entries, nil)
	return &chat, nil
}

func write(facts *effective.Facts, surface availability.Surface, e Entry, now time.Time) error {
	if e.AskedInTurn != nil {
		asked, advance, err := facts.Ask(surface, e.AskedInTurn, now)
		if advance {
			facts.Chat.Turn = asked.Turn
		}
		return err
	}
	entries := []enable.Entry{{Tool: id.Tool(e.Enable + e.Disable), Avatar: id.Avatar(e.EnableAvatar + e.DisableAvatar),
		Action: enable.ActionEnable, TTLTurns: e.TTLTurns}}
	if e.Disable != "" || e.DisableAvatar != "" {
		entries[0].Action = enable.ActionDisable
	}
	var err error
	if entries[0].Avatar != "" {
		err = facts.World.Enable.CheckAvatars(entries)
	} else {
		err = enable.CheckTools(facts.World.Catalog, facts.Chat.User, entries)
	}
	if err == nil {
		*facts.Chat, _ = facts.Chat.Append(entries, e.Turn)
	}
	return err
}
