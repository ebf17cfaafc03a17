package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

const (
	// remembered is how long a reservation is known after it was settled.
	remembered = 24 * time.Hour
	// defaultRemembered is how long what was consumed is known.
	defaultRemembered = 15 * time.Minute
	// unsure is how long the user of a reservation is known that has not been made yet.
	unsure = 2 * time.Minute
)

var _ quota.Ledger = (*Ledger)(nil)

// Ledger keeps the counters of USER rules in Redis, and makes reservations from them and from SYSTEM rules.
// An operation takes from its rules in this order: NODE in the node's memory, SYSTEM, then USER. If one denies, what
// was taken before it is given back, last first. Meanwhile others may be denied what is given back, but nobody is
// admitted over a limit. If the Ledger's answer is lost, the caller repeats the operation, and what was taken in front
// stays taken as long as that is possible.
//
// What is consumed is spent from SYSTEM rules by Slices, without asking anybody. A reservation writes to Redis anyway,
// and may be settled on another node: it is taken from each SYSTEM rule's one counter, by id, and from the user's
// rules last, whose script writes down that there is a reservation, and its rules. Settling begins there, and does the
// same to all of them: who got no answer repeats it. A reservation of which a part was taken by somebody who then died
// is nowhere written down; the part runs out with its lease.
//
// # What is in Redis
//
// All keys of a user have one hash tag, so that one script decides about all of his rules, also in a Cluster.
// A key begins with toolgrant: and the number of the database, as the wake-ups' channel does.
//
//	{u:<user>}:c:<rule>:<shape>  a rule's counter (hash): units held and used, and when
//	{u:<user>}:l:<rule>:<shape>  its leases (sorted set), while something is held
//	{u:<user>}:o:<operation>     what an operation asked for and what became of it (string)
//	{op:<operation>}             the user of a reservation, which settling does not name (string)
//
// A SYSTEM rule has keys of the same kinds under {s:<rule>}; what Slices adds is said there.
//
// The shape is what the rule counts and over what time. A rule whose limit was changed goes on counting, and
// the new limit holds at once. One whose unit, window, zone or refill was changed has another shape and counts
// from nothing; the old counter is needed by nobody but reservations from before, which are settled there, and
// expires.
//
// Every key expires: a counter when all that was used has come back and all leases have run out, at most two years
// later, a reservation a day after it was settled, what was consumed 15 minutes later (RememberConsumed). With names of
// usual length, a counter over a minute takes 170 bytes while few slots are used and 460 when all are, those of a
// calendar or a bucket 190, an operation that consumed 170; a reservation takes 270 and 150 for its user, and 60 to 200
// for its lease in each rule (TestMemory logs them). So where much is consumed, most of the memory is operations: 1,000
// each second are 150 MB after 15 minutes, and were 15 GB if they were known for a day.
//
// # What it takes
//
// One Redis gets the scripts of many callers together (pipe). Where all windows are fixed ones or calendars, consuming, as
// long as nothing is held, and reserving are even one script for all of them (taker). It leaves the others, such as who is
// denied, to a script of his own, which decides the same, whatever the rules.
//
// # What it promises
//
// Redis's clock decides. A node passes where the periods of the calendar begin around its own idea of the time,
// and the script says so if it needs others.
//
// An operation can be repeated until the answer is known. What was admitted is not charged again. A denial is
// not remembered, because nothing was charged: asking again later, under the same id, is what a caller who was
// told how long to wait does. The scripts do no harm when they run twice, as the client of a Cluster lets them when
// a connection breaks.
//
// Held units count until they are settled, also across the end of a period; what is charged is charged when it
// is committed. A reservation that nobody settles is given back or charged as of the moment when its lease ran
// out, by the next script that looks at the rule.
//
// # When Redis loses them
//
// With an archive (see Archive), the counters of rules over an hour or more are in PostgreSQL, too, less than half a
// second later. After FLUSHALL, a restart without persistence, or a failover to a replica that is behind, they are
// restored from there before they are used, once, however many nodes ask. If the archive is away just then, the
// counters are unavailable; those that are confirmed go on without it. What is lost:
//
//   - what was charged in the last half second, up to a second on a busy machine; or for as long as the archive was
//     away
//   - what a node charged that died at the same time, before it wrote that down; if Redis loses it later, and the
//     counter did not change since, then too
//   - what is charged on a master that was replaced and is not told yet
//   - counters over less than an hour, and buckets: they begin from what is left
//   - what is held, and which operations were decided: a reservation that is lost can't be settled (NotFound), an
//     operation that is repeated is decided anew
//
// The Redis must not evict (maxmemory-policy noeviction).
type Ledger struct {
	client   redis.UniversalClient
	pipe     *pipe  // nil: a Cluster
	taker    *taker // nil: it is not tried whether there is an easy way
	prefix   string
	timeout  time.Duration // of a command
	consumed time.Duration // how long what was consumed is known
	scripts  *scripts
	own      own
	archive  *archive // nil: nothing is archived
	mirror   *mirror  // nil, too
}

