package health

import (
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// Policy is when a subject is put aside, and for how long.
type Policy struct {
	// FailThreshold is after how many transport failures in a row; at least 1.
	FailThreshold int
	// Cooldown is for how long at first. Each time that a probe fails it doubles, up to maxGrowth times this.
	Cooldown time.Duration
	// ProbeLease is how long the report of a probe is waited for. Then another call is let through.
	ProbeLease time.Duration
}

// Policies returns what tells the policy of a subject: a tool's own where it has one, else this one.
func (p Policy) Policies(tools func() *catalog.Snapshot) func(Subject) Policy {
	return func(s Subject) Policy {
		if s.Tool == "" {
			return p
		}
		snapshot := tools()
		number, ok := snapshot.Number(s.Tool)
		if !ok {
			return p
		}
		own, of := p, snapshot.Tool(number).Health
		if of.FailThreshold > 0 {
			own.FailThreshold = int(of.FailThreshold)
		}
		if of.CooldownMs > 0 {
			own.Cooldown = time.Duration(of.CooldownMs) * time.Millisecond
		}
		return own
	}
}

// maxGrowth is how many times as long as at first a cool-down becomes.
const maxGrowth = 16

// jitter is the random part of a cool-down, at most: it keeps all that failed together from being probed together.
const jitter = 0.2

// cooldown is for how long a subject is put aside that was found to fail so often in a row. Chance is from [0, 1).
func (p Policy) cooldown(opened int, chance float64) time.Duration {
	growth := min(1<<min(opened-1, 30), maxGrowth)
	d := time.Duration(growth) * p.Cooldown
	return (d + time.Duration(jitter*chance*float64(d))).Round(time.Millisecond)
}
