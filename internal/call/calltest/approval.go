package calltest

import (
	"cmp"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Known are the approvals of a question, as they are stored.
func (q *Question) Known(t testing.TB) []approval.Approval {
	t.Helper()
	known := make([]approval.Approval, len(q.Approvals))
	for i, p := range q.Approvals {
		p.Call, p.Chat = cmp.Or(p.Call, q.Call.ID), cmp.Or(p.Chat, "chat")
		p.User, p.Function = cmp.Or(p.User, q.User), cmp.Or(p.Function, q.Call.Function)
		arguments := q.Call.Arguments
		if p.Arguments != nil {
			arguments = p.Arguments
		}
		known[i] = p.Made(q.Now, encoded(t, arguments))
	}
	return known
}

// Decoded are the arguments of the call as JSON decodes them.
func (q *Question) Decoded(t testing.TB) (decoded map[string]any) {
	t.Helper()
	if data := encoded(t, q.Call.Arguments); data != nil {
		if err := json.Unmarshal(data, &decoded); err != nil {
			t.Fatal(err)
		}
	}
	return decoded
}

func encoded(t testing.TB, arguments map[string]any) []byte {
	t.Helper()
	if arguments == nil {
		return nil
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Made makes an approval that is in its state at an instant. It was asked for an hour before.
func (p *Approval) Made(now time.Time, arguments []byte) approval.Approval {
	before := now.Add(-time.Minute)
	a := approval.Approval{Request: approval.Request{ID: id.Approval(p.ID), Create: now.Add(-time.Hour), Expire: cmp.Or(p.Expire, now.Add(time.Hour)),
		Call: approval.Call{ID: id.Call(p.Call), Chat: id.Chat(p.Chat), User: id.User(p.User), Tool: id.Tool(p.Tool), Function: p.Function, Arguments: arguments}}}
	a.Digest = a.Call.Digest()
	granted := &approval.Decision{Approve: true, Scope: approval.Scope(p.Scope), Expire: p.Expire, By: "somebody", Time: before}
	if p.Scope != string(approval.Chat) {
		granted.Expire = cmp.Or(p.Expire, now.Add(time.Hour))
	}
	switch state := approval.State(p.State); state {
	case approval.Pending:
	case approval.Expired:
		a.Request.Expire = now
	case approval.Denied:
		a.Decision = &approval.Decision{By: "somebody", Time: before}
	case approval.Approved:
		a.Decision = granted
	case approval.Used:
		a.Decision, a.Use = granted, before
	case approval.Revoked:
		a.Decision, a.Revocation = granted, &approval.Revocation{By: "somebody", Time: before}
	default:
		panic("calltest: no state of approvals: " + p.State)
	}
	return a
}