// LedgerOption changes how a Ledger works.
type LedgerOption func(*Ledger)

// RememberConsumed sets how long an operation that consumed is known, 15 minutes without it: as long as a caller who
// got no answer repeats. Much of the memory is theirs, see Ledger.
func RememberConsumed(d time.Duration) LedgerOption {
	return func(l *Ledger) { l.consumed = d }
}

// NewLedger is for the nodes of a database, which the number identifies. The timeout bounds each command, of which
// consuming takes one, reserving too (in a Cluster or with a SYSTEM rule: three), settling one where it was reserved, three
// elsewhere, and one more for each SYSTEM rule. A user of Redis's access
// control needs the keys toolgrant:* and EVAL, EVALSHA, EXISTS, GET, SET, DEL, TIME, PEXPIREAT, HGET, HMGET, HSET, HDEL,
// HINCRBY, ZADD, ZREM, ZRANGE, ZRANGEBYSCORE, ZREMRANGEBYRANK, and for an archive INFO, PTTL, HGETALL.
func NewLedger(client redis.UniversalClient, database uint64, timeout time.Duration, options ...LedgerOption) *Ledger {
	l := &Ledger{client: client, prefix: fmt.Sprintf("toolgrant:%016x:", database), timeout: timeout,
		consumed: defaultRemembered, scripts: clusterScripts, own: newOwn()}
	if one, ok := client.(*redis.Client); ok {
		l.pipe, l.scripts = newPipe(one, timeout), ledgerScripts
	}
	l.taker = newTaker(l)
	for _, option := range options {
		option(l)
	}
	return l
}

// Take consumes or reserves. A rule for calls at a time must have a place free for what is consumed, which does not
// keep it: a call of which nobody will say that it ended holds nothing. What is consumed may have rules of scope USER
// only: others are spent in front.
//
// A consumed operation is known by its user and its id: the same id of another user is another operation. A
// reservation's id is refused if another user reserves under it.
func (l *Ledger) Take(ctx context.Context, operation quota.Operation) (quota.Decision, error) {
	if operation.Lease > 0 {
		return l.reserve(ctx, operation)
	}
	if l.taker != nil && plain(operation.Rules) {
		if d, decided, err := l.taker.consume(ctx, &operation); decided || err != nil {
			return d, err
		}
	}
	call := l.call(l.scripts.take, userSubject(operation.User), "o:"+operation.ID, len(operation.Rules))
	call.argue(fingerprint(operation), 0, l.consumed.Milliseconds(), operation.ID, "", "", "", 0)
	return call.take(ctx, operation.ID, operation.Rules, operation.Cost)
}

// take runs a script that takes a cost from rules or denies it.
func (c *call) take(ctx context.Context, operation string, rules []quota.Limited, cost quota.Cost) (quota.Decision, error) {
	for i := range rules {
		c.rule(&rules[i], cost.In(rules[i].Unit), 0)
	}
	a, err := c.run(ctx)
	if err != nil {
		return quota.Decision{}, err
	}
	if a.status == anotherContent {
		return quota.Decision{}, reused(operation)
	}
	d := a.decision(rules)
	if d.Admitted = a.status != denied; !d.Admitted {
		for i, state := range d.States {
			if a.denied(i) {
				d.Denied = append(d.Denied, state.Rule)
			}
		}
	}
	return d, nil
}

// Commit settles a reservation at its cost; nil: as it was reserved. It does not end with the caller's context: the
// units were used. The states tell the limits that the reservation knew.
func (l *Ledger) Commit(ctx context.Context, operation string, tokens *int64) (quota.Decision, error) {
	return l.settle(ctx, operation, func(r *reservation) (mode string, cost int64) {
		if tokens == nil {
			return "C", r.Tokens
		}
		return "C", *tokens
	})
}

// Release gives a reservation back; also one that was charged because it was abandoned. It does not end with the
// caller's context.
func (l *Ledger) Release(ctx context.Context, operation string) (quota.Decision, error) {
	return l.settle(ctx, operation, func(*reservation) (string, int64) { return "R", 0 })
}

