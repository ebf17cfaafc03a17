package grpcserver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/health"
)

// healthServer is the part of CallService that tells how tools do.
type healthServer struct {
	toolgrantv1.UnimplementedCallServiceServer
	board *health.Board
}

func (s *healthServer) ListHealth(_ context.Context, r *toolgrantv1.ListHealthRequest) (*toolgrantv1.ListHealthResponse, error) {
	const list = "health"
	after, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	found := following(s.board.List(), healthKey, after, size+1)
	found, next := closePage(found, size, list, healthKey)
	response, now := &toolgrantv1.ListHealthResponse{NextPageToken: next}, s.board.Now()
	for i := range found {
		response.Health = append(response.Health, healthToProto(&found[i], now))
	}
	return response, nil
}

// healthKey orders as health.Subject.Compare does.
func healthKey(s health.Status) string {
	return s.Subject.Kind() + " " + string(s.Subject.Server) + string(s.Subject.Tool)
}

var breakerStates = map[health.State]toolgrantv1.BreakerState{
	health.Closed:   toolgrantv1.BreakerState_BREAKER_STATE_CLOSED,
	health.Open:     toolgrantv1.BreakerState_BREAKER_STATE_OPEN,
	health.HalfOpen: toolgrantv1.BreakerState_BREAKER_STATE_HALF_OPEN,
}

func healthToProto(s *health.Status, now time.Time) *toolgrantv1.Health {
	r := &s.Record
	p := &toolgrantv1.Health{Score: r.Score(now), Breaker: breakerStates[r.State(now)], FailuresInARow: int32(min(r.Failures, 1<<31-1)),
		RetryTime: timeToProto(r.NextProbe()), ReportTime: timeToProto(r.Reported), Local: s.Local}
	if s.Subject.Server != "" {
		p.Subject = &toolgrantv1.Health_McpServerId{McpServerId: string(s.Subject.Server)}
	} else {
		p.Subject = &toolgrantv1.Health_ToolId{ToolId: string(s.Subject.Tool)}
	}
	if r.Latency > 0 {
		p.Latency = durationpb.New(r.Latency)
	}
	return p
}
