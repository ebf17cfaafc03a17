package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// RefuseCall writes into the audit log that a risky call was refused. There is no other change that it belongs to.
func (s *Store) RefuseCall(ctx context.Context, r audit.Refusal) error {
	return translate(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return s.addAuditEntries(ctx, tx, []audit.Entry{audit.OfRefusal(r, caller.From(ctx))})
	}))
}

// AddOutcomes adds the outcomes of calls that have none yet, and joins those that went well with the searches that led to
// them.
func (s *Store) AddOutcomes(ctx context.Context, outcomes []call.Outcome) error {
	outcomes = slices.Clone(outcomes)
	slices.SortStableFunc(outcomes, func(a, b call.Outcome) int { return cmp.Compare(a.Call, b.Call) })
	var p db.AddOutcomesParams
	for i := range outcomes {
		o := &outcomes[i]
		p.CallIds, p.ChatIds, p.UserIds = append(p.CallIds, string(o.Call)), append(p.ChatIds, string(o.Chat)), append(p.UserIds, string(o.User))
		p.ToolIds, p.Functions, p.Outcomes = append(p.ToolIds, string(o.Tool)), append(p.Functions, o.Function), append(p.Outcomes, string(o.Outcome))
		p.LatenciesMs, p.Tokens = append(p.LatenciesMs, o.Latency.Milliseconds()), append(p.Tokens, o.Tokens)
		p.ReportTimes = append(p.ReportTimes, stored(o.Time))
		p.Turns, p.RoutingModes = append(p.Turns, o.Turn), append(p.RoutingModes, string(o.Mode))
	}
	return translate(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := s.queries.AddOutcomes(ctx, tx, p); err != nil {
			return err
		}
		return s.queries.AddSearchUses(ctx, tx, p.CallIds)
	}))
}
