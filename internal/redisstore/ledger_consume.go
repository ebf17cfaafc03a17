package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/quota"
)

// consumer consumes for many callers with one script, consume.lua, in the commonest case. It takes half of what a
// script for each of them takes, most of which is to begin and to name what it works on.
type consumer struct {
	ledger  *Ledger
	batches batches[*consumption]
}

// consumption is what a caller asks for, and what becomes of it.
type consumption struct {
	ctx         context.Context
	expire      time.Time // when the caller does not wait any more
	call        *call
	fingerprint string
	windows     []windowUnits // of its rules
	done        chan struct{} // closed when it was sent and answered
	numbers     []int64       // the answer: nothing if the script does not decide it
	err         error
}

// window is what the script is told of a rule, once for all operations of a batch.
type window struct {
	kind     string
	limit    int64
	archived bool
	from, to int64
}

type windowUnits struct {
	window
	units int64
}

func newConsumer(l *Ledger) *consumer {
	c := &consumer{ledger: l}
	c.batches.send = func(batch []*consumption) { c.run(context.Background(), batch) }
	return c
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

// take consumes, or says that it does not decide.
func (c *consumer) take(ctx context.Context, o *quota.Operation) (d quota.Decision, decided bool, err error) {
	one := c.ledger.consume(ctx, o)
	if err := c.wait(one); err != nil {
		one.call.changed() // perhaps
		return d, false, c.ledger.failed(ctx, err)
	}
	if len(one.numbers) == 0 {
		return d, false, nil
	}
	one.call.changed()
	d = quota.Decision{Admitted: true, States: make([]quota.State, len(o.Rules))}
	for i := range o.Rules {
		r, used, back := &o.Rules[i], one.numbers[2*i], one.numbers[2*i+1]
		s := quota.State{Rule: r.ID, Limit: r.Own, Used: used, Remaining: max(0, r.Own-used)}
		if back > 0 {
			s.Reset = time.UnixMilli(back)
		}
		d.States[i] = s
	}
	return d, true, nil
}

// wait has it sent, with others where that is possible.
func (c *consumer) wait(one *consumption) error {
	if c.ledger.pipe == nil {
		c.run(one.ctx, []*consumption{one})
		return one.err
	}
	if err := c.batches.add(one); err != nil {
		return err
	}
	timer := time.NewTimer(c.ledger.timeout)
	defer timer.Stop()
	select {
	case <-one.done:
		return one.err
	case <-one.ctx.Done():
		return one.ctx.Err()
	case <-timer.C:
		return context.DeadlineExceeded
	}
}

// run runs the script for those who still wait.
func (c *consumer) run(ctx context.Context, batch []*consumption) {
	ctx, cancel := context.WithTimeout(ctx, c.ledger.timeout)
	defer cancel()
	var sent []*consumption
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
	numbers, err := c.evaluate(ctx, sent, keys)
	for _, one := range sent {
		one.err = err
		if err == nil {
			if n := 2 * len(one.windows); numbers[0] == 1 {
				one.numbers, numbers = numbers[1:][:n:n], numbers[1+n:]
			} else {
				numbers = numbers[1:]
			}
		}
		close(one.done)
	}
}

func (c *consumer) evaluate(ctx context.Context, batch []*consumption, keys int) ([]int64, error) {
	script := c.ledger.scripts.consume
	var rules []any // of all operations
	operations := make([]any, 0, 2*len(batch)+2*keys)
	numbers := make(map[window]int)
	for _, one := range batch {
		operations = append(operations, one.fingerprint, len(one.windows))
		for i := range one.windows {
			w := &one.windows[i]
			number, told := numbers[w.window]
			if !told {
				number = len(numbers) + 1
				numbers[w.window] = number
				rules = append(rules, w.kind, w.limit, flag(w.archived), w.from, w.to)
			}
			operations = append(operations, number, w.units)
		}
	}
	command := func(name, text string) *redis.IntSliceCmd {
		args := append(make([]any, 0, 5+keys+len(rules)+len(operations)), name, text, keys)
		for _, one := range batch {
			args = append(args, one.call.keys...)
		}
		args = append(append(args, c.ledger.consumed.Milliseconds(), len(numbers)), rules...)
		return redis.NewIntSliceCmd(ctx, append(args, operations...)...)
	}
	cmd, err := evaluate(script.hash, script.text, command, func(cmd redis.Cmder) error { return c.ledger.client.Process(ctx, cmd) })
	return cmd.Val(), err
}

// consume prepares what the script is told of an operation.
func (l *Ledger) consume(ctx context.Context, o *quota.Operation) *consumption {
	now := time.Now()
	c := &call{ledger: l, whose: userSubject(o.User)}
	c.prefix = l.prefix + string(c.whose)
	c.keys = append(make([]any, 0, 1+len(o.Rules)), c.prefix+"o:"+o.ID)
	one := &consumption{ctx: ctx, expire: now.Add(l.timeout), call: c, fingerprint: fingerprint(*o), windows: make([]windowUnits, len(o.Rules)),
		done: make(chan struct{})}
	for i := range o.Rules {
		r := &o.Rules[i]
		kind, shape := shapeOf(&r.Rule)
		c.keys = append(c.keys, c.prefix+"c:"+string(r.ID)+":"+shape)
		w := window{kind: kind, limit: r.Own, archived: c.archive(r, shape), from: r.Window.Fixed.Milliseconds()}
		if r.Window.Calendar != nil {
			begin, end := r.Window.Period(now)
			w.from, w.to = begin.UnixMilli(), end.UnixMilli()
		}
		one.windows[i] = windowUnits{w, o.Cost.In(r.Unit)}
	}
	return one
}
