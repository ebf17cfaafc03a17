package grpcserver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
)

// coreSpan is what suggestions of core tools rest on where nobody says.
const coreSpan = 30 * 24 * time.Hour

// SuggestCoreTools implements the RPC.
func (s *discoveryServer) SuggestCoreTools(ctx context.Context, r *toolgrantv1.SuggestCoreToolsRequest) (*toolgrantv1.SuggestCoreToolsResponse, error) {
	start, end, err := spanOf(r, coreSpan, s.now())
	if err != nil {
		return nil, err
	}
	evidence, err := s.store.CoreEvidence(ctx, start, end)
	if err != nil {
		return nil, err
	}
	world := s.replica.World()
	index := s.conversations.compiled(world).index
	suggested := learning.SuggestCore(&evidence, func(tool id.Tool) bool { return mayBeCore(world.Catalog, index, tool) }, coreCriteria(r))
	response := &toolgrantv1.SuggestCoreToolsResponse{Users: evidence.Users, Chats: evidence.Chats, StartTime: timestamppb.New(start), EndTime: timestamppb.New(end)}
	for _, t := range suggested {
		n, _ := world.Catalog.Number(t.Tool)
		p := &toolgrantv1.CoreSuggestion{ToolId: string(t.Tool), Name: world.Catalog.Tool(n).Name, Users: t.Users, Chats: t.Chats, Days: t.Days, Calls: t.Calls, Searches: t.Searches}
		p.UserShare, _ = learning.Rate(t.Users, evidence.Users)
		p.ChatShare, _ = learning.Rate(t.Chats, evidence.Chats)
		p.ErrorRate, _ = learning.Rate(t.Failed, t.Calls)
		response.Suggestions = append(response.Suggestions, p)
	}
	return response, nil
}

// mayBeCore tells whether a tool may be suggested as a core tool, and is none yet. What is on in every chat must do no
// harm.
func mayBeCore(tools *catalog.Snapshot, index *call.Index, tool id.Tool) bool {
	n, ok := tools.Number(tool)
	if !ok {
		return false // it is gone
	}
	t := tools.Tool(n)
	return t.Owner == "" && !t.Core && t.Status == catalog.StatusActive && !tools.Type(n).Disabled && t.Risk == catalog.RiskLow && index.Harmless(n)
}

func coreCriteria(r *toolgrantv1.SuggestCoreToolsRequest) *learning.CoreCriteria {
	c := learning.DefaultCoreCriteria()
	if r.MinUsers != nil {
		c.MinUsers = int64(r.GetMinUsers())
	}
	if r.MinUserShare != nil {
		c.MinUserShare = r.GetMinUserShare()
	}
	if r.MinDays != nil {
		c.MinDays = int64(r.GetMinDays())
	}
	if r.MaxErrorRate != nil {
		c.MaxErrorRate = r.GetMaxErrorRate()
	}
	if r.GetLimit() != 0 {
		c.Limit = int(r.GetLimit())
	}
	return &c
}
