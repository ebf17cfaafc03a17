package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

var _ quota.Slices = (*Slices)(nil)

// sliceRemembered is how long a slice's last request is known: longer than any request is on its way.
const sliceRemembered = time.Minute

// Slices spends SYSTEM rules on this node. A rule has one counter in Redis, which all nodes share. A node leases a slice
// of units from it and spends them without asking; a goroutine of each rule that is spent reports and renews in the
// background, before the slice is empty. Only who needs more than there is waits for it, and all who do wait for the
// same answer.
//
// # Never over
//
// A slice is held in the counter until the node reports what it spent, which is then charged, as of then. So each unit
// counts, held or charged, from before it is spent until its time is over, also across the end of a period. What an
// operation spent is reported half a second later at the earliest, so that undoing it costs nothing.
//
// Requests are numbered and say everything in totals: all that was ever spent, all that is kept. A request does what
// those before it did not, and Redis refuses one that is overtaken. So it does no harm if answers are lost, requests
// come late or twice, or a replica takes over that is behind.
//
// A node that is not heard of for 3 seconds by Redis's clock loses its slice, and all of it is charged, because it may
// have been spent. The node itself stops spending it after 2.8 seconds by its own, from before it asked.
//
// # Under-use
//
// A slice lasts the node about a second: twice what it spent in the last half. Units for which nobody waits are at most
// an eighth of what is left, so that slices shrink near the limit, in the end to what callers wait for. One that nobody
// spends for 0.75 seconds goes back, and Close gives back all. So what is missing at the limit is what other nodes
// hold and don't spend: no more than each spends in a second, and for no longer than a second. A node that dies loses
// what it had not spent of its slice: it stays charged for the rule's window.
//
// When there are no more units, the node asks again every 50 milliseconds at most, and denies meanwhile.
//
// # Outages
//
// When Redis does not answer, what is leased can be spent until the lease ends. A caller who needs more waits for one
// answer; after that all fail at once, until Redis answers again, which it is asked 5 times a second. After FLUSHALL,
// a node that is within its lease has it held again, and what it had not reported is charged; of what was charged before
// is lost what the Ledger says. Until it has it held again, within a second, others may be granted what it holds.
//
// When a replica takes over that is behind, what a node reported that the replica had not heard of is charged again. If
// the archive knew of it already, and the counter was restored from there, it is charged twice then: rather that than
// not at all.
//
// # Rules
//
// A limit that changes holds at once. A rule that counts something else, or over another time, has another counter;
// the slice of the old one goes back. A shadow rule leases nothing: it reports, and what a dead node didn't report is
// lost. Of a rule for calls at a time nothing is spent: one must be free, as this node has known for half a second at
// most; reservations hold them (see Ledger), and take from the same counters as slices.
//
// # What is in Redis
//
//	{s:<rule>}:c:<rule>:<shape>  the counter, as the Ledger's
//	{s:<rule>}:l:<rule>:<shape>  the leases of reservations and of slices
//	{s:<rule>}:n:<slice>         the last request of a slice (string), for a minute
type Slices struct {
	ledger  *Ledger
	node    string // random: a process that starts again is another node
	ctx     context.Context
	stop    context.CancelFunc
	closing chan struct{}
	running sync.WaitGroup

	mu     sync.RWMutex
	closed bool
	count  uint64 // of slices ever
	active map[id.Quota]*renewal
}

// NewSlices is for a node that shares a ledger's counters. Close gives back what it leased.
func NewSlices(ledger *Ledger) *Slices {
	ctx, stop := context.WithCancel(context.Background())
	return &Slices{ledger: ledger, node: rand.Text(), ctx: ctx, stop: stop, closing: make(chan struct{}), active: map[id.Quota]*renewal{}}
}

// Close gives all slices back. It returns when Redis has them or ctx ends; what Redis then still holds is charged
// when its lease runs out. Nothing can be spent any more.
func (s *Slices) Close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.stop)
	defer stop()
	s.running.Wait()
	s.stop()
}

