package grpcserver

import (
	"context"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// narrow makes the answer to a query, of a large effective set; nil: there is no query, or nothing to narrow. It is not
// kept: another message of the user asks for other tools.
func (s *entitlementServer) narrow(ctx context.Context, f *replica.Facts, q *effective.Question, r *toolgrantv1.ResolveToolsRequest) (*answer, error) {
	if r.GetQuery() == "" {
		return nil, nil
	}
	narrowed, resolved, err := s.finds.narrowed(ctx, &conversed{f, q, r.GetChatId()}, r.GetQuery())
	if err != nil || narrowed == nil {
		return nil, err
	}
	rest := &toolgrantv1.ResolveToolsResponse{}
	rest.PromptNote, rest.PromptNoteZh = narrowed.Note()
	for n := range narrowed.Deferred.EachSet() {
		t := f.World.Catalog.Tool(n)
		rest.Deferred = append(rest.Deferred, &toolgrantv1.DeferredTool{ToolId: string(t.ID), Name: t.Name})
	}
	made := &answer{basis: newBasis(f, q)}
	given := narrowed.Answer(resolved)
	if made.body, err = s.answers.encode(f, given, resolved, r.GetView()); err != nil {
		return nil, err
	}
	if made.body, err = canonical.MarshalAppend(made.body, rest); err == nil && r.GetView() == toolgrantv1.ToolView_TOOL_VIEW_FULL {
		made.limited, err = limitedTools(f.World, given.Effective, made.body)
	}
	return made, err
}
