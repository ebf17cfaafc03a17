package quota

import "sync/atomic"

// counts are what a gate counts of its own work.
type counts struct {
	admitted, denied, byOutage, unavailable, near, shadow atomic.Uint64
}

// GateStats is how a gate does. Counts are since the start.
type GateStats struct {
	Admitted    uint64 // operations
	Denied      uint64
	ByOutage    uint64 // admitted or denied without their counters
	Unavailable uint64 // not decided, since counters could not be reached
	Near        uint64 // admitted near a limit
	ShadowOver  uint64 // admitted over the limit of a shadow rule
	Outage      bool   // the counters are not asked, since they did not answer
}

// Stats returns how the gate does.
func (g *Gate) Stats() GateStats {
	c := &g.counts
	return GateStats{Admitted: c.admitted.Load(), Denied: c.denied.Load(), ByOutage: c.byOutage.Load(),
		Unavailable: c.unavailable.Load(), Near: c.near.Load(), ShadowOver: c.shadow.Load(), Outage: g.ledger.givenUp.Load()}
}

func (c *counts) taken(rules []Limited, d *Decision, err error) {
	if err != nil {
		if unavailable(err) {
			c.unavailable.Add(1)
		}
		return
	}
	near, over, byOutage := false, false, false
	for i := range d.States {
		s := &d.States[i]
		byOutage = byOutage || s.ByOutage
		if len(d.States) == len(rules) {
			r := &rules[i]
			near = near || r.Near(*s)
			over = over || r.Shadow && s.Used+s.Held > s.Limit
		}
	}
	switch {
	case byOutage:
		c.byOutage.Add(1)
	case d.Admitted:
		c.admitted.Add(1)
	default:
		c.denied.Add(1)
	}
	if d.Admitted && near {
		c.near.Add(1)
	}
	if d.Admitted && over {
		c.shadow.Add(1)
	}
}
