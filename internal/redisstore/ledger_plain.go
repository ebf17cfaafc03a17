package redisstore

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// taker takes for many callers with one script, plain.lua, in the commonest case. It takes half of what a script for
// each of them takes, most of which is to begin and to name what it works on.
type taker struct {
	ledger  *Ledger
	batches batches[*taking]
}

// taking is what a caller asks for, and what becomes of it.
type taking struct {
	ctx     context.Context
	expire  time.Time // when the caller does not wait any more
	call    *call     // its keys; it is not run
	own     []any     // what is told of the operation besides its rules
	windows []windowUnits
	lease   string        // what a lease is called after its units; empty: it consumes
	done    chan struct{} // closed when it was sent and answered
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
}

// answered is how many numbers the script answers of the operation, and of each rule of it.
func (t *taking) answered() (own, perRule int) {
	if t.lease == "" {
		return 0, 2
	}
	return 1, 3
}

func newTaker(l *Ledger) *taker {
	t := &taker{ledger: l}
	t.batches.send = func(batch []*taking) { t.run(context.Background(), batch) }
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
	one := t.ledger.taking(ctx, o, 0)
	one.own = append(one.own, 0, fingerprint(*o), len(o.Rules))
	return t.take(one, o)
}

// reserve reserves, or says that it does not decide. All keys must be in one Redis.
func (t *taker) reserve(ctx context.Context, o *quota.Operation, record string) (d quota.Decision, decided bool, err error) {
	one := t.ledger.taking(ctx, o, 1)
	one.own = append(one.own, o.Lease.Milliseconds(), fingerprint(*o), len(o.Rules), string(o.User), record)
	one.lease = " " + o.ID
	return t.take(one, o)
}

func (t *taker) take(one *taking, o *quota.Operation) (d quota.Decision, decided bool, err error) {
	if err := t.wait(one); err != nil {
		one.call.changed() // perhaps
		return d, false, t.ledger.failed(one.ctx, err)
	}
	if len(one.numbers) == 0 {
		return d, false, nil
	}
	one.call.changed()
	d = quota.Decision{Admitted: true, States: make([]quota.State, len(o.Rules))}
	own, perRule := one.answered()
	if own > 0 {
		d.Expire = time.UnixMilli(one.numbers[0])
	}
	for i := range o.Rules {
		r, n := &o.Rules[i], one.numbers[own+perRule*i:][:perRule]
		s := quota.State{Rule: r.ID, Limit: r.Own, Used: n[0]}
		if own > 0 {
			s.Held = n[1]
		}
		s.Remaining = max(0, s.Limit-s.Used-s.Held)
		if back := n[perRule-1]; back > 0 {
			s.Reset = time.UnixMilli(back)
		}
		d.States[i] = s
	}
	return d, true, nil
}

// wait has it sent, with others where that is possible.
func (t *taker) wait(one *taking) error {
	if t.ledger.pipe == nil {
		t.run(one.ctx, []*taking{one})
		return one.err
	}
	if err := t.batches.add(one); err != nil {
		return err
	}
	// Who gives up sooner is not waited for with a channel of his own: that takes more than what he would be spared.
	timer := timers.Get().(*time.Timer)
	timer.Reset(time.Until(one.expire))
	defer func() {
		timer.Stop()
		timers.Put(timer)
	}()
	select {
	case <-one.done:
		return one.err
	case <-timer.C:
		return cmp.Or(one.ctx.Err(), context.DeadlineExceeded)
	}
}

