package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// aboutTheSameTime is how much of their time those may lose who are sent together with others.
const aboutTheSameTime = 10 * time.Millisecond

// taker takes for many callers with one script, plain.lua, in the commonest case. It takes half of what a script for
// each of them takes, most of which is to begin and to name what it works on.
type taker struct {
	ledger  *Ledger
	batches batches[*taking]
}

// taking is what a caller asks for, and what becomes of it.
type taking struct {
	ctx         context.Context
	expire      time.Time // when it is too late
	keys        []string
	windows     []windowUnits
	archived    []quota.CounterName
	fingerprint string
	lease       int64 // in milliseconds; 0: it consumes
	user, note  string

	done    chan struct{} // closed when it was answered, or the time is over
	numbers []int64       // the answer: nothing if the script does not decide it
	err     error
}

// window is what the script is told of a rule, once for all operations of a batch.
type window struct {
	kind     string
	limit    int64
	archived bool
	keep     bool
	from, to int64
}

type windowUnits struct {
	window
	units int64
	lease string // what the lease is called
}

// answered is how many numbers the script answers of the operation, and of each rule of it.
func (t *taking) answered() (own, perRule int) {
	if t.lease == 0 {
		return 0, 2
	}
	return 1, 3
}

// end answers the caller.
func (t *taking) end(numbers []int64, err error) {
	t.numbers, t.err = numbers, err
	close(t.done)
}

func newTaker(l *Ledger) *taker {
	t := &taker{ledger: l}
	t.batches.send = t.run
	return t
}

// plain tells whether the script knows the rules' windows.
func plain(rules []quota.Limited) bool {
	for i := range rules {
		if r := &rules[i].Rule; r.Unit == quota.UnitConcurrentCalls || r.Window.TokenBucket != nil {
			return false
		}
	}
	return true
}

// consume consumes, or says that it does not decide.
func (t *taker) consume(ctx context.Context, o *quota.Operation) (d quota.Decision, decided bool, err error) {
	return t.take(t.ledger.taking(ctx, o), o)
}

// reserve reserves, or says that it does not decide. All keys must be in one Redis.
func (t *taker) reserve(ctx context.Context, o *quota.Operation, note string) (d quota.Decision, decided bool, err error) {
	one := t.ledger.taking(ctx, o)
	one.user, one.note = string(o.User), note
	return t.take(one, o)
}

func (t *taker) take(one *taking, o *quota.Operation) (d quota.Decision, decided bool, err error) {
	if t.ledger.pipe == nil {
		t.run([]*taking{one})
	} else if err := t.batches.add(one); err != nil {
		return d, false, t.ledger.failed(one.ctx, err)
	}
	<-one.done
	if one.err != nil || len(one.numbers) > 0 {
		t.ledger.changed(one.archived) // perhaps
	}
	if one.err != nil {
		return d, false, t.ledger.failed(one.ctx, one.err)
	}
	if len(one.numbers) == 0 {
		return d, false, nil
	}
	d = quota.Decision{Admitted: true, States: make([]quota.State, len(o.Rules))}
	own, perRule := one.answered()
	if own > 0 {
		d.Expire = time.UnixMilli(one.numbers[0])
	}
	for i := range o.Rules {
		r, n, s := &o.Rules[i], one.numbers[own+perRule*i:][:perRule], &d.States[i]
		s.Rule, s.Limit, s.Used = r.ID, r.Own, n[0]
		if own > 0 {
			s.Held = n[1]
		}
		s.Remaining = max(0, s.Limit-s.Used-s.Held)
		if back := n[perRule-1]; back > 0 {
			s.Reset = time.UnixMilli(back)
		}
	}
	return d, true, nil
}

// run runs the script for those who still wait: together for those who came about the same time, as all did unless Redis
// just kept somebody waiting.
func (t *taker) run(batch []*taking) {
	for len(batch) > 0 {
		together := 1
		for together < len(batch) && batch[together].expire.Sub(batch[0].expire) < aboutTheSameTime {
			together++
		}
		t.runTogether(batch[:together:together])
		batch = batch[together:]
	}
}

