// Package quota decides how often tools may be called. Rules say how many units (calls, tokens, calls at a
// time) may be taken over which time by whom; a Ledger holds the counters and decides each request in one step.
//
// A request touches every rule of a tool and of its type: it takes from all of them or from none. The Gate asks who
// knows the counters, the cheapest first, and gives back in reverse when a later one denies:
//
//	         NODE rules          SYSTEM rules            USER rules, and SYSTEM
//	         of this node        of what is consumed     rules of what is reserved
//
//	          Memory               Slices                    Ledger
//	         (no trip)       (a trip now and then)     (one trip: one script)
//	             │                    │                         │
//	consume ──▶ take ─────admits──▶ spend ──────admits──────▶ take ──▶ admitted
//	reserve ──▶ take ─────admits────────────────────────────▶ take ──▶ admitted
//	             │                    │                         │
//	          denies               denies                    denies
//	             │                    │                         │
//	             │        give back ◀─┤             give back ◀─┤
//	             │         NODE       │        SYSTEM, then NODE│
//	             ▼                    ▼                         ▼
//	           denied               denied                    denied
//
// The Ledger comes last since it alone cannot take anything back. Meanwhile others may be denied what will be given
// back, but nobody is admitted over a limit. Settling goes the other way: the Ledger first, which knows whether
// another node has settled already, then this node's places.
//
// # Repetitions
//
// What was admitted is remembered under the operation's id, and not charged again: by the Ledger for all nodes, and by
// the node for what it took in front. So an operation whose rules are all NODE or SYSTEM ones is known to its
// node only. If the Ledger says that it knows an operation that is new to this node, another node has taken in front
// for it, and this one gives back.
//
// If the Ledger's answer is lost, nobody knows whether it took. What was taken in front then stays so, for the
// repetition to find: it is not charged again, and not forgotten if the Ledger did take. If the Ledger was not asked,
// because it did not answer others, all is given back.
//
// # Outages
//
// When counters cannot be reached each rule's OnOutage decides: one DENY suffices to deny. What ALLOW and LOCAL_SHARE
// admit is remembered by the node, which also settles it; the Ledger never learns of it. A breaker keeps callers
// from waiting for a Ledger that does not answer.
package quota

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

// Scope is whose calls a rule counts together.
type Scope string

// The scopes.
const (
	ScopeUser   Scope = "USER"   // each user's, on all nodes together
	ScopeNode   Scope = "NODE"   // all users', on one node
	ScopeSystem Scope = "SYSTEM" // all users', on all nodes
)

// Unit is what a rule counts.
type Unit string

// The units.
const (
	UnitCalls           Unit = "CALLS"
	UnitTokens          Unit = "TOKENS"
	UnitConcurrentCalls Unit = "CONCURRENT_CALLS"
)

// OnOutage is what a rule says while its counters cannot be reached.
type OnOutage string

// What rules say.
const (
	OutageDeny       OnOutage = "DENY"
	OutageAllow      OnOutage = "ALLOW"
	OutageLocalShare OnOutage = "LOCAL_SHARE"
)

// OnAbandoned is what becomes of a reservation that nobody settles.
type OnAbandoned string

// What becomes of it.
const (
	AbandonedGiveBack OnAbandoned = "GIVE_BACK"
	AbandonedCharge   OnAbandoned = "CHARGE"
)

// Rule is a rule of a tool or of a tool type.
type Rule struct {
	ID          id.Quota    `json:"quota_id"`
	Scope       Scope       `json:"scope"`
	Unit        Unit        `json:"unit"`
	Limit       int64       `json:"limit"`
	Window      Window      `json:"window,omitzero"` // zero: CONCURRENT_CALLS
	OnOutage    OnOutage    `json:"on_outage"`
	OnAbandoned OnAbandoned `json:"on_abandoned"`
	Shadow      bool        `json:"shadow"`
	WarnAt      float64     `json:"warn_at"` // share of the limit
}

// Window is over what time a rule counts. One field is set.
type Window struct {
	Fixed       time.Duration `json:"fixed,omitempty"` // slides
	Calendar    *Calendar     `json:"calendar,omitempty"`
	TokenBucket *TokenBucket  `json:"token_bucket,omitempty"`
}

// Calendar is days, weeks or months in a time zone.
type Calendar struct {
	Period Period `json:"period"`
	Zone   string `json:"time_zone"` // empty: UTC
}

// Period is a part of the calendar.
type Period string

// The periods.
const (
	PeriodDay   Period = "DAY"
	PeriodWeek  Period = "WEEK" // from Monday
	PeriodMonth Period = "MONTH"
)

// TokenBucket refills steadily.
type TokenBucket struct {
	RefillPerSecond float64 `json:"refill_per_second"`
	Burst           int64   `json:"burst"`
}

// Cost is what a request takes.
type Cost struct {
	Calls  int64
	Tokens int64
}

// State is how a rule stands.
type State struct {
	Rule      id.Quota
	Limit     int64
	Used      int64
	Held      int64
	Remaining int64
	Reset     time.Time // zero: nothing is used
	// RetryAfter is how long to wait until the request that was denied could pass, if nobody takes or settles
	// anything meanwhile; only of rules that denied. Negative: it asks for more than the limit.
	RetryAfter time.Duration
	ByOutage   bool
}
