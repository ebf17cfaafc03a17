package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// historyNodeRetention is how long after its last batch a node may repeat it.
const historyNodeRetention = 30 * 24 * time.Hour

// AddHistory adds a batch of a node's to the history, or nothing if it was added before.
func (s *Store) AddHistory(ctx context.Context, node string, batch int64, parts []quota.Usage) error {
	var rows db.AddHistoryParams
	for _, p := range parts {
		rows.Days, rows.UserIds, rows.ToolIds = append(rows.Days, p.Day), append(rows.UserIds, string(p.User)), append(rows.ToolIds, string(p.Tool))
		rows.Calls, rows.Tokens = append(rows.Calls, p.Calls), append(rows.Tokens, p.Tokens)
	}
	// Not write: nobody follows the history, so nobody is told.
	return translate(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if batch == 1 { // once in a process's life
			if err := s.queries.ForgetHistoryNodes(ctx, tx, time.Now().Add(-historyNodeRetention)); err != nil {
				return err
			}
		}
		raised, err := s.queries.RaiseHistoryBatch(ctx, tx, db.RaiseHistoryBatchParams{NodeID: node, Batch: batch})
		if err != nil || raised == 0 {
			return err
		}
		return s.queries.AddHistory(ctx, tx, rows)
	}))
}

// History returns what was used after a day, user and tool, at most so many, in their order, to a last day. Without a
// user or a tool it is everybody's or of all tools.
func (s *Store) History(ctx context.Context, user id.User, tool id.Tool, after quota.Usage, last time.Time, atMost int32) ([]quota.Usage, error) {
	var rows []db.QuotaHistory
	var err error
	switch afterUser, afterTool := string(after.User), string(after.Tool); {
	case user != "" && tool != "":
		rows, err = s.queries.ListHistoryOfUserAndTool(ctx, s.pool, db.ListHistoryOfUserAndToolParams{
			UserID: string(user), ToolID: string(tool), AfterDay: after.Day, AfterToolID: afterTool, LastDay: last, AtMost: atMost})
	case user != "":
		rows, err = s.queries.ListHistoryOfUser(ctx, s.pool, db.ListHistoryOfUserParams{
			UserID: string(user), AfterDay: after.Day, AfterToolID: afterTool, LastDay: last, AtMost: atMost})
	case tool != "":
		rows, err = s.queries.ListHistoryOfTool(ctx, s.pool, db.ListHistoryOfToolParams{
			ToolID: string(tool), AfterDay: after.Day, AfterUserID: afterUser, LastDay: last, AtMost: atMost})
	default:
		rows, err = s.queries.ListHistory(ctx, s.pool, db.ListHistoryParams{
			AfterDay: after.Day, AfterUserID: afterUser, AfterToolID: afterTool, LastDay: last, AtMost: atMost})
	}
	if err != nil {
		return nil, translate(err)
	}
	var list []quota.Usage
	for _, row := range rows {
		list = append(list, quota.Usage{Day: row.Day, User: id.User(row.UserID), Tool: id.Tool(row.ToolID), Calls: row.Calls, Tokens: row.Tokens})
	}
	return list, nil
}
