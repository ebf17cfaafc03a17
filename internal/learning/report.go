package learning

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolgrant/toolgrant/internal/routing"
)

// Settle is how long what was turned on may wait for its first call before it is said not to be used.
const Settle = 5 * time.Minute

// Report is how well tools were found and used in one routing mode. A route is a search or a narrowing.
type Report struct {
	Mode routing.Mode // empty: calls from before it was kept

	Searches       int64
	WithoutMatches int64 // searches
	Retries        int64 // searches that were in vain, and tried again

	Narrowings int64
	LeftOut    float64 // the share of the effective tools that narrowings left out, on average

	Routed     int64 // calls that went well, by the routes that led to them
	Top1, Top3 int64 // of these, those of the tools that the route found first
	Missed     int64 // of these, those of tools that a narrowing left out

	Enabled int64 // tools that were turned on after a search found them
	Unused  int64 // of these, those that were not called after

	Calls  int64 // but for those that were cancelled
	Failed int64
	Turns  int64 // in which calls were made
}

// Rate divides counts; false: there is nothing to divide by.
func Rate(part, of int64) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(part) / float64(of), true
}

// SortReports orders reports by their modes, that of no known mode last.
func SortReports(reports []Report) {
	place := func(m routing.Mode) int {
		if i := slices.Index(routing.Modes(), m); i >= 0 {
			return i
		}
		return len(routing.Modes())
	}
	slices.SortFunc(reports, func(a, b Report) int { return place(a.Mode) - place(b.Mode) })
}

// ReportSource makes reports of what it holds.
type ReportSource interface {
	// DiscoveryReports reports on a span of time, for each mode in which something happened, in order. What was turned on
	// later than settled is not counted as turned on.
	DiscoveryReports(ctx context.Context, start, end, settled time.Time) ([]Report, error)
	// CoreEvidence tells who called which tools in a span of time.
	CoreEvidence(ctx context.Context, start, end time.Time) (CoreEvidence, error)
}

const (
	// reportSpan is what metrics tell of.
	reportSpan     = time.Hour
	reportInterval = time.Minute
	reportTimeout  = 30 * time.Second
	// reportShare is how much of the time making reports may take.
	reportShare = 20
)

// Reporter makes a report of the last hour again and again, for metrics.
type Reporter struct {
	source ReportSource
	log    *slog.Logger
	latest atomic.Pointer[[]Report]
}

// NewReporter has no report until Run made one.
func NewReporter(source ReportSource, log *slog.Logger) *Reporter {
	return &Reporter{source: source, log: log}
}

// Latest returns the last report; nothing if there is none, or the source is away.
func (r *Reporter) Latest() []Report {
	if latest := r.latest.Load(); latest != nil {
		return *latest
	}
	return nil
}

// Run makes reports until ctx ends: each minute, or more seldom, if that would take more than a twentieth of the time.
func (r *Reporter) Run(ctx context.Context) {
	wait := time.NewTimer(0)
	defer wait.Stop()
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		began := time.Now()
		err := r.make(ctx, began)
		if err != nil && !away && ctx.Err() == nil {
			r.log.Warn("no report of how tools are found can be made; its metrics are missing", "error", err)
		}
		away = err != nil
		wait.Reset(max(reportInterval, reportShare*time.Since(began)))
	}
}

func (r *Reporter) make(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	reports, err := r.source.DiscoveryReports(ctx, now.Add(-reportSpan), now, now.Add(-Settle))
	r.latest.Store(&reports)
	return err
}