func (l *Ledger) settle(ctx context.Context, operation string, how func(*reservation) (mode string, tokens int64)) (quota.Decision, error) {
	ctx = context.WithoutCancel(ctx)
	settle := func(w written, expected string) (quota.Decision, error) {
		r, err := decodeReservation(w.record)
		if err != nil {
			return quota.Decision{}, fmt.Errorf("operation %s: %w", operation, err)
		}
		mode, tokens := how(r)
		d, err := l.settleParts(ctx, w.user, operation, r, expected, mode, tokens)
		if err == nil {
			d.Settled = r.settled(w.user, mode, tokens)
		}
		return d, err
	}
	if mine, known := l.own.take(operation); known {
		if d, err := settle(mine, mine.record); !errors.Is(err, errAnother) {
			return d, err
		}
	}
	w, err := l.find(ctx, operation)
	if err != nil {
		return quota.Decision{}, err
	}
	return settle(w, "")
}

// find reads what is written down of a reservation.
func (l *Ledger) find(ctx context.Context, operation string) (written, error) {
	user, err := l.get(ctx, l.index(operation))
	if err != nil {
		return written{}, err
	}
	text := ""
	if user != "" {
		if text, err = l.get(ctx, l.prefix+string(userSubject(id.User(user)))+"o:"+operation); err != nil {
			return written{}, err
		}
	}
	record, reserved := recordOf(text)
	if !reserved {
		return written{}, fault.Missing("operation", operation)
	}
	return written{id.User(user), record}, nil
}

func (l *Ledger) get(ctx context.Context, key string) (value string, err error) {
	err = l.within(ctx, func(ctx context.Context) error {
		cmd := redis.NewStringCmd(ctx, "GET", key)
		err := l.process(ctx, cmd)
		switch {
		case errors.Is(err, redis.Nil):
			return nil
		case err == nil:
			value = cmd.Val()
		}
		return err
	})
	return value, err
}

// States tells how rules of scope USER stand for a user, in one round trip.
func (l *Ledger) States(ctx context.Context, user id.User, rules []quota.Limited) ([]quota.State, error) {
	return l.look(ctx, l.scripts.states, userSubject(user), rules)
}

// Reset forgets what was used. What is held stays held. A rule of scope SYSTEM has no user. An archive is told before
// the answer, so that no restoring undoes it.
func (l *Ledger) Reset(ctx context.Context, user id.User, rule quota.Limited) (quota.State, error) {
	whose := userSubject(user)
	if rule.Scope == quota.ScopeSystem {
		whose = systemSubject(rule.ID)
	}
	states, err := l.look(ctx, l.scripts.reset, whose, []quota.Limited{rule})
	if err != nil {
		return quota.State{}, err
	}
	if l.mirror != nil && rule.Archived() {
		_, shape := shapeOf(&rule.Rule)
		if err := l.mirror.write(ctx, []quota.CounterName{whose.counter(rule.ID, shape)}); err != nil {
			return quota.State{}, unavailable(err)
		}
	}
	return states[0], nil
}

func (l *Ledger) look(ctx context.Context, s *script, whose subject, rules []quota.Limited) ([]quota.State, error) {
	call := l.call(s, whose, "", len(rules))
	for i := range rules {
		call.rule(&rules[i], 0, 0)
	}
	a, err := call.run(ctx)
	if err != nil {
		return nil, err
	}
	return a.decision(rules).States, nil
}

// process runs a command, together with others where that is possible.
func (l *Ledger) process(ctx context.Context, cmd redis.Cmder) error {
	if l.pipe == nil {
		return l.client.Process(ctx, cmd)
	}
	return l.pipe.do(ctx, cmd)
}

// within runs a command with its deadline.
func (l *Ledger) within(ctx context.Context, command func(context.Context) error) error {
	limit, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := command(limit); err != nil {
		return l.failed(ctx, err)
	}
	return nil
}

// failed says what a command's failure means.
func (l *Ledger) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("counters in Redis: %w", context.Cause(ctx))
	}
	var answer redis.Error
	if errors.As(err, &answer) && (strings.HasPrefix(answer.Error(), "ERR ") || strings.HasPrefix(answer.Error(), "WRONGTYPE ")) {
		return fmt.Errorf("counters in Redis: %w", err) // a mistake of ours
	}
	return unavailable(err)
}

func unavailable(cause error) error {
	return &fault.Fault{Kind: fault.Unavailable, Reason: fault.ReasonCountersUnavailable,
		Message: "the counters of quotas can't be reached; try again", Cause: cause}
}

func reused(operation string) error {
	return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused, Resource: "operation", ID: operation,
		Message: fmt.Sprintf("operation_id %q was used before, with another content", operation)}
}
