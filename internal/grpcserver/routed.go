package grpcserver

import (
	"context"
	"slices"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// shadowTimeout bounds a job in the shadow.
const shadowTimeout = 10 * time.Second

// conversed is a conversation that something is asked in.
type conversed struct {
	facts    *replica.Facts
	question *effective.Question
	chat     string
}

// record tells the log of what was found, or would have been.
func (d *discoverer) record(c *conversed, s learning.Search, text string) {
	if d.Log == nil {
		return
	}
	s.Mode = modeOf(c.facts.World, c.question)
	s.Chat, s.User, s.Groups, s.Time = id.Chat(c.chat), c.question.User.ID, activeGroups(c.question), c.question.Now
	d.Log.Record(s, text)
}

// inShadow has a job done that no answer waits for.
func (d *discoverer) inShadow(job func(context.Context) error) {
	d.Shadow.Do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), shadowTimeout)
		defer cancel()
		return job(ctx)
	})
}

// found answers a search as the user's routing mode has it.
func (d *discoverer) found(ctx context.Context, c *conversed, query string, r finder.Request, explain bool) (*toolgrantv1.SearchToolsResponse, error) {
	mode := modeOf(c.facts.World, c.question)
	switch mode {
	case routing.Legacy:
		d.record(c, learning.Search{Kind: learning.KindSearch}, "") // nobody learns from it
		return searchOff(mode), nil
	case routing.Hybrid:
		d.inShadow(func(ctx context.Context) error {
			_, err := d.find(ctx, c, query, r)
			return err
		})
		return searchOff(mode), nil
	}
	result, err := d.find(ctx, c, query, r)
	if err != nil {
		return nil, err
	}
	response := searchToProto(c.facts.World, &result, explain)
	response.RoutingMode = routingModeToProto(mode)
	return response, nil
}

// find finds, and has it recorded.
func (d *discoverer) find(ctx context.Context, c *conversed, query string, r finder.Request) (finder.Result, error) {
	r.Read = discovery.Read(query)
	meaningMissed := false
	if d.Meaning != nil {
		r.Read, meaningMissed = d.Meaning.Understand(ctx, c.question.User.ID, r.Read, query)
	}
	reranking, cancel := d.Reranker.reranking(ctx, query)
	defer cancel()
	r.Reranking = reranking
	view, err := d.view(ctx, c.facts.World, c.question)
	if err != nil {
		return finder.Result{}, err
	}
	result := view.Find(d.facts(c.facts, c.question, c.chat), &d.Settings, &r)
	if meaningMissed {
		result.Missed = slices.Insert(result.Missed, 0, finder.ModelEmbedding)
	}
	if !c.facts.Expired() || modeOf(c.facts.World, c.question) == routing.Hybrid { // else it is not the answer
		d.record(c, learning.Search{Kind: learning.KindSearch, Features: r.Read.Features(), Found: result.Found}, query)
	}
	return result, nil
}

// searchOff is the answer while the user's routing mode is not V2.
func searchOff(mode routing.Mode) *toolgrantv1.SearchToolsResponse {
	english, chinese := finder.SearchOff()
	return &toolgrantv1.SearchToolsResponse{RoutingMode: routingModeToProto(mode),
		Fallback: &toolgrantv1.SearchFallback{Suggestion: english, SuggestionZh: chinese}}
}

// narrowed narrows as the user's routing mode has it; nil: what is effective is told as it is.
func (d *discoverer) narrowed(ctx context.Context, c *conversed, query string) (*finder.Narrowed, *effective.Answer, error) {
	switch modeOf(c.facts.World, c.question) {
	case routing.Legacy:
		return nil, nil, nil
	case routing.Hybrid:
		d.inShadow(func(ctx context.Context) error {
			_, _, err := d.keep(ctx, c, query)
			return err
		})
		return nil, nil, nil
	}
	return d.keep(ctx, c, query)
}

// keep narrows, and has it recorded.
func (d *discoverer) keep(ctx context.Context, c *conversed, query string) (*finder.Narrowed, *effective.Answer, error) {
	view, err := d.view(ctx, c.facts.World, c.question)
	if err != nil {
		return nil, nil, err
	}
	facts := d.facts(c.facts, c.question, c.chat)
	narrowed := view.Narrow(facts, &d.Settings, query)
	if narrowed == nil {
		return nil, nil, nil
	}
	s := learning.Search{Kind: learning.KindNarrowing, Found: narrowed.Best, Effective: int(facts.Answer.Effective.Count())}
	for n := range narrowed.Tools.EachSet() {
		s.Kept = append(s.Kept, c.facts.World.Catalog.Tool(n).ID)
	}
	slices.Sort(s.Kept)
	d.record(c, s, "")
	return narrowed, facts.Answer, nil
}
