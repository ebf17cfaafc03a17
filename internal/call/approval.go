package call

import (
	"encoding/json"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Asked is the call as a person is asked about it. The tool and the function are those that it resolved to.
func (r *Request) Asked(user id.User, tool id.Tool, function string) approval.Call {
	c := approval.Call{ID: r.Call, Chat: r.Chat, User: user, Tool: tool, Function: function}
	if r.Arguments != nil {
		c.Arguments, _ = json.Marshal(r.Arguments) // what JSON decoded always marshals; its keys are sorted
	}
	return c
}

// approvals finds what was asked for by this very call, and a grant that is good for it; nil: there is none.
func (f *Facts) approvals(r *Request, tool id.Tool, function string) (asked, grant *approval.Approval) {
	if f.Approvals == nil {
		return nil, nil
	}
	c := r.Asked(f.User, tool, function)
	known := f.Approvals(&c)
	for i := range known {
		p := &known[i]
		if asked == nil && p.For(&c) {
			asked = p
		}
		if (grant == nil || p.ID < grant.ID) && p.Covers(&c, f.Now) {
			grant = p
		}
	}
	return asked, grant
}
