package grpcserver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// reportSpan is what is reported on where nobody says.
const reportSpan = 24 * time.Hour

// spanned is a request that names a span of time.
type spanned interface {
	GetStartTime() *timestamppb.Timestamp
	GetEndTime() *timestamppb.Timestamp
}

// spanOf returns the span of time that a request means.
func spanOf(r spanned, defaultSpan time.Duration, now time.Time) (start, end time.Time, err error) {
	end = now
	for field, t := range map[string]*timestamppb.Timestamp{"start_time": r.GetStartTime(), "end_time": r.GetEndTime()} {
		if t != nil && t.CheckValid() != nil {
			return start, end, fault.Invalid(fault.Violation{Field: field, Description: "is no time"})
		}
	}
	if r.GetEndTime() != nil {
		end = r.GetEndTime().AsTime()
	}
	start = end.Add(-defaultSpan)
	if r.GetStartTime() != nil {
		start = r.GetStartTime().AsTime()
	}
	if !start.Before(end) {
		return start, end, fault.Invalid(fault.Violation{Field: "start_time", Description: "must be before end_time, which is now unless it is set"})
	}
	return start, end, nil
}

// GetDiscoveryReport implements the RPC.
func (s *discoveryServer) GetDiscoveryReport(ctx context.Context, r *toolgrantv1.GetDiscoveryReportRequest) (*toolgrantv1.GetDiscoveryReportResponse, error) {
	now := s.now()
	start, end, err := spanOf(r, reportSpan, now)
	if err != nil {
		return nil, err
	}
	reports, err := s.store.DiscoveryReports(ctx, start, end, now.Add(-learning.Settle))
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.GetDiscoveryReportResponse{StartTime: timestamppb.New(start), EndTime: timestamppb.New(end)}
	for i := range reports {
		if p := reportToProto(&reports[i]); r.GetMode() == toolgrantv1.RoutingMode_ROUTING_MODE_UNSPECIFIED || r.GetMode() == p.GetMode() {
			response.Reports = append(response.Reports, p)
		}
	}
	return response, nil
}

func reportToProto(r *learning.Report) *toolgrantv1.DiscoveryReport {
	p := &toolgrantv1.DiscoveryReport{Mode: routingModeToProto(r.Mode),
		Searches: r.Searches, SearchesWithoutMatches: r.WithoutMatches, SearchRetryCount: r.Retries, Narrowings: r.Narrowings,
		RoutedCalls: r.Routed, Top1Hits: r.Top1, Top3Hits: r.Top3, RouteTop1Hit: rate(r.Top1, r.Routed), RouteTop3Hit: rate(r.Top3, r.Routed),
		Enabled: r.Enabled, EnabledUnused: r.Unused, EnableUnusedRate: rate(r.Unused, r.Enabled),
		Calls: r.Calls, FailedCalls: r.Failed, ToolCallErrorRate: rate(r.Failed, r.Calls), Turns: r.Turns, AverageToolSteps: rate(r.Calls, r.Turns),
		MissedCalls: r.Missed, MissedRate: rate(r.Missed, r.Routed)}
	if r.Mode == routing.Hybrid && r.Narrowings > 0 {
		p.ShadowDifference = &r.LeftOut
	}
	return p
}

// rate is nil where there is nothing to divide by.
func rate(part, of int64) *float64 {
	share, ok := learning.Rate(part, of)
	if !ok {
		return nil
	}
	return &share
}
