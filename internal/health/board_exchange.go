package health

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
)

const (
	// maxOffers is how many records are offered at once.
	maxOffers = 256
	// maxRounds is how often is offered again what others changed first, before the next interval.
	maxRounds = 4
)

// offered is a record that is offered, and what it was made of.
type offered struct {
	entry   *entry
	record  Record
	mark    string
	pending int
	edits   int
}

// offer returns what is offered of an entry: a record, but first an offer whose fate is not known.
func (e *entry) offer(r Record) *offered {
	if e.sent == nil {
		e.sent = &offered{e, r, rand.Text(), len(e.pending), e.edits}
	}
	return e.sent
}

// Sync offers all that changed here, and hears what changed elsewhere. Run does it, four times a second.
func (b *Board) Sync(ctx context.Context) {
	if b.acquire(ctx) != nil {
		return
	}
	defer b.release()
	for range maxRounds {
		if answered, more := b.exchange(ctx, nil); !answered || !more {
			return
		}
	}
}

func (b *Board) acquire(ctx context.Context) error {
	select {
	case b.exchanging <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Board) release() { <-b.exchanging }

// exchange offers what changed here, or one record only, and takes in what is new. It tells whether there was an
// answer, and whether there is more to offer than what was reported meanwhile.
func (b *Board) exchange(ctx context.Context, one *offered) (answered, more bool) {
	b.mu.Lock()
	var offers []*offered
	if one != nil {
		offers = []*offered{one}
	} else {
		for e := range b.dirty {
			if offers = append(offers, e.offer(*e.local.Load())); len(offers) == maxOffers {
				break
			}
		}
	}
	question := Exchange{Epoch: b.epoch, Since: b.since}
	for _, o := range offers {
		question.Offers = append(question.Offers, Offer{Stored{o.entry.subject, o.entry.version, o.record}, o.mark})
	}
	b.counts.Exchanges++
	b.mu.Unlock()

	began := b.options.Now()
	news, err := b.options.Shared.Exchange(ctx, question)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.counts.Failures++
		if !b.away && ctx.Err() == nil {
			b.away = true
			b.options.Logger.Warn("the health of tools cannot be shared: until it can, this server goes by what is reported to it", "error", err)
		}
		return false, false
	}
	for _, o := range offers {
		o.entry.sent = nil
	}
	if b.away {
		b.away = false
		b.options.Logger.Info("the health of tools is shared again")
	}
	b.tune(news.Now, began)
	return true, b.takeIn(news, offers) || len(offers) == maxOffers
}

// tune follows the clock of the Shared. What this node dated while it did not know that clock is dated again.
func (b *Board) tune(shared, began time.Time) {
	node := b.options.Now()
	estimate := b.Now()
	// The answer may have travelled for long, so a small difference says nothing, and one answer in time corrects it.
	late := node.Sub(began)
	by := shared.Sub(estimate)
	if late < interval {
		b.anchor.Store(&anchor{shared: shared, node: node})
	}
	if by.Abs() <= late+interval {
		return
	}
	b.anchor.Store(&anchor{shared: shared, node: node})
	for e := range b.dirty {
		for i := range e.pending {
			e.pending[i].at = e.pending[i].at.Add(by)
		}
		if e.drifted {
			b.set(e, e.local.Load().shift(by))
		} else {
			b.replay(e)
		}
	}
}

// takeIn applies an answer to the memory. It tells whether an offer was not taken.
func (b *Board) takeIn(news News, offers []*offered) (refused bool) {
	if news.Epoch != b.epoch {
		b.restart(news)
		return len(b.dirty) > 0
	}
	b.since = news.Version
	now := map[*entry]bool{} // the Shared has what this node offered, whatever it had before
	for i, o := range offers {
		if news.Taken[i] != 0 {
			b.taken(o, news.Taken[i])
			now[o.entry] = true
		} else {
			refused = true
		}
	}
	for _, s := range news.Changed {
		if e := b.enter(s.Subject); e != nil && e.version != s.Version && !now[e] {
			b.rebase(e, s)
		}
	}
	return refused
}

// taken: the Shared has the record that was offered.
func (b *Board) taken(o *offered, version Version) {
	e := o.entry
	e.version, e.base = version, o.record
	switch {
	case e.edits == o.edits:
		e.drifted, e.pending = false, nil
		delete(b.dirty, e)
		b.set(e, o.record)
	case !e.drifted:
		e.pending = slices.Clone(e.pending[o.pending:])
		b.replay(e)
		b.mark(e)
	}
}

