package redisstore

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

//go:embed lua
var lua embed.FS

// script is one that has so many arguments of its own before the rules'.
type script struct {
	text string
	hash string
	own  int
}

type scripts struct{ plain, take, hold, settle, states, reset, slice *script }

// Only a Cluster has slots that move.
var (
	clusterScripts = newScripts(strings.NewReplacer())
	ledgerScripts  = newScripts(strings.NewReplacer(text("moving"), ""))
)

// newScripts puts scripts together, and changes them as tests need it.
func newScripts(change *strings.Replacer) *scripts {
	begin := text("moving") + text("clock") + text("master")
	kinds := text("sliding") + text("calendar") + text("bucket") + text("places") + text("counters")
	finish := func(content string, own int) *script {
		content = change.Replace(content)
		return &script{text: content, hash: redis.NewScript(content).Hash(), own: own}
	}
	script := func(name string, own int) *script {
		return finish(fmt.Sprintf("local FIRST = %d\n", own+1)+begin+text("common")+text("restore")+kinds+text(name), own)
	}
	return &scripts{
		plain: finish(begin+text("plain"), 1),
		take:  script("take", 8), hold: script("hold", 5), settle: script("settle", 5),
		states: script("states", 0), reset: script("reset", 0), slice: script("slice", 10),
	}
}

func text(name string) string {
	content, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(content)
}

// status is what a script answers first.
type status int64

const (
	denied         status = 0
	done           status = 1
	repeated       status = 2
	anotherContent status = 3
	elsewhen       status = 4 // the calendar's periods are not those of Redis's now
	unknown        status = 5
	released       status = 6
	committed      status = 7
	outdated       status = 8
	restore        status = 9  // what the archive knows is needed
	over           status = 10 // repeated, of a reservation that was settled
	another        status = 11 // the reservation is not the one that is meant
)

const (
	perRule  = 11 // arguments
	perState = 5  // numbers in an answer
)

// subject is whose counters a script decides about: what all their keys begin with, a hash tag.
type subject string

func userSubject(user id.User) subject { return subject("{u:" + user + "}:") }

func systemSubject(rule id.Quota) subject { return subject("{s:" + rule + "}:") }

// archived is the subject as the archive calls it.
func (s subject) archived() string { return string(s[1 : len(s)-2]) }

// counter is a rule's counter as the archive calls it.
func (s subject) counter(rule id.Quota, shape string) quota.CounterName {
	return quota.CounterName{Subject: s.archived(), Rule: rule, Shape: shape}
}

// call is a script with its keys and arguments.
type call struct {
	ledger *Ledger
	script *script
	whose  subject
	prefix string // what the subject's keys begin with
	keys   []any
	args   []any
	rules  []*quota.Limited

	archived []quota.CounterName // of rules whose counters are; the others' have no names here
	known    []any               // what the archive knows of each rule, once it was asked
}

// call prepares a script. The own key is one of the subject's.
func (l *Ledger) call(s *script, whose subject, own string, rules int) *call {
	prefix := l.prefix + string(whose)
	c := &call{ledger: l, script: s, whose: whose, prefix: prefix}
	c.keys = append(make([]any, 0, 1+2*rules), prefix+own)
	c.args = make([]any, 0, s.own+rules*perRule)
	return c
}

func (c *call) argue(values ...any) { c.args = append(c.args, values...) }

// rule adds a rule of which units are taken, or, when settling, were reserved and now cost so much.
func (c *call) rule(r *quota.Limited, units, cost int64) {
	kind, shape := shapeOf(&r.Rule)
	name := string(r.ID) + ":" + shape
	c.keys = append(c.keys, c.prefix+"c:"+name, c.prefix+"l:"+name)
	c.rules = append(c.rules, r)
	var window any = 0
	switch kind {
	case "s":
		window = r.Window.Fixed.Milliseconds()
	case "b":
		window = decimal(r.Window.TokenBucket.RefillPerSecond)
	}
	c.argue(kind, r.Own, units, cost, flag(r.Shadow), flag(r.OnAbandoned == quota.AbandonedCharge), window, 0, 0, 0, flag(c.archive(r, shape)))
}

// archive notes that a rule's counter is archived, if so.
func (c *call) archive(r *quota.Limited, shape string) bool {
	archived := c.ledger.archives(r)
	if archived {
		c.archived = append(c.archived, c.whose.counter(r.ID, shape))
	}
	return archived
}

