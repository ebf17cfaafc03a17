package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// part is those rules of a reservation that one script decides about.
type part struct {
	whose subject
	rules []quota.Limited
	at    []int // where they are among all
}

// partsOf divides rules: each SYSTEM rule is a part, by id, so that no two reservations wait for one another's; the
// user's are the last one, even if he has none, because that one decides what becomes of the reservation.
func partsOf(user id.User, rules []quota.Limited) []part {
	var parts []part
	last := part{whose: userSubject(user)}
	for i, rule := range rules {
		if rule.Scope == quota.ScopeSystem {
			parts = append(parts, part{systemSubject(rule.ID), []quota.Limited{rule}, []int{i}})
			continue
		}
		last.rules, last.at = append(last.rules, rule), append(last.at, i)
	}
	return append(parts, last)
}

func (p *part) put(states, into []quota.State) {
	for k, i := range p.at {
		into[i] = states[k]
	}
}

// reserve takes from one part after the other, and undoes that if a later one denies.
func (l *Ledger) reserve(ctx context.Context, operation quota.Operation) (quota.Decision, error) {
	if l.pipe != nil {
		if parts := partsOf(operation.User, operation.Rules); len(parts) == 1 {
			return l.reserveAtOnce(ctx, operation, &parts[0])
		}
	}
	// The user is written down first: settling must find a reservation whose caller never heard that it was made.
	// At first for a short time only, because what is denied should leave nothing.
	user, before, err := l.claim(ctx, operation)
	if err != nil {
		return quota.Decision{}, err
	}
	if user != operation.User {
		return quota.Decision{}, reused(operation.ID)
	}
	var d quota.Decision
	if before != "" {
		d, err = l.again(ctx, operation, before)
	} else {
		d, err = l.takeParts(ctx, operation)
	}
	if err != nil || !d.Admitted {
		return d, err
	}
	return d, l.within(ctx, func(ctx context.Context) error {
		return l.process(ctx, redis.NewStatusCmd(ctx, "SET", l.index(operation.ID), string(user), "PX", (operation.Lease+known).Milliseconds()))
	})
}

// reserveAtOnce reserves in one step what one Redis has all keys of.
func (l *Ledger) reserveAtOnce(ctx context.Context, operation quota.Operation, p *part) (d quota.Decision, err error) {
	record, err := newReservation(operation).encode()
	if err != nil {
		return d, err
	}
	defer func() { l.own.note(&operation, &d, record) }()
	if l.taker != nil && plain(operation.Rules) {
		if d, decided, err := l.taker.reserve(ctx, &operation, record); decided || err != nil {
			return d, err
		}
	}
	call := l.call(l.scripts.take, p.whose, "o:"+operation.ID, len(p.rules))
	call.argue(fingerprint(operation), operation.Lease.Milliseconds(), remembered.Milliseconds(), operation.ID, record,
		l.index(operation.ID), string(operation.User), (operation.Lease + known).Milliseconds())
	return call.take(ctx, operation.ID, p.rules, operation.Cost)
}

func (l *Ledger) takeParts(ctx context.Context, operation quota.Operation) (quota.Decision, error) {
	record, err := newReservation(operation).encode()
	if err != nil {
		return quota.Decision{}, err
	}
	d := quota.Decision{States: make([]quota.State, len(operation.Rules))}
	attempt := rand.Text()
	parts := partsOf(operation.User, operation.Rules)
	for k := range parts {
		p, script, note := &parts[k], l.scripts.hold, attempt
		if k == len(parts)-1 {
			script, note = l.scripts.take, record
		}
		call := l.call(script, p.whose, "o:"+operation.ID, len(p.rules))
		call.argue(fingerprint(operation), operation.Lease.Milliseconds(), remembered.Milliseconds(), operation.ID, note)
		if script == l.scripts.take {
			call.argue("", "", 0)
		}
		one, err := call.take(ctx, operation.ID, p.rules, operation.Cost)
		if err != nil {
			return quota.Decision{}, err
		}
		p.put(one.States, d.States)
		if !one.Admitted {
			d.Denied = one.Denied
			l.undo(ctx, operation, parts[:k], attempt, d.States)
			return d, l.describe(ctx, parts[k+1:], d.States)
		}
		d.Repeated, d.Over = one.Repeated, one.Over // the last one says
		if k == 0 || one.Expire.Before(d.Expire) {
			d.Expire = one.Expire
		}
	}
	d.Admitted = true
	l.own.note(&operation, &d, record)
	return d, nil
}

