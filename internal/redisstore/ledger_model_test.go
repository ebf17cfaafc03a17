package redisstore

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// model is what the ledger should say: the same rules written down plainly, one list of what was charged for each.
type model struct {
	rules      []*modelRule
	operations map[string]*modelOperation
}

type modelRule struct {
	quota.Limited
	spent  []spending
	leases []modelLease
	empty  *big.Rat // of a bucket: when it will be full again, in seconds
}

type spending struct {
	at    time.Time
	units int64
}

type modelLease struct {
	operation string
	units     int64
	end       time.Time
}

type modelOperation struct {
	state  byte // T taken, H held, C committed, R released
	rules  []int
	n      int64 // calls; tokens are ten times as many
	tokens int64 // committed
	expire time.Time
}

func (r *modelRule) clone() *modelRule {
	c := *r
	c.spent, c.leases = slices.Clone(r.spent), slices.Clone(r.leases)
	return &c
}

func (r *modelRule) keep() bool { return r.OnAbandoned == quota.AbandonedCharge }

// settle does what happened until now to reservations that nobody settled.
func (r *modelRule) settle(now time.Time) {
	slices.SortStableFunc(r.leases, func(a, b modelLease) int { return a.end.Compare(b.end) })
	for len(r.leases) > 0 && !r.leases[0].end.After(now) {
		if r.keep() {
			r.charge(r.leases[0].end, r.leases[0].units)
		}
		r.leases = r.leases[1:]
	}
}

func (r *modelRule) charge(at time.Time, units int64) {
	switch {
	case r.Unit == quota.UnitConcurrentCalls:
	case r.Window.TokenBucket != nil:
		if t := seconds(at); r.empty.Cmp(t) < 0 {
			r.empty = t
		}
		r.empty = new(big.Rat).Add(r.empty, r.refill(units))
	default:
		r.spent = append(r.spent, spending{at, units})
	}
}

func (r *modelRule) refund(now, at time.Time, units int64) {
	if r.Window.TokenBucket != nil {
		r.empty = new(big.Rat).Sub(r.empty, r.refill(min(units, r.used(now))))
		return
	}
	for i := range r.spent {
		if s := &r.spent[i]; r.together(s.at, at) {
			back := min(units, s.units)
			s.units -= back
			units -= back
		}
	}
}

// together tells whether two instants are one to the window.
func (r *modelRule) together(a, b time.Time) bool {
	if r.Window.Calendar != nil {
		x, _ := r.Window.Period(a)
		y, _ := r.Window.Period(b)
		return x.Equal(y)
	}
	return r.Window.Slot(a) == r.Window.Slot(b)
}

func (r *modelRule) refill(units int64) *big.Rat {
	rate := new(big.Rat).SetFloat64(r.Window.TokenBucket.RefillPerSecond)
	return new(big.Rat).Quo(new(big.Rat).SetInt64(units), rate)
}

func (r *modelRule) counts(s spending, now time.Time) bool {
	if r.Window.Calendar != nil {
		return r.together(s.at, now)
	}
	return r.Window.Slot(s.at) >= r.Window.Slot(now)-quota.Slots
}

func (r *modelRule) used(now time.Time) (used int64) {
	if r.Window.TokenBucket != nil {
		missing := new(big.Rat).Sub(r.empty, seconds(now))
		missing.Quo(missing, r.refill(1))
		if missing.Sign() <= 0 {
			return 0
		}
		up := new(big.Int).Add(missing.Num(), new(big.Int).Sub(missing.Denom(), big.NewInt(1)))
		return up.Div(up, missing.Denom()).Int64()
	}
	for _, s := range r.spent {
		if r.counts(s, now) {
			used += s.units
		}
	}
	return used
}

func (r *modelRule) held() (held int64) {
	for _, l := range r.leases {
		held += l.units
	}
	return held
}

func (r *modelRule) fits(now time.Time, units int64) bool {
	return r.used(now)+r.held()+units <= r.Own
}

// reset is when used units begin to come back, of windows other than buckets.
func (r *modelRule) reset(now time.Time) (first time.Time) {
	for _, s := range r.spent {
		if s.units == 0 || !r.counts(s, now) {
			continue
		}
		back := r.Window
		var at time.Time
		if r.Window.Calendar != nil {
			_, at = back.Period(s.at)
		} else {
			at = back.SlotStart(back.Slot(s.at) + quota.Slots + 1)
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// release takes a lease away, and tells whether it was still held.
func (r *modelRule) release(operation string) bool {
	before := len(r.leases)
	r.leases = slices.DeleteFunc(r.leases, func(l modelLease) bool { return l.operation == operation })
	return len(r.leases) < before
}

// take returns the rules that deny.
func (m *model) take(now time.Time, name string, chosen []int, n int64, lease time.Duration) (denied []int) {
	cost := quota.Cost{Calls: n, Tokens: 10 * n}
	for _, i := range chosen {
		r := m.rules[i]
		r.settle(now)
		if !r.Shadow && !r.fits(now, cost.In(r.Unit)) {
			denied = append(denied, i)
		}
	}
	if denied != nil {
		return denied
	}
	o := &modelOperation{state: 'T', rules: chosen, n: n, expire: now.Add(lease)}
	if lease > 0 {
		o.state = 'H'
	}
	m.operations[name] = o
	for _, i := range chosen {
		r := m.rules[i]
		if lease > 0 {
			r.leases = append(r.leases, modelLease{name, cost.In(r.Unit), o.expire})
		} else {
			r.charge(now, cost.In(r.Unit))
		}
	}
	return nil
}

func (m *model) settle(now time.Time, name string, state byte, tokens int64) {
	o := m.operations[name]
	o.state, o.tokens = state, tokens
	for _, i := range o.rules {
		r := m.rules[i]
		r.settle(now)
		cost := quota.Cost{Calls: o.n, Tokens: tokens}.In(r.Unit)
		if state == 'R' {
			cost = 0
		}
		reserved := quota.Cost{Calls: o.n, Tokens: 10 * o.n}.In(r.Unit)
		if r.release(name) || !r.keep() {
			r.charge(now, cost)
		} else if cost > reserved {
			r.charge(now, cost-reserved)
		} else {
			r.refund(now, o.expire, reserved-cost)
		}
	}
}

func (m *model) names(states string) (names []string) {
	for name, o := range m.operations {
		if slices.Contains([]byte(states), o.state) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names
}

func seconds(at time.Time) *big.Rat { return big.NewRat(at.UnixMicro(), 1_000_000) }