// decimal has no exponent: miniredis's Lua reads none that is negative.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// shapeOf tells a rule's kind of window, as the scripts call it, and what its counter counts. No shape has a colon.
func shapeOf(r *quota.Rule) (kind, shape string) {
	kind, text := appendShape(nil, r)
	return kind, string(text)
}

func appendShape(text []byte, r *quota.Rule) (kind string, shape []byte) {
	if r.Unit == quota.UnitConcurrentCalls {
		return "p", append(text, 'p')
	}
	text = append(text, r.Unit[0]|' ') // in lower case
	switch w := &r.Window; {
	case w.Calendar != nil:
		text = append(append(text, 'c'), w.Calendar.Period...)
		return "c", append(append(text, '@'), w.Calendar.Zone...)
	case w.TokenBucket != nil:
		return "b", append(append(text, 'b'), decimal(w.TokenBucket.RefillPerSecond)...)
	default:
		return "s", strconv.AppendInt(append(text, 's'), w.Fixed.Milliseconds(), 10)
	}
}

// date sets the calendar's periods: the one of an instant, and those beside it.
func (c *call) date(now time.Time) {
	for i, r := range c.rules {
		if r.Window.Calendar == nil {
			continue
		}
		start, end := r.Window.Period(now)
		before, _ := r.Window.Period(start.Add(-time.Millisecond))
		_, after := r.Window.Period(end)
		for k, edge := range []time.Time{before, start, end, after} {
			c.args[c.script.own+i*perRule+6+k] = edge.UnixMilli()
		}
	}
}

// run runs the script: again if Redis's time is another one than this node's, or if counters must be restored.
func (c *call) run(ctx context.Context) (a answer, err error) {
	now := time.Now()
	for range 4 {
		c.date(now)
		var numbers []int64
		err := c.ledger.within(ctx, func(ctx context.Context) (err error) {
			numbers, err = c.evaluate(ctx)
			return err
		})
		if err != nil {
			c.ledger.changed(c.archived) // perhaps
			return answer{}, err
		}
		a = answer{status: status(numbers[0]), numbers: numbers}
		switch a.status {
		case elsewhen:
			now = time.UnixMilli(numbers[1])
		case restore:
			if err := c.ask(ctx); err != nil {
				return answer{}, err
			}
		default:
			if len(numbers) > 2+perState*len(c.rules) {
				c.ledger.changed(c.archived)
			}
			return a, nil
		}
	}
	return a, fmt.Errorf("counters in Redis: no period of the calendar for %v, or no counter stays there", now)
}

// evaluate runs a script by its hash; a Redis that does not know it is told the text.
func evaluate[C redis.Cmder](hash, text string, command func(name, script string) C, process func(redis.Cmder) error) (C, error) {
	cmd := command("EVALSHA", hash)
	err := process(cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = command("EVAL", text)
		err = process(cmd)
	}
	return cmd, err
}

func (c *call) evaluate(ctx context.Context) ([]int64, error) {
	cmd, err := evaluate(c.script.hash, c.script.text,
		func(name, script string) *redis.Cmd { return c.command(ctx, name, script) },
		func(cmd redis.Cmder) error { return c.ledger.process(ctx, cmd) })
	if err != nil {
		return nil, err
	}
	return cmd.Int64Slice()
}

func (c *call) command(ctx context.Context, name, script string) *redis.Cmd {
	args := append(make([]any, 0, 3+len(c.keys)+len(c.args)+len(c.known)), name, script, len(c.keys))
	return redis.NewCmd(ctx, append(append(append(args, c.keys...), c.args...), c.known...)...)
}

// answer is what a script returned: status, end of the lease, five numbers of each rule, and one more if a counter
// changed that is archived.
type answer struct {
	status  status
	numbers []int64
}

func (a answer) state(i int) []int64 { return a.numbers[2+i*perState:][:perState] }

func (a answer) denied(i int) bool { return a.state(i)[3] == 1 }

func (a answer) decision(rules []quota.Limited) quota.Decision {
	d := quota.Decision{Repeated: a.status == repeated || a.status == over, Over: a.status == over, States: make([]quota.State, len(rules))}
	if a.numbers[1] > 0 {
		d.Expire = time.UnixMilli(a.numbers[1])
	}
	for i := range rules {
		n := a.state(i)
		s := quota.State{Rule: rules[i].ID, Limit: rules[i].Own, Used: n[0], Held: n[1]}
		s.Remaining = max(0, s.Limit-s.Used-s.Held)
		if n[2] > 0 {
			s.Reset = time.UnixMilli(n[2])
		}
		s.RetryAfter = time.Duration(n[4]) * time.Millisecond
		d.States[i] = s
	}
	return d
}
