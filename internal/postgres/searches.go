package postgres

import (
	"context"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// AddSearches adds searches.
func (s *Store) AddSearches(ctx context.Context, searches []learning.Search) error {
	rows := make([]db.AddSearchesParams, len(searches))
	for i := range searches {
		one := &searches[i]
		rows[i] = db.AddSearchesParams{ChatID: string(one.Chat), UserID: string(one.User), GroupIds: texts(one.Groups), FoundToolIds: texts(one.Found),
			Features: make([]int64, len(one.Features)), CreateTime: stored(one.Time), Kind: string(one.Kind), RoutingMode: string(one.Mode)}
		if one.Kind == learning.KindNarrowing {
			effective := int32(one.Effective)
			rows[i].EffectiveCount, rows[i].KeptToolIds = &effective, texts(one.Kept)
		}
		for j, feature := range one.Features {
			rows[i].Features[j] = int64(feature)
		}
		if one.Query != "" {
			rows[i].Query = &one.Query
		}
	}
	_, err := s.queries.AddSearches(ctx, s.pool, rows)
	return translate(err)
}

func texts[T ~string](list []T) []string {
	all := make([]string, len(list)) // not nil, which is NULL
	for i, one := range list {
		all[i] = string(one)
	}
	return all
}

// SearchUses returns the newest uses that were written since an instant, at most so many.
func (s *Store) SearchUses(ctx context.Context, since time.Time, atMost int) ([]learning.Use, error) {
	rows, err := s.queries.ListSearchUses(ctx, s.pool, db.ListSearchUsesParams{Since: since, AtMost: int32(atMost)})
	if err != nil {
		return nil, translate(err)
	}
	uses := make([]learning.Use, len(rows))
	for i, row := range rows {
		uses[i] = learning.Use{Call: id.Call(row.CallID), User: id.User(row.UserID), Tool: id.Tool(row.ToolID), Private: row.Private, Time: row.ReportTime,
			Written: row.CreateTime, Features: make([]uint64, len(row.Features))}
		for j, feature := range row.Features {
			uses[i].Features[j] = uint64(feature)
		}
		for _, group := range row.GroupIds {
			uses[i].Groups = append(uses[i].Groups, id.Group(group))
		}
	}
	return uses, nil
}
