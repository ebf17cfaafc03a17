package quota

import (
	"fmt"
	"time"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

// The bounds of rules. Within them, counting in whole milliseconds and in doubles stays exact.
const (
	MaxLimit           = 1_000_000_000_000
	MinFixed           = time.Second
	MaxFixed           = 366 * 24 * time.Hour
	MaxRefillPerSecond = 1_000_000
)

// Validate returns what is wrong with a rule, with paths in it.
func (r *Rule) Validate() []fault.Violation {
	c := &checks{}
	c.check("quota_id", id.Valid(string(r.ID)), "must be an identifier")
	c.check("scope", r.Scope == ScopeUser || r.Scope == ScopeNode || r.Scope == ScopeSystem, "no such scope")
	c.check("limit", 0 <= r.Limit && r.Limit <= MaxLimit, "must be 0 to %d", int64(MaxLimit))
	c.check("on_outage", r.OnOutage == OutageDeny || r.OnOutage == OutageAllow || r.OnOutage == OutageLocalShare, "no such value")
	c.check("on_abandoned", r.OnAbandoned == AbandonedGiveBack || r.OnAbandoned == AbandonedCharge, "no such value")
	c.check("warn_at", 0 < r.WarnAt && r.WarnAt <= 1, "must be more than 0, and at most 1")
	switch r.Unit {
	case UnitConcurrentCalls:
		c.check("window", r.Window == Window{}, "calls at a time are not counted over a time")
		c.check("on_abandoned", r.OnAbandoned != AbandonedCharge, "a call that is over holds nothing that could be charged")
	case UnitCalls, UnitTokens:
		c.checkWindow(r)
	default:
		c.check("unit", false, "no such unit")
	}
	return c.violations
}

func (c *checks) checkWindow(r *Rule) {
	kinds := 0
	if w := r.Window; w.Fixed != 0 {
		kinds++
		c.check("window.fixed", MinFixed <= w.Fixed && w.Fixed <= MaxFixed, "must be 1 second to 366 days")
		c.check("window.fixed", w.Fixed%time.Millisecond == 0, "must be whole milliseconds")
	}
	if calendar := r.Window.Calendar; calendar != nil {
		kinds++
		c.check("window.calendar.period", calendar.Period == PeriodDay || calendar.Period == PeriodWeek || calendar.Period == PeriodMonth, "no such period")
		if _, err := loadZone(calendar.Zone); err != nil {
			c.check("window.calendar.time_zone", false, "%v", err)
		}
	}
	if bucket := r.Window.TokenBucket; bucket != nil {
		kinds++
		c.checkBucket(bucket, r.Limit)
	}
	c.check("window", kinds == 1, "calls and tokens are counted over one window")
}

func (c *checks) checkBucket(b *TokenBucket, limit int64) {
	const refill = "window.token_bucket.refill_per_second"
	c.check("window.token_bucket.burst", 1 <= b.Burst && b.Burst <= MaxLimit, "must be 1 to %d", int64(MaxLimit))
	c.check("limit", limit == b.Burst, "is the token bucket's burst: leave it out")
	c.check(refill, 0 < b.RefillPerSecond && b.RefillPerSecond <= MaxRefillPerSecond, "must be more than 0, and at most %d", MaxRefillPerSecond)
	c.check(refill, float64(b.Burst) <= b.RefillPerSecond*MaxFixed.Seconds(), "an empty bucket must be full again within 366 days")
}

// checks collects violations, one of each field: the first, which names the plainer rule.
type checks struct{ violations []fault.Violation }

func (c *checks) check(field string, holds bool, format string, arguments ...any) {
	if holds {
		return
	}
	for _, v := range c.violations {
		if v.Field == field {
			return
		}
	}
	c.violations = append(c.violations, fault.Violation{Field: field, Description: fmt.Sprintf(format, arguments...)})
}