// again tells what was reserved. It holds the rules that there were then.
func (l *Ledger) again(ctx context.Context, operation quota.Operation, before string) (quota.Decision, error) {
	words := strings.SplitN(before, " ", 4) // as take.lua wrote them
	if len(words) < 4 || words[1] != fingerprint(operation) {
		return quota.Decision{}, reused(operation.ID)
	}
	ends, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("operation %s: %w", operation.ID, err)
	}
	d := quota.Decision{Admitted: true, Repeated: true, Over: words[0] == "C" || words[0] == "R", Expire: time.UnixMilli(ends), States: make([]quota.State, len(operation.Rules))}
	return d, l.describe(ctx, partsOf(operation.User, operation.Rules), d.States)
}

// claim writes down whose the operation is, unless it is somebody's, and returns what is known of it.
func (l *Ledger) claim(ctx context.Context, operation quota.Operation) (owner id.User, before string, err error) {
	index := l.index(operation.ID)
	err = l.within(ctx, func(ctx context.Context) error {
		var user, record *redis.StringCmd
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.SetArgs(ctx, index, string(operation.User), redis.SetArgs{Mode: "NX", TTL: unsure})
			user = p.Get(ctx, index)
			record = p.Get(ctx, l.prefix+string(userSubject(operation.User))+"o:"+operation.ID)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // nil: the key existed, or there is no record
			return err
		}
		if err := record.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		owner, before = id.User(user.Val()), record.Val()
		return user.Err()
	})
	return owner, before, err
}

// undo gives back what an attempt took from SYSTEM rules, last first. What it can't give back runs out.
func (l *Ledger) undo(ctx context.Context, operation quota.Operation, parts []part, attempt string, states []quota.State) {
	ctx = context.WithoutCancel(ctx)
	for k := len(parts) - 1; k >= 0; k-- {
		p := &parts[k]
		call := l.call(l.scripts.settle, p.whose, "o:"+operation.ID, 1)
		call.argue("U", 0, remembered.Milliseconds(), operation.ID, attempt)
		call.rule(&p.rules[0], operation.Cost.In(p.rules[0].Unit), 0)
		if a, err := call.run(ctx); err == nil && a.status != unknown {
			p.put(a.decision(p.rules).States, states)
		}
	}
}

// describe tells how rules stand that were not asked.
func (l *Ledger) describe(ctx context.Context, parts []part, into []quota.State) error {
	for i := range parts {
		p := &parts[i]
		if len(p.rules) == 0 {
			continue
		}
		states, err := l.look(ctx, l.scripts.states, p.whose, p.rules)
		if err != nil {
			return err
		}
		p.put(states, into)
	}
	return nil
}

// settleParts settles the user's part, which decides whether that may be, and then the SYSTEM rules. A part that was
// settled before says so again. If what is written down is not the record, nothing is settled, and the error is errAnother.
func (l *Ledger) settleParts(ctx context.Context, user id.User, operation string, r *reservation, record, mode string, tokens int64) (quota.Decision, error) {
	rules := r.limited()
	d := quota.Decision{Admitted: true, States: make([]quota.State, len(rules))}
	parts := partsOf(user, rules)
	for k := len(parts) - 1; k >= 0; k-- {
		p := &parts[k]
		call := l.call(l.scripts.settle, p.whose, "o:"+operation, len(p.rules))
		if k < len(parts)-1 {
			record = "" // only the user's part has it
		}
		call.argue(mode, tokens, remembered.Milliseconds(), operation, record)
		for n, i := range p.at {
			call.rule(&p.rules[n], r.Rules[i].Units, r.Rules[i].cost(mode, tokens))
		}
		a, err := call.run(ctx)
		if err != nil {
			return quota.Decision{}, err
		}
		if k < len(parts)-1 && a.status == unknown { // Redis lost it: the user's part says that it was
			if err := l.describe(ctx, parts[k:k+1], d.States); err != nil {
				return quota.Decision{}, err
			}
			continue
		}
		if err := refusal(a.status, operation); err != nil {
			return quota.Decision{}, err
		}
		one := a.decision(p.rules)
		p.put(one.States, d.States)
		if k == len(parts)-1 {
			d.Repeated, d.Expire = one.Repeated, one.Expire
		}
	}
	return d, nil
}

// refusal is why a reservation can't be settled so.
func refusal(s status, operation string) error {
	switch s {
	case anotherContent:
		return quota.CommittedOtherwise(operation)
	case unknown:
		return fault.Missing("operation", operation)
	case another:
		return errAnother
	case released, committed:
		return &fault.Fault{Kind: fault.FailedPrecondition, Reason: fault.ReasonOperationSettled,
			Message: map[status]string{released: "the reservation was released before", committed: "the reservation was committed before"}[s]}
	}
	return nil
}