// Spend takes a cost from all rules, or from none. All rules are tried, by id, so that the answer tells how each stands
// and which deny. It fails, rather than denies, only if none is known to deny.
func (s *Slices) Spend(ctx context.Context, rules []quota.Limited, cost quota.Cost) (quota.Decision, error) {
	now := time.Now()
	deadline := now.Add(s.ledger.timeout)
	d := quota.Decision{States: make([]quota.State, len(rules))}
	for i := range rules {
		rule := &rules[i]
		v, state, err := s.spend(ctx, rule, cost.In(rule.Unit), now, deadline)
		if err != nil && d.Denied == nil {
			s.GiveBack(rules[:i], cost)
			return quota.Decision{}, err
		}
		if err != nil {
			for k := i; k < len(rules); k++ {
				d.States[k] = quota.State{Rule: rules[k].ID, Limit: rules[k].Own}
			}
			s.deny(&d, rules[:i], cost)
			return d, nil
		}
		d.States[i] = state
		if v == refused {
			d.Denied = append(d.Denied, rule.ID)
		}
	}
	if d.Admitted = d.Denied == nil; !d.Admitted {
		s.deny(&d, rules, cost)
	}
	return d, nil
}

// deny gives back what other rules admitted, last first.
func (s *Slices) deny(d *quota.Decision, rules []quota.Limited, cost quota.Cost) {
	for i, rule := range slices.Backward(rules) {
		if r := s.find(&rule); r != nil && !slices.Contains(d.Denied, rule.ID) {
			d.States[i] = r.undo(&rule, cost.In(rule.Unit))
		}
	}
}

// GiveBack undoes a Spend of an operation that another rule denied. What was spent long ago stays spent: Redis has
// charged it, as it does half a second later at the earliest.
func (s *Slices) GiveBack(rules []quota.Limited, cost quota.Cost) {
	for _, rule := range slices.Backward(rules) {
		if r := s.find(&rule); r != nil {
			r.undo(&rule, cost.In(rule.Unit))
		}
	}
}

// States tells how rules stand, as this node knows. It asks for those that nobody spent lately.
func (s *Slices) States(ctx context.Context, rules []quota.Limited) ([]quota.State, error) {
	states := make([]quota.State, len(rules))
	group, ctx := errgroup.WithContext(ctx)
	for i := range rules {
		if r := s.find(&rules[i]); r != nil {
			state, known, err := r.look(&rules[i])
			if err != nil {
				return nil, err
			}
			if known {
				states[i] = state
				continue
			}
		}
		group.Go(func() error {
			one, err := s.ledger.look(ctx, s.ledger.scripts.states, systemSubject(rules[i].ID), rules[i:i+1])
			if err == nil {
				states[i] = one[0]
			}
			return err
		})
	}
	return states, group.Wait()
}

func (s *Slices) spend(ctx context.Context, rule *quota.Limited, cost int64, now, deadline time.Time) (verdict, quota.State, error) {
	for {
		r := s.find(rule)
		if r == nil {
			var err error
			if r, err = s.open(rule); err != nil {
				return failed, quota.State{}, err
			}
		}
		v, state, err := r.spend(ctx, rule, cost, now, deadline)
		if !errors.Is(err, errRetired) {
			return v, state, err
		}
		s.drop(r)
	}
}

// find returns a rule's slice, if there is one.
func (s *Slices) find(rule *quota.Limited) *renewal {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.active[rule.ID]; r != nil && r.counts(rule) {
		return r
	}
	return nil
}

// open makes a rule's slice, unless somebody has just done so. A slice of what the rule counted before goes back.
func (s *Slices) open(rule *quota.Limited) (*renewal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, unavailable(errClosed)
	}
	if r := s.active[rule.ID]; r != nil {
		if r.counts(rule) {
			return r, nil
		}
		r.retire()
	}
	s.count++
	r := newRenewal(s.ledger, s.node+"."+strconv.FormatUint(s.count, 36), rule)
	s.active[rule.ID] = r
	s.running.Go(func() {
		r.run(s.ctx, s.closing)
		s.drop(r)
	})
	return r, nil
}

func (s *Slices) drop(r *renewal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[r.rule.ID] == r {
		delete(s.active, r.rule.ID)
	}
}
