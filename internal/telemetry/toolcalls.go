package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/health"
)

// toolCalls counts what is decided about calls of tools, and how they went. All its labels are of few values, and looked
// up before they are needed.
type toolCalls struct {
	decisions map[decision]prometheus.Counter
	reports   map[reported]prometheus.Counter
}

type decision struct {
	decision call.Decision
	reason   call.Reason
	source   string
}

type reported struct {
	outcome health.Outcome
	source  string
}

// sources are the kinds of tools; none, as long as it is not known which tool is meant.
var sources = []string{"", string(catalog.SourceNative), string(catalog.SourceInternalMCP), string(catalog.SourceExternalMCP)}

// stages tells which stage of the pipeline finds a reason.
var stages = map[call.Reason]string{
	call.ReasonNone:                 "allowed",
	call.ReasonUnknownSource:        "source",
	call.ReasonUnknownFunction:      "source",
	call.ReasonFunctionElsewhere:    "source",
	call.ReasonAmbiguousFunction:    "source",
	call.ReasonNotEnabled:           "effective",
	call.ReasonWithheld:             "effective",
	call.ReasonPreconditionFailed:   "precondition",
	call.ReasonBadArguments:         "arguments",
	call.ReasonNotEnabledExplicitly: "risk",
	call.ReasonApprovalRequired:     "risk",
	call.ReasonApprovalDenied:       "risk",
	call.ReasonApprovalExpired:      "risk",
	call.ReasonUnhealthy:            "health",
	call.ReasonQuotaExhausted:       "quota",
	call.ReasonQuotaUnavailable:     "quota",
}

func decisionOf(r call.Reason) call.Decision {
	switch r {
	case call.ReasonNone:
		return call.Allow
	case call.ReasonApprovalRequired:
		return call.NeedsApproval
	}
	return call.Deny
}

func newToolCalls(registry prometheus.Registerer) *toolCalls {
	decided := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "call_decisions_total",
		Help: "Calls that AuthorizeCall decided about, by the stage that refused, its reason, and the source of the tool's type; dry runs and repetitions too."},
		[]string{"decision", "stage", "reason", "source"})
	told := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "call_reports_total",
		Help: "Calls that were reported, each once, by outcome and the source of the tool's type."}, []string{"outcome", "source"})
	registry.MustRegister(decided, told)
	c := &toolCalls{decisions: map[decision]prometheus.Counter{}, reports: map[reported]prometheus.Counter{}}
	for _, source := range sources {
		label := strings.ToLower(source)
		for reason, stage := range stages {
			d := decisionOf(reason)
			c.decisions[decision{d, reason, source}] = decided.WithLabelValues(strings.ToLower(string(d)), stage, strings.ToLower(string(reason)), label)
		}
		for _, o := range []health.Outcome{health.Success, health.Error, health.Timeout, health.Unreachable, health.Cancelled, health.BadArguments} {
			c.reports[reported{o, source}] = told.WithLabelValues(strings.ToLower(string(o)), label)
		}
	}
	return c
}

// CallDecided counts a decision about a call of a tool of some source; empty: of no tool.
func (m *Metrics) CallDecided(d call.Decision, reason call.Reason, source string) {
	if counter := m.toolCalls.decisions[decision{d, reason, source}]; counter != nil {
		counter.Inc()
	}
}

// CallReported counts a report of a call of a tool of some source.
func (m *Metrics) CallReported(outcome health.Outcome, source string) {
	if counter := m.toolCalls.reports[reported{outcome, source}]; counter != nil {
		counter.Inc()
	}
}
