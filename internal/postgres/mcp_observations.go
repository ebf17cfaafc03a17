package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/pin"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// Observe writes down where a server differs from what is pinned in a tool type, given what it lists. It returns what is
// observed anew. A tool type that is gone, or that is not that server's any more, has no observations.
func (s *Store) Observe(ctx context.Context, server id.MCPServer, toolType id.ToolType, listed []catalog.Function) (news []catalog.Observation, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.queries.LockCatalog(ctx, tx); err != nil {
			return err
		}
		c, err := s.catalogAt(ctx, tx)
		if err != nil {
			return err
		}
		news = nil
		var drop []string
		var told []audit.Entry
		now := time.Now().UTC().Truncate(time.Microsecond)
		for i := range c.definitions.ToolTypes {
			if t := &c.definitions.ToolTypes[i]; t.ID == toolType && t.MCPServer == server {
				if news, drop = pin.Compare(t, listed, now); len(news) > 0 {
					told = []audit.Entry{audit.OfObservations(t, news, caller.From(ctx))}
				}
			}
		}
		if len(news)+len(drop) == 0 {
			return errNothing
		}
		put := db.PutMcpObservationsParams{ToolTypeID: string(toolType), ObserveTime: now}
		for _, o := range news {
			text := ""
			if o.Function != nil {
				function, err := json.Marshal(o.Function)
				if err != nil {
					return err
				}
				text = string(function)
			}
			put.Names, put.Functions = append(put.Names, o.Name), append(put.Functions, text)
		}
		if len(news) > 0 {
			if err := s.queries.PutMcpObservations(ctx, tx, put); err != nil {
				return err
			}
			if err := s.addAuditEntries(ctx, tx, told); err != nil {
				return err
			}
		}
		if len(drop) > 0 {
			if err := s.queries.DropMcpObservations(ctx, tx, db.DropMcpObservationsParams{ToolTypeID: string(toolType), Names: drop}); err != nil {
				return err
			}
		}
		if err := s.queries.RecordChanges(ctx, tx, db.RecordChangesParams{Kinds: []string{"tool_type"}, ObjectIds: []string{string(toolType)}}); err != nil {
			return err
		}
		return s.queries.AdvanceCatalog(ctx, tx)
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return news, err
}
