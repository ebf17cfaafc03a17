package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// DiscoveryReports implements learning.ReportSource, in one snapshot.
func (s *Store) DiscoveryReports(ctx context.Context, start, end, settled time.Time) ([]learning.Report, error) {
	byMode := map[string]*learning.Report{}
	of := func(mode string) *learning.Report {
		if byMode[mode] == nil {
			byMode[mode] = &learning.Report{Mode: routing.Mode(mode)}
		}
		return byMode[mode]
	}
	err := s.readSnapshot(ctx, func(tx pgx.Tx) error {
		clear(byMode)
		searches, err := s.queries.ReportSearches(ctx, tx, db.ReportSearchesParams{StartTime: start, EndTime: end})
		if err != nil {
			return err
		}
		for _, row := range searches {
			r := of(row.RoutingMode)
			r.Searches, r.WithoutMatches, r.Retries = row.Searches, row.WithoutMatches, row.Retries
		}
		narrowings, err := s.queries.ReportNarrowings(ctx, tx, db.ReportNarrowingsParams{StartTime: start, EndTime: end})
		if err != nil {
			return err
		}
		for _, row := range narrowings {
			r := of(row.RoutingMode)
			r.Narrowings, r.LeftOut = row.Narrowings, row.LeftOut
		}
		routed, err := s.queries.ReportRouted(ctx, tx, db.ReportRoutedParams{StartTime: start, EndTime: end})
		if err != nil {
			return err
		}
		for _, row := range routed {
			r := of(row.RoutingMode)
			r.Routed, r.Top1, r.Top3, r.Missed = row.Routed, row.Top1, row.Top3, row.Missed
		}
		enabled, err := s.queries.ReportEnabled(ctx, tx, db.ReportEnabledParams{StartTime: start, EndTime: end, SettleTime: settled})
		if err != nil {
			return err
		}
		for _, row := range enabled {
			r := of(row.RoutingMode)
			r.Enabled, r.Unused = row.Enabled, row.Unused
		}
		calls, err := s.queries.ReportCalls(ctx, tx, db.ReportCallsParams{StartTime: start, EndTime: end})
		for _, row := range calls {
			r := of(row.RoutingMode)
			r.Calls, r.Failed, r.Turns = row.Calls, row.Failed, row.Turns
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	reports := make([]learning.Report, 0, len(byMode))
	for _, r := range byMode {
		reports = append(reports, *r)
	}
	learning.SortReports(reports)
	return reports, nil
}

// CoreEvidence implements learning.ReportSource.
func (s *Store) CoreEvidence(ctx context.Context, start, end time.Time) (learning.CoreEvidence, error) {
	rows, err := s.queries.CoreEvidence(ctx, s.pool, db.CoreEvidenceParams{StartTime: start, EndTime: end})
	if err != nil {
		return learning.CoreEvidence{}, translate(err)
	}
	var e learning.CoreEvidence
	for _, row := range rows {
		e.Users, e.Chats = row.AllUsers, row.AllChats
		e.Tools = append(e.Tools, learning.ToolEvidence{Tool: id.Tool(row.ToolID), Users: row.Users, Chats: row.Chats, Days: row.Days, Calls: row.Calls,
			Failed: row.Failed, Searches: row.Searches})
	}
	return e, nil
}
