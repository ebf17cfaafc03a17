// Package quota decides how often tools may be called. Rules say how many units (calls, tokens, calls at a
// time) may be taken over which time by whom; a Ledger holds the counters and decides each request in one step.
//
// A request touches every rule of a tool and of its type: it takes from all of them or from none.
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
