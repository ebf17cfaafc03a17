package grpcserver

import (
	"cmp"
	"context"
	"slices"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// defaultTopK is how many matches a search returns that does not say.
const defaultTopK = 5

// DiscoveryOptions is what DiscoveryService needs besides the rest of a server.
type DiscoveryOptions struct {
	// Shelf has the indexes; nil: one with the default weights.
	Shelf *finder.Shelf
	// Settings; zero: the defaults.
	Settings finder.Settings
	// Log is told of searches; nil: nobody is.
	Log *learning.Log
	// Shadow works out what HYBRID does not answer; nil: one of the server's own.
	Shadow *routing.Shadow
	// Meaning knows what requests mean; nil: words only are compared.
	Meaning *meaning.Keeper
	// Reranker orders the best matches anew; nil: they stay as they are.
	Reranker *Reranker
}

// discoverer finds tools, for DiscoveryService and for ResolveTools.
type discoverer struct {
	DiscoveryOptions
	conversations *conversations
	deployment    call.Deployment
	board         *health.Board
}

// facts are what an answer about a conversation rests on.
func (d *discoverer) facts(f *replica.Facts, q *effective.Question, chat string) *finder.Facts {
	compiled := d.conversations.compiled(f.World)
	return &finder.Facts{World: f.World, Score: d.board.Score, Facts: &call.Facts{Index: compiled.index, Answer: d.conversations.of(f, q, chat),
		User: q.User.ID, Now: q.Now, Deployment: d.deployment, Health: d.board.Health("")}}
}

type discoveryServer struct {
	toolgrantv1.UnimplementedDiscoveryServiceServer
	*discoverer
	store   Store
	replica *replica.Replica
	now     func() time.Time
}

// askedQuestion is a question, and whether the chat's turn has to be stored for it.
type askedQuestion struct {
	effective.Question
	advance bool
}

// activeGroups are the user's, sorted.
func activeGroups(q *effective.Question) []id.Group {
	var groups []id.Group
	for _, m := range q.User.Memberships {
		if m.ActiveAt(q.Now) {
			groups = append(groups, m.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

// conversation is what requests of DiscoveryService have in common.
type conversation interface {
	GetChatId() string
	GetUserId() string
	GetSurface() *toolgrantv1.Surface
}

// ask gets the facts that a request rests on.
func (s *discoveryServer) ask(ctx context.Context, r conversation, turn *int32) (facts replica.Facts, asked askedQuestion, err error) {
	surface := surfaceFromProto(r.GetSurface())
	var consistency replica.Consistency
	if q, ok := r.(question); ok {
		consistency = consistencyFromProto(q.GetConsistency())
	}
	if facts, err = s.replica.Facts(ctx, id.Chat(r.GetChatId()), id.User(r.GetUserId()), surface, consistency); err != nil {
		return facts, asked, err
	}
	asked.Question, asked.advance, err = facts.Ask(surface, turn, s.now())
	return facts, asked, err
}

// view returns the indexes that a user's questions are answered from.
func (d *discoverer) view(ctx context.Context, w *effective.World, q *effective.Question) (finder.View, error) {
	return d.Shelf.Of(ctx, w, q.User.ID, activeGroups(q)...)
}

// SearchTools implements the RPC.
func (s *discoveryServer) SearchTools(ctx context.Context, r *toolgrantv1.SearchToolsRequest) (*toolgrantv1.SearchToolsResponse, error) {
	request := finder.Request{TopK: cmp.Or(int(r.GetTopK()), defaultTopK),
		Model: call.Request{ModelCapabilities: r.GetModelCapabilities(), ProviderCapabilities: r.GetProviderCapabilities(), Provider: r.GetProvider()}}
	for {
		facts, asked, err := s.ask(ctx, r, r.Turn)
		if err != nil {
			return nil, err
		}
		if asked.advance {
			if err := s.store.AdvanceTurn(ctx, id.Chat(r.GetChatId()), asked.Turn); err != nil {
				return nil, err
			}
		}
		response, err := s.found(ctx, &conversed{&facts, &asked.Question, r.GetChatId()}, r.GetQuery(), request, r.GetExplain())
		if err != nil {
			return nil, err
		}
		if facts.Expired() {
			continue
		}
		response.Revision, response.Stale = facts.Token, facts.Stale
		return response, nil
	}
}

var searchModels = map[finder.Model]toolgrantv1.SearchModel{
	finder.ModelEmbedding: toolgrantv1.SearchModel_SEARCH_MODEL_EMBEDDING,
	finder.ModelReranker:  toolgrantv1.SearchModel_SEARCH_MODEL_RERANKER,
}

func searchToProto(w *effective.World, r *finder.Result, explain bool) *toolgrantv1.SearchToolsResponse {
	p := &toolgrantv1.SearchToolsResponse{AllCandidates: r.All, CandidateCount: int32(r.Candidates), Matches: make([]*toolgrantv1.ToolMatch, len(r.Matches))}
	for i := range r.Matches {
		p.Matches[i] = matchToProto(w, &r.Matches[i], explain)
	}
	for _, one := range r.Related {
		t := w.Catalog.Tool(one.Number)
		p.Related = append(p.Related, &toolgrantv1.RelatedTool{ToolId: string(t.ID), Name: t.Name, Description: t.Description,
			Enabled: one.Enabled, RelatedToToolId: string(one.To)})
	}
	if english, chinese := r.Suggestion(); english != "" {
		p.Fallback = &toolgrantv1.SearchFallback{Suggestion: english, SuggestionZh: chinese}
	}
	for _, model := range r.Missed {
		p.MissedModels = append(p.MissedModels, searchModels[model])
	}
	if fast := r.FastPath; fast != nil {
		t := w.Catalog.Tool(fast.Number)
		p.FastPath = &toolgrantv1.FastPath{ToolId: string(t.ID), Name: t.Name, Task: fast.Task}
	}
	return p
}

func matchToProto(w *effective.World, m *finder.Match, explain bool) *toolgrantv1.ToolMatch {
	t := w.Catalog.Tool(m.Number)
	p := &toolgrantv1.ToolMatch{ToolId: string(t.ID), Name: t.Name, Category: t.Category, Source: sourceToProto(w.Catalog.Type(m.Number).Source), Risk: riskToProto(t.Risk),
		Description: t.Description, Enabled: m.Enabled, Score: m.Score, Confidence: m.Confidence, Own: m.Own, Unhealthy: m.Unhealthy}
	for i := range m.Reasons {
		r := &m.Reasons[i]
		p.WhyMatched = append(p.WhyMatched, &toolgrantv1.MatchReason{Kind: matchReasonKinds[r.Kind], Of: r.Of, Words: r.Words, Count: int32(r.Count),
			Message: r.Message, MessageZh: r.MessageZH})
	}
	if explain {
		f := &m.Features
		p.Features = &toolgrantv1.MatchFeatures{Words: f.Words, Sentence: f.Sentence, NameCoverage: f.NameCoverage, Grams: f.Grams, Cold: f.Cold,
			Coverage: f.Coverage, Strength: f.Strength, History: f.History, HistoryShare: f.HistoryShare, Nearest: f.Nearest, Similar: int32(f.Similar),
			Ranking: m.Ranking, Adjustment: m.Adjustment, Meaning: f.Meaning, Outstanding: f.Outstanding, Relevance: m.Relevance,
			Unlike: f.Unlike, Expansion: f.Expansion, NewCredit: f.NewCredit}
	}
	return p
}

var matchReasonKinds = func() map[discovery.ReasonKind]toolgrantv1.MatchReasonKind {
	kinds := map[discovery.ReasonKind]toolgrantv1.MatchReasonKind{}
	for name, number := range toolgrantv1.MatchReasonKind_value {
		kinds[discovery.ReasonKind(name[len("MATCH_REASON_KIND_"):])] = toolgrantv1.MatchReasonKind(number)
	}
	return kinds
}()
