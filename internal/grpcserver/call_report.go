package grpcserver

import (
	"context"
	"strconv"
	gostrings "strings"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// lookAgain is after how long a call is looked for again that nobody knows: the node that allowed it may be about to
// tell the others.
var lookAgain = [...]time.Duration{20 * time.Millisecond, 100 * time.Millisecond}

// report is what is told of a call.
type report struct {
	call    id.Call
	outcome health.Outcome
	latency time.Duration
	tokens  *int64
}

// neverRan tells whether the call did nothing, as far as its caller knows, so that it costs nothing.
func (r *report) neverRan() bool {
	switch r.outcome {
	case health.Cancelled, health.Unreachable, health.BadArguments:
		return r.tokens == nil || *r.tokens == 0
	}
	return false
}

// text tells reports apart: by outcome and cost.
func (r *report) text() string {
	if r.tokens == nil {
		return string(r.outcome)
	}
	return string(r.outcome) + " " + strconv.FormatInt(*r.tokens, 10)
}

// ReportCall implements the RPC. Quotas are settled first, which only one of several different reports can; then it is
// written down how the call was reported; and only the first who does tells anybody else. So whoever got no answer
// repeats all, and nothing counts twice.
func (s *callServer) ReportCall(ctx context.Context, p *toolgrantv1.ReportCallRequest) (*toolgrantv1.ReportCallResponse, error) {
	r := &report{call: id.Call(p.GetCallId()), outcome: health.Outcome(gostrings.TrimPrefix(p.GetOutcome().String(), "CALL_OUTCOME_")),
		latency: p.GetLatency().AsDuration(), tokens: p.Tokens}
	record, settled, err := s.settle(ctx, r)
	if err != nil {
		return nil, err
	}
	repeated, err := s.Memory.Report(ctx, record, r.text())
	if err != nil {
		return nil, err
	}
	repeated = repeated || settled.Repeated && s.longAgo(record, settled)
	if !repeated {
		s.tellHealth(record, r)
		if s.Reported != nil {
			s.Reported(r.outcome, s.sourceOf(record.Tool))
		}
	}
	if s.Outcomes != nil {
		s.Outcomes.Record(call.Outcome{Call: record.Call, Chat: record.Chat, User: record.User, Tool: record.Tool, Function: record.Function,
			Outcome: r.outcome, Latency: r.latency, Tokens: r.cost(record), Time: s.now(),
			Turn: record.Turn, Mode: record.Mode})
	}
	return &toolgrantv1.ReportCallResponse{Rules: statesToProto(s.replica.World(), settled.States), RepeatedReport: repeated}, nil
}

// longAgo tells whether a call was allowed so long ago that its report may be forgotten while its settlement, which is
// remembered for longer, is not. Before that, only the memory of reports tells who is the first: of several who report at
// once, one settles, and another may be the first to write down how the call was reported.
func (s *callServer) longAgo(of *call.Record, settled quota.Decision) bool {
	return s.now().After(settled.Expire.Add(call.RememberReported - of.Lease))
}

// cost is how many tokens a call cost.
func (r *report) cost(of *call.Record) int64 {
	switch {
	case r.neverRan():
		return 0
	case r.tokens != nil:
		return *r.tokens
	}
	return of.Tokens
}

// settle finds a call and settles its quotas, if it has any.
func (s *callServer) settle(ctx context.Context, r *report) (*call.Record, quota.Decision, error) {
	for _, wait := range append(lookAgain[:], 0) {
		record, err := s.Memory.Find(ctx, r.call)
		if err != nil {
			return nil, quota.Decision{}, err
		}
		if record != nil && record.Held == call.HeldNowhere {
			return record, quota.Decision{}, nil
		}
		d, err := s.settleQuotas(ctx, r)
		switch f, _ := fault.As(err); {
		case err == nil && record == nil:
			record, err = call.DecodeRecord(r.call, d.Settled.Note)
			return record, d, err
		case err == nil:
			return record, d, nil
		case f == nil || f.Kind != fault.NotFound:
			return nil, d, err
		case record != nil:
			// Another node holds what it has of scope NODE, and Redis may have lost the rest: it runs out with the lease.
			return record, quota.Decision{}, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, d, ctx.Err()
		}
	}
	return nil, quota.Decision{}, call.Unknown(r.call)
}

func (s *callServer) settleQuotas(ctx context.Context, r *report) (d quota.Decision, err error) {
	if r.neverRan() {
		d, err = s.gate.Release(ctx, operationOf(r.call))
	} else {
		d, err = s.gate.Commit(ctx, operationOf(r.call), r.tokens)
		if of := d.Settled; err == nil && !d.Repeated {
			s.history.Record(of.User, of.Tool, of.Cost.Calls, of.Cost.Tokens)
		}
	}
	if f, ok := fault.As(err); ok && (f.Reason == fault.ReasonOperationSettled || f.Reason == fault.ReasonRequestIDReused) {
		err = call.Reported(r.call)
	}
	return d, err
}

// tellHealth tells how the tool did, and its server.
func (s *callServer) tellHealth(of *call.Record, r *report) {
	told := health.Report{Call: r.call, Outcome: r.outcome, Latency: r.latency}
	s.Health.Report(health.Subject{Tool: of.Tool}, told)
	w := s.replica.World()
	if n, ok := w.Catalog.Number(of.Tool); ok {
		if t := w.Catalog.Type(n); t.MCPServer != "" && t.Source != catalog.SourceNative {
			s.Health.Report(health.Subject{Server: t.MCPServer}, told)
		}
	}
}
