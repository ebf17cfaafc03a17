package health

import "time"

// Policy is when a subject is put aside, and for how long.
type Policy struct {
	// FailThreshold is after how many transport failures in a row; at least 1.
	FailThreshold int
	// Cooldown is for how long at first. Each time that a probe fails it doubles, up to maxGrowth times this.
	Cooldown time.Duration
	// ProbeLease is how long the report of a probe is waited for. Then another call is let through.
	ProbeLease time.Duration
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
