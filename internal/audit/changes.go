package audit

import (
	"net/url"

	"github.com/toolgrant/toolgrant/internal/admin"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
)

// OfChanges returns what the log tells of an edit's changes: one entry for each, in their order.
func OfChanges(changes []admin.Change, by caller.Caller) []Entry {
	entries := make([]Entry, len(changes))
	for i, c := range changes {
		before, after := c.Before, c.Object
		if c.Action == admin.ActionDelete {
			before, after = c.Object, nil
		}
		e := Entry{Caller: by, Action: Action(c.Action), Kind: c.Section.Kind(), ObjectID: c.ID, User: ownerOf(c.Object)}
		if c.Approval {
			e.Action = ActionApprove
		}
		if e.User == "" {
			e.User = ownerOf(before)
		}
		for _, f := range c.Fields {
			e.ChangedFields = append(e.ChangedFields, f.Field)
		}
		e.Before, e.After = statesOf(withoutSecrets(before), withoutSecrets(after))
		entries[i] = e
	}
	return entries
}

// ownerOf returns the user whose object it is.
func ownerOf(object any) id.User {
	switch o := object.(type) {
	case availability.User:
		return o.ID
	case catalog.Tool:
		return o.Owner
	case enable.DefaultAvatar:
		return o.User
	}
	return ""
}

// withoutSecrets hides a password that somebody wrote into a URL: from this log nothing can be taken back. Where
// secrets belong, objects hold their names only.
func withoutSecrets(object any) any {
	server, ok := object.(catalog.MCPServer)
	if !ok {
		return object
	}
	if u, err := url.Parse(server.Endpoint); err == nil {
		if _, has := u.User.Password(); has {
			server.Endpoint = u.Redacted()
		}
	}
	return server
}