// timers are kept: a new one for each operation is garbage.
var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// run runs the script for those who still wait.
func (t *taker) run(ctx context.Context, batch []*taking) {
	ctx, cancel := context.WithTimeout(ctx, t.ledger.timeout)
	defer cancel()
	var sent []*taking
	keys, now := 0, time.Now()
	for _, one := range batch {
		if one.ctx.Err() == nil && now.Before(one.expire) {
			sent, keys = append(sent, one), keys+len(one.call.keys)
		} else {
			one.err = context.DeadlineExceeded
			close(one.done)
		}
	}
	if len(sent) == 0 {
		return
	}
	numbers, err := t.evaluate(ctx, sent, keys)
	for _, one := range sent {
		one.err = err
		if err == nil {
			own, perRule := one.answered()
			if n := own + perRule*len(one.windows); numbers[0] == 1 {
				one.numbers, numbers = numbers[1:][:n:n], numbers[1+n:]
			} else {
				numbers = numbers[1:]
			}
		}
		close(one.done)
	}
}

func (t *taker) evaluate(ctx context.Context, batch []*taking, keys int) ([]int64, error) {
	script := t.ledger.scripts.plain
	var rules []any // of all operations
	operations := make([]any, 0, 5*len(batch)+3*keys)
	numbers := make(map[window]int)
	for _, one := range batch {
		operations = append(operations, one.own...)
		for i := range one.windows {
			w := &one.windows[i]
			number, told := numbers[w.window]
			if !told {
				number = len(numbers) + 1
				numbers[w.window] = number
				rules = append(rules, w.kind, w.limit, flag(w.archived), flag(w.keep), w.from, w.to)
			}
			operations = append(operations, number, w.units)
			if one.lease != "" {
				operations = append(operations, strconv.FormatInt(w.units, 10)+one.lease)
			}
		}
	}
	command := func(name, text string) *redis.IntSliceCmd {
		args := append(make([]any, 0, 7+keys+len(rules)+len(operations)), name, text, keys)
		for _, one := range batch {
			args = append(args, one.call.keys...)
		}
		args = append(args, t.ledger.consumed.Milliseconds(), remembered.Milliseconds(), known.Milliseconds(), len(numbers))
		args = append(args, rules...)
		return redis.NewIntSliceCmd(ctx, append(args, operations...)...)
	}
	cmd, err := evaluate(script.hash, script.text, command, func(cmd redis.Cmder) error { return t.ledger.client.Process(ctx, cmd) })
	return cmd.Val(), err
}

// taking prepares what the script is told of an operation; each rule of a reservation has leases, too.
func (l *Ledger) taking(ctx context.Context, o *quota.Operation, leases int) *taking {
	now := time.Now()
	c := &call{ledger: l, whose: userSubject(o.User)}
	c.prefix = l.prefix + string(c.whose)
	c.keys = append(make([]any, 0, (1+leases)*(1+len(o.Rules))), c.prefix+"o:"+o.ID)
	if leases > 0 {
		c.keys = append(c.keys, l.index(o.ID))
	}
	expire := now.Add(l.timeout)
	if own, ok := ctx.Deadline(); ok && own.Before(expire) {
		expire = own
	}
	one := &taking{ctx: ctx, expire: expire, call: c, own: make([]any, 0, 8), windows: make([]windowUnits, len(o.Rules)), done: make(chan struct{})}
	for i := range o.Rules {
		r := &o.Rules[i]
		kind, shape := shapeOf(&r.Rule)
		name := string(r.ID) + ":" + shape
		c.keys = append(c.keys, c.prefix+"c:"+name)
		if leases > 0 {
			c.keys = append(c.keys, c.prefix+"l:"+name)
		}
		w := window{kind: kind, limit: r.Own, archived: c.archive(r, shape), keep: r.OnAbandoned == quota.AbandonedCharge, from: r.Window.Fixed.Milliseconds()}
		if r.Window.Calendar != nil {
			begin, end := r.Window.Period(now)
			w.from, w.to = begin.UnixMilli(), end.UnixMilli()
		}
		one.windows[i] = windowUnits{w, o.Cost.In(r.Unit)}
	}
	return one
}

// index is the key that tells whose a reservation is.
func (l *Ledger) index(operation string) string { return l.prefix + "{op:" + operation + "}" }

// known is how much longer than its lease it is known whose a reservation is.
const known = 2*remembered + unsure
