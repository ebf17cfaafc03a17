package effective_test

import (
	"cmp"
	"testing"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// TestCases asks the pure functions what internal/grpcserver's test of this name asks the server.
func TestCases(t *testing.T) {
	effectivetest.Run(t, "testdata", func(t *testing.T, file *effectivetest.File) func(*testing.T, *effectivetest.Question) effectivetest.Answer {
		var m effectivetest.Manifest
		if err := file.World.Decode(&m); err != nil {
			t.Fatal(err)
		}
		world, err := effective.Compile(m.Definitions())
		if err != nil {
			t.Fatal(err)
		}
		return func(_ *testing.T, q *effectivetest.Question) effectivetest.Answer {
			answer, err := ask(world, &m, q)
			if f, ok := fault.As(err); ok {
				return effectivetest.Answer{Refused: string(f.Reason)}
			}
			return answer
		}
	})
}

// ask answers a question as the server does, without its storage.
func ask(world *effective.World, m *effectivetest.Manifest, q *effectivetest.Question) (effectivetest.Answer, error) {
	asked, err := m.Ask(world, &q.Conversation)
	if err != nil {
		return effectivetest.Answer{}, err
	}
	answer := plain(world, world.Resolve(asked))
	if q.Explain != "" {
		if !world.Catalog.ExistsFor(asked.User.ID, id.Tool(q.Explain)) {
			return effectivetest.Answer{}, fault.Missing("tool", q.Explain)
		}
		n, _ := world.Catalog.Number(id.Tool(q.Explain))
		for _, step := range world.Resolve(asked).Explain(n) {
			var rows []string
			for _, row := range step.Rows {
				rows = append(rows, row.Kind+"/"+row.ID)
			}
			answer.Steps = append(answer.Steps, effectivetest.Step(string(step.Rule), string(step.Outcome), rows...))
		}
	}
	return answer, nil
}

// plain words an answer as cases do.
func plain(world *effective.World, a *effective.Answer) effectivetest.Answer {
	avatars, available := texts(a.Enable.ActiveAvatars), texts(toolIDs(world, a.Availability.Available))
	p := effectivetest.Answer{Effective: texts(toolIDs(world, a.Effective)), Avatars: &avatars, Available: &available}
	for n := range a.Effective.EachSet() {
		if left, ok := a.Enable.TurnsLeft(n); ok {
			if p.ExpiresAfterTurns == nil {
				p.ExpiresAfterTurns = map[string]int32{}
			}
			p.ExpiresAfterTurns[string(world.Catalog.Tool(n).ID)] = left
		}
	}
	for w := range a.Withheld() {
		var surfaces []string
		for _, s := range w.Surfaces {
			surfaces = append(surfaces, cmp.Or(string(s.Device), effectivetest.Web))
		}
		p.Withheld = append(p.Withheld, effectivetest.Withheld{Tool: string(w.Tool), Reason: string(w.Reason),
			MissingCapabilities: w.MissingCapabilities, Groups: texts(w.Groups), GrantingGroups: texts(w.GrantingGroups),
			Surfaces: surfaces, ShadowedBy: string(w.ShadowedBy), Message: w.Message, MessageZH: w.MessageZH})
	}
	return p
}

func toolIDs(w *effective.World, set *catalog.Set) []id.Tool {
	var ids []id.Tool
	for n := range set.EachSet() {
		ids = append(ids, w.Catalog.Tool(n).ID)
	}
	return ids
}

func texts[T ~string](ids []T) []string {
	list := []string{}
	for _, name := range ids {
		list = append(list, string(name))
	}
	return list
}