// rebase: the Shared has another record than this node thought.
func (b *Board) rebase(e *entry, s Stored) {
	if s.Version == 0 && e.version != 0 { // it lost what it had
		b.drift(e)
	}
	e.version, e.base = s.Version, s.Record
	if e.drifted {
		b.set(e, s.Record.Join(*e.local.Load()))
	} else {
		b.replay(e)
	}
	b.mark(e)
}

// mark makes an entry be offered if it has what the Shared has not.
func (b *Board) mark(e *entry) {
	if *e.local.Load() == e.base {
		e.drifted, e.pending = false, nil
		delete(b.dirty, e)
		return
	}
	b.dirty[e] = struct{}{}
}

// replay applies the reports that wait to what the Shared has.
func (b *Board) replay(e *entry) {
	r := e.base
	for _, p := range e.pending {
		r = r.Report(p.Report, b.options.Policy(e.subject), p.at, b.options.Chance())
	}
	b.set(e, r)
}

// restart: the Shared is another one than the one that this node knew, if it knew one. What both know is joined.
func (b *Board) restart(news News) {
	known := b.epoch != ""
	b.epoch, b.since = news.Epoch, news.Version
	b.entries.Range(func(_, e any) bool {
		entry := e.(*entry)
		if known {
			b.drift(entry)
		}
		entry.version, entry.base, entry.sent = 0, Record{}, nil
		b.mark(entry)
		return true
	})
	for _, s := range news.Changed {
		if e := b.enter(s.Subject); e != nil {
			b.rebase(e, s)
		}
	}
}

// Claim asks to make a call of a subject whose breaker is half open. All nodes together let one call through, until it
// is reported or the lease of the probe runs out. The answer is Closed or HalfOpen: the call may be made, or Open: it
// may not. The same call may ask again. While the Shared does not answer, each node lets one through.
//
// It waits for the Shared only if the breaker is half open and no probe is known, and then for a few exchanges at most.
// If ctx ends before it asks, the answer is Open.
func (b *Board) Claim(ctx context.Context, s Subject, call id.Call) Condition {
	for {
		b.mu.Lock()
		e := b.find(s)
		if e == nil {
			b.mu.Unlock()
			return Condition{}
		}
		now := b.Now()
		before := b.within(e, now)
		after, granted := before.Claim(call, b.options.Policy(s), now)
		switch {
		case !granted || after == before:
			b.mu.Unlock()
			return before.Condition(call, now)
		case b.options.Shared == nil || b.away:
			b.claimAlone(e, after)
			b.mu.Unlock()
			return Condition{State: HalfOpen}
		case e.claiming == nil:
			e.claiming = make(chan struct{})
			b.mu.Unlock()
			return b.claim(ctx, e, call)
		}
		decided := e.claiming
		b.mu.Unlock()
		select {
		case <-decided:
		case <-ctx.Done():
			return Condition{State: Open, RetryAfter: probeRetry}
		}
	}
}

// claimAlone lets a probe of this node through. The others hear of it later.
func (b *Board) claimAlone(e *entry, r Record) {
	b.set(e, r)
	if b.options.Shared != nil {
		b.drift(e)
		b.dirty[e] = struct{}{}
	}
}

// claim asks the Shared for the probe.
func (b *Board) claim(ctx context.Context, e *entry, call id.Call) Condition {
	defer func() {
		b.mu.Lock()
		close(e.claiming)
		e.claiming = nil
		b.mu.Unlock()
	}()
	if b.acquire(ctx) != nil {
		return Condition{State: Open, RetryAfter: probeRetry}
	}
	defer b.release()
	for range maxRounds {
		b.mu.Lock()
		now := b.Now()
		before := b.within(e, now)
		after, granted := before.Claim(call, b.options.Policy(e.subject), now)
		if !granted || after == before {
			b.mu.Unlock()
			return before.Condition(call, now)
		}
		alone := b.away
		if alone {
			b.claimAlone(e, after)
		}
		o := e.offer(after)
		b.mu.Unlock()
		if alone {
			return Condition{State: HalfOpen}
		}
		// Whoever gives up now may have got the probe: that is known sooner when the answer is waited for.
		b.exchange(context.WithoutCancel(ctx), o)
	}
	return Condition{State: Open, RetryAfter: probeRetry}
}