// runTogether gives them the time that the first has left.
func (t *taker) runTogether(batch []*taking) {
	ctx, cancel := context.WithDeadline(context.Background(), batch[0].expire)
	defer cancel()
	batch = slices.DeleteFunc(batch, func(one *taking) bool {
		late := cmp.Or(ctx.Err(), one.ctx.Err())
		if late != nil {
			one.end(nil, late)
		}
		return late != nil
	})
	if len(batch) == 0 {
		return
	}
	numbers, err := t.evaluate(ctx, batch)
	for _, one := range batch {
		own, perRule := one.answered()
		n := own + perRule*len(one.windows)
		switch {
		case err != nil:
			one.end(nil, err)
		case numbers[0] == 1:
			one.end(numbers[1:][:n:n], nil)
			numbers = numbers[1+n:]
		default:
			one.end(nil, nil)
			numbers = numbers[1:]
		}
	}
}

// evaluate runs the script. Arguments are pointers where that spares a copy.
func (t *taker) evaluate(ctx context.Context, batch []*taking) ([]int64, error) {
	keys := 0
	for _, one := range batch {
		keys += len(one.keys)
	}
	var rules []any // of all operations
	operations := make([]any, 0, 5*len(batch)+3*keys)
	numbers := make(map[window]int)
	for _, one := range batch {
		operations = append(operations, &one.lease, &one.fingerprint, len(one.windows))
		if one.lease > 0 {
			operations = append(operations, &one.user, &one.note)
		}
		for i := range one.windows {
			w := &one.windows[i]
			number, told := numbers[w.window]
			if !told {
				number = len(numbers) + 1
				numbers[w.window] = number
				rules = append(rules, w.kind, w.limit, flag(w.archived), flag(w.keep), w.from, w.to)
			}
			operations = append(operations, number, &w.units)
			if one.lease > 0 {
				operations = append(operations, &w.lease)
			}
		}
	}
	script := t.ledger.scripts.plain
	command := func(name, text string) *redis.IntSliceCmd {
		args := append(make([]any, 0, 7+keys+len(rules)+len(operations)), name, text, keys)
		for _, one := range batch {
			for i := range one.keys {
				args = append(args, &one.keys[i])
			}
		}
		args[3] = batch[0].keys[0] // the client of a Cluster looks at it
		args = append(args, t.ledger.consumed.Milliseconds(), remembered.Milliseconds(), known.Milliseconds(), len(numbers))
		args = append(args, rules...)
		return redis.NewIntSliceCmd(ctx, append(args, operations...)...)
	}
	cmd, err := evaluate(script.hash, script.text, command, func(cmd redis.Cmder) error { return t.ledger.client.Process(ctx, cmd) })
	return cmd.Val(), err
}

// taking prepares what the script is told of an operation.
func (l *Ledger) taking(ctx context.Context, o *quota.Operation) *taking {
	now, whose := time.Now(), userSubject(o.User)
	one := &taking{ctx: ctx, expire: now.Add(l.timeout), fingerprint: fingerprint(*o), lease: o.Lease.Milliseconds(),
		keys: make([]string, 0, 2+2*len(o.Rules)), windows: make([]windowUnits, len(o.Rules)), done: make(chan struct{})}
	prefix := l.prefix + string(whose)
	one.keys = append(one.keys, prefix+"o:"+o.ID)
	if one.lease > 0 {
		one.keys = append(one.keys, l.index(o.ID))
	}
	for i := range o.Rules {
		r, w := &o.Rules[i], &one.windows[i]
		var room [64]byte
		kind, shape := appendShape(room[:0], &r.Rule)
		w.window = window{kind: kind, limit: r.Own, keep: r.OnAbandoned == quota.AbandonedCharge, from: r.Window.Fixed.Milliseconds()}
		w.units = o.Cost.In(r.Unit)
		if r.Window.Calendar != nil {
			begin, end := r.Window.Period(now)
			w.from, w.to = begin.UnixMilli(), end.UnixMilli()
		}
		if l.archives(r) {
			w.archived = true
			one.archived = append(one.archived, whose.counter(r.ID, string(shape)))
		}
		one.keys = append(one.keys, prefix+"c:"+string(r.ID)+":"+string(shape))
		if one.lease > 0 {
			one.keys = append(one.keys, prefix+"l:"+string(r.ID)+":"+string(shape))
			w.lease = strconv.FormatInt(w.units, 10) + " " + o.ID
		}
	}
	return one
}

// index is the key that tells whose a reservation is.
func (l *Ledger) index(operation string) string { return l.prefix + "{op:" + operation + "}" }

// known is how much longer than its lease it is known whose a reservation is.
const known = 2*remembered + unsure
