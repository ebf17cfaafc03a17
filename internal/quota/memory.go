package quota

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// rememberConsumed and rememberSettled are how long an operation is known, as in other ledgers.
	rememberConsumed = 15 * time.Minute
	rememberSettled  = 24 * time.Hour
	// maxOperations bounds how many operations are known that consumed, and how many that reserved.
	maxOperations = 1 << 16
	// maxCounters bounds how many counters count something.
	maxCounters = 1 << 17
)

var _ Ledger = (*Memory)(nil)

// Memory is a Ledger in this process: it begins anew with it, counts what is asked of this node only, and uses its
// clock. It decides like the other one, of which it differs in what it remembers: the newest 65,536 operations that
// consumed, up to twice as many, and the newest 65,536 reservations. A reservation that is forgotten runs out.
//
// A USER rule counts each user by himself, others count all users together. Counters that count nothing are dropped.
// While there are more than 131,072 others, whoever would need one more is told that it is unavailable.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	counters *simplelru.LRU[counterKey, *counter]
	consumed *consumed
	reserved *simplelru.LRU[string, *record]
}

// counterKey tells whose units are counted, of what, over which time: a rule of which that changes counts from nothing.
type counterKey struct {
	user     id.User // empty: all
	rule     id.Quota
	unit     Unit
	fixed    time.Duration
	calendar Calendar
	refill   float64
}

func keyOf(user id.User, r *Rule) counterKey {
	k := counterKey{rule: r.ID, unit: r.Unit, fixed: r.Window.Fixed}
	if r.Scope == ScopeUser {
		k.user = user
	}
	if r.Window.Calendar != nil {
		k.calendar = *r.Window.Calendar
	}
	if r.Window.TokenBucket != nil {
		k.refill = r.Window.TokenBucket.RefillPerSecond
	}
	return k
}

// record is what is known of a reservation.
type record struct {
	content
	rules  []Limited
	leases []*lease // of each rule; nil: it held nothing
	expire time.Time
	state  state
	tokens int64 // committed
	forget time.Time
	// others tells that the operation has rules that are counted elsewhere.
	others bool
}

// content tells operations of another content under the same id apart. Rules are not part of it: they may change while
// a caller repeats.
type content struct {
	user  id.User
	tool  id.Tool
	cost  Cost
	lease time.Duration
	note  string
}

func contentOf(o *Operation) content { return content{o.User, o.Tool, o.Cost, o.Lease, o.Note} }

type state int

const (
	taken state = iota // or held
	committed
	released
)

// NewMemory returns an empty ledger with a clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, counters: newLRU[counterKey, *counter](maxCounters),
		consumed: newConsumed(), reserved: newLRU[string, *record](maxOperations)}
}

func newLRU[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return lru
}

// Take consumes or reserves.
func (m *Memory) Take(_ context.Context, o Operation) (Decision, error) { return m.take(o, false) }

// take is Take. others tells that the operation has rules that are counted elsewhere, for settling to know.
func (m *Memory) take(o Operation, others bool) (Decision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	before, known, err := m.known(&o, now)
	if err != nil {
		return Decision{}, err
	}
	counters, err := m.open(o.User, o.Rules, now)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Admitted: true, States: make([]State, len(o.Rules))}
	if known {
		d.Repeated, d.Expire, d.Over = true, before.expire(), before.over()
		d.look(o.Rules, counters)
		return d, nil
	}
	for i, c := range counters {
		if units := o.Cost.In(o.Rules[i].Unit); !o.Rules[i].Shadow && !c.fits(units, o.Rules[i].Own) {
			d.Admitted = false
			d.Denied = append(d.Denied, o.Rules[i].ID)
			d.States[i].RetryAfter = c.wait(units, o.Rules[i].Own, now)
		}
	}
	if d.Admitted {
		if o.Lease > 0 {
			d.Expire = m.hold(&o, counters, others, now)
		} else {
			m.charge(&o, before.key, counters, now)
		}
	}
	d.look(o.Rules, counters)
	return d, nil
}

