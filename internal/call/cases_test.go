package call_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/call/calltest"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
	"github.com/toolgrant/toolgrant/internal/id"
)

func TestCases(t *testing.T) {
	calltest.Run(t, "testdata", func(t *testing.T, file *calltest.File) func(*testing.T, *calltest.Question) calltest.Answer {
		var m effectivetest.Manifest
		if err := file.World.Decode(&m); err != nil {
			t.Fatal(err)
		}
		world, err := effective.Compile(m.Definitions())
		if err != nil {
			t.Fatal(err)
		}
		index := call.Compile(world.Catalog, m.Servers())
		return func(t *testing.T, q *calltest.Question) calltest.Answer {
			asked, err := m.Ask(world, &q.Conversation)
			if err != nil {
				t.Fatal(err)
			}
			f := call.Facts{Index: index, Answer: world.Resolve(asked), User: asked.User.ID, Now: q.Now, Health: health(q),
				Deployment: call.Deployment{
					Network:         slices.Contains(q.Deployment, "network"),
					FilesystemRead:  slices.Contains(q.Deployment, "filesystem.read"),
					FilesystemWrite: slices.Contains(q.Deployment, "filesystem.write"),
				}}
			r := call.Request{Call: id.Call(q.Call.ID), Chat: "chat", Turn: q.Turn, Function: q.Call.Function, Source: q.Call.Source,
				Arguments: q.Decoded(t), ModelCapabilities: q.Call.ModelCapabilities,
				ProviderCapabilities: q.Call.ProviderCapabilities, Provider: q.Call.Provider}
			for _, name := range q.Synonyms {
				if f.Synonyms == nil {
					f.Synonyms = call.Synonyms{}
				}
				f.Synonyms[name] = true
			}
			f.Approvals = func(*approval.Call) []approval.Approval { return q.Known(t) }
			return plain(call.Decide(&f, &r))
		}
	})
}

func health(q *calltest.Question) call.Health {
	conditions := map[call.Subject]call.Condition{}
	for _, s := range q.Down {
		conditions[subject(s)] = call.Condition{State: call.Open, RetryAfter: s.For}
	}
	for _, s := range q.Probing {
		conditions[subject(s)] = call.Condition{State: call.HalfOpen}
	}
	return func(s call.Subject) call.Condition { return conditions[s] }
}

func subject(s calltest.Subject) call.Subject {
	return call.Subject{Tool: id.Tool(s.Tool), Server: id.MCPServer(s.Server)}
}

// plain words an answer as cases do.
func plain(a call.Answer) calltest.Answer {
	p := calltest.Answer{Decision: string(a.Decision), Reason: string(a.Reason), Tool: string(a.Tool), Approval: string(a.Approval),
		Function: a.Function, Risk: string(a.Risk), Trace: a.Trace, Message: a.Message, MessageZH: a.MessageZH}
	for _, tool := range a.Fallback {
		p.Fallback = append(p.Fallback, string(tool))
	}
	if a.Withheld != nil {
		p.Withheld = string(a.Withheld.Reason)
	}
	for _, s := range a.Probes {
		p.Probes = append(p.Probes, cmp.Or(string(s.Tool), string(s.Server)))
	}
	if b := a.Binding; a.Decision == call.Allow {
		p.Binding = &calltest.Binding{ToolClass: b.ToolClass, Server: string(b.Server), Function: b.Function, Endpoint: b.Endpoint, Config: string(b.Config)}
	}
	if e := a.Next.Enable; e != nil {
		p.Next.Enable = &calltest.Enable{Chat: string(e.Chat), RequestID: e.RequestID, Turn: e.Turn, Tool: string(e.Tool)}
	}
	p.Next.Approve, p.Next.Fallback = a.Next.Approve, a.Next.Fallback
	if a.Next.RetryAfter > 0 {
		p.Next.RetryAfter = a.Next.RetryAfter.String()
	}
	for _, f := range a.Next.Faults {
		p.Next.Faults = append(p.Next.Faults, f.Path+": "+f.Description)
	}
	for _, s := range a.Next.Sources {
		p.Next.Sources = append(p.Next.Sources, s.Source+"/"+string(s.Tool)+"/"+s.UniqueName)
	}
	return p
}