// charge takes an operation's units.
func (m *Memory) charge(o *Operation, key digest, counters []*counter, now time.Time) {
	for i, c := range counters {
		if units := o.Cost.In(o.Rules[i].Unit); units != 0 {
			c.charged.charge(units, now)
		}
	}
	m.consumed.add(key, o, now)
}

// hold reserves an operation's units, and returns until when.
func (m *Memory) hold(o *Operation, counters []*counter, others bool, now time.Time) time.Time {
	r := &record{content: contentOf(o), rules: o.Rules, leases: make([]*lease, len(counters)), others: others,
		expire: now.Truncate(time.Millisecond).Add(o.Lease), forget: now.Add(o.Lease + rememberSettled)}
	for i, c := range counters {
		if units := o.Cost.In(o.Rules[i].Unit); units != 0 {
			r.leases[i] = c.hold(units, r.expire)
		}
	}
	m.reserved.Add(o.ID, r)
	return r.expire
}

func (d *Decision) look(rules []Limited, counters []*counter) {
	for i, c := range counters {
		s := c.state(&rules[i])
		s.RetryAfter = d.States[i].RetryAfter
		d.States[i] = s
	}
}

// admitted is what was admitted under an operation's id: a reservation, or a consumption.
type admitted struct {
	key         digest  // of the operation, also if nothing was
	reservation *record // nil: it consumed
	consumed    time.Time
}

func (a *admitted) expire() time.Time {
	if a.reservation == nil {
		return time.Time{}
	}
	return a.reservation.expire
}

// over tells that it was settled.
func (a *admitted) over() bool { return a.reservation != nil && a.reservation.state != taken }

// known finds what was admitted under an operation's id.
func (m *Memory) known(o *Operation, now time.Time) (a admitted, known bool, err error) {
	a.key = m.consumed.key(o)
	at, same, known := m.consumed.find(a.key, o, now)
	if !known {
		r, reserved := m.reserved.Get(o.ID)
		if !reserved || now.After(r.forget) || o.Lease == 0 && r.user != o.User {
			return a, false, nil
		}
		a.reservation, same = r, r.content == contentOf(o)
	}
	if !same {
		return admitted{}, false, Reused(o.ID)
	}
	a.consumed = at
	return a, true, nil
}

// Reused is what an operation's id is refused with that was used before, with another content.
func Reused(operation string) error {
	return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused, Resource: "operation", ID: operation,
		Message: fmt.Sprintf("operation_id %q was used before, with another content", operation)}
}

// CommittedOtherwise is what committing is refused with once the operation was committed at another cost.
func CommittedOtherwise(operation string) error {
	return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused, Resource: "operation", ID: operation,
		Message: fmt.Sprintf("the reservation %q was committed before, at another cost", operation)}
}

// open returns the counters of rules as they stand now.
func (m *Memory) open(user id.User, rules []Limited, now time.Time) ([]*counter, error) {
	counters, missing := make([]*counter, len(rules)), 0
	defer func() { m.sweep(2*missing, len(rules), now) }()
	for i := range rules {
		r := &rules[i].Rule
		key := keyOf(user, r)
		c, ok := m.counters.Get(key)
		if !ok {
			missing++
			if m.counters.Len() == maxCounters {
				return nil, &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonCountersUnavailable,
					Message: "too many counters of quotas are in this server's memory; try again"}
			}
			c = newCounter(r)
			m.counters.Add(key, c)
		}
		c.keep = r.OnAbandoned == AbandonedCharge
		c.advance(now)
		counters[i] = c
	}
	return counters, nil
}

// sweep looks at those counters that nobody asked for longest: idle ones go, others have their turn again later. It
// looks at more of them than are new, but not at the newest, which are in use.
func (m *Memory) sweep(many, newest int, now time.Time) {
	for range min(many, m.counters.Len()-newest) {
		key, c, _ := m.counters.GetOldest()
		if c.idle(now) {
			m.counters.Remove(key)
		} else {
			m.counters.Get(key)
		}
	}
}
