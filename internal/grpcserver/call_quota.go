package grpcserver

import (
	"context"
	"slices"
	"time"

	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// limits returns the rules that count the call, with the limits of its user.
func (c *deciding) limits(ctx context.Context) ([]quota.Limited, error) {
	catalog := c.facts.World.Catalog
	n, _ := catalog.Number(c.answer.Tool)
	rules := catalog.Rules(n)
	if len(rules) == 0 {
		return nil, nil
	}
	account, err := c.replica.Account(ctx, c.rests.User)
	if err != nil {
		return nil, err
	}
	limits := account.Overrides.Apply(rules, c.now())
	if c.request.EstimatedTokens == nil {
		for _, r := range limits {
			if r.Unit == quota.UnitTokens {
				return nil, fault.Invalid(fault.Violation{Field: "estimated_tokens", Description: "is required: quota " + string(r.ID) + " counts tokens"})
			}
		}
	}
	return limits, nil
}

// held is where the call's quotas are held.
func (c *deciding) held() call.Held {
	catalog := c.facts.World.Catalog
	n, _ := catalog.Number(c.answer.Tool)
	switch rules := catalog.Rules(n); {
	case len(rules) == 0:
		return call.HeldNowhere
	case slices.ContainsFunc(rules, func(r quota.Limited) bool { return r.Scope != quota.ScopeNode }):
		return call.HeldByAll
	default:
		return call.HeldByNode
	}
}

// record writes down what is remembered of the call.
func (c *deciding) record(held call.Held) call.Written {
	r := call.Record{Call: c.question.Call, Content: c.question.content, User: c.rests.User, Chat: c.question.Chat, Tool: c.answer.Tool,
		Function: c.answer.Function, Tokens: c.request.GetEstimatedTokens(), Held: held, Lease: c.question.lease, Turn: c.turn, Mode: c.mode}
	return r.Write()
}

// reserve reserves the call's quotas, or makes the answer their refusal.
func (c *deciding) reserve(ctx context.Context) (again bool, err error) {
	limits, err := c.limits(ctx)
	if len(limits) == 0 || err != nil {
		return false, err
	}
	name := c.question.Call
	o := quota.Operation{ID: operationOf(name), User: c.rests.User, Tool: c.answer.Tool, Rules: limits,
		Cost: quota.Cost{Calls: 1, Tokens: c.request.GetEstimatedTokens()}, Lease: c.question.lease, Note: c.written.Text}
	c.taken, err = c.gate.Take(ctx, o)
	f, _ := fault.As(err)
	switch {
	case f != nil && f.Reason == fault.ReasonRequestIDReused:
		return false, call.Reused(name)
	case f != nil && f.Kind == fault.Unavailable:
		c.unclaim()
		c.rests.Uncountable(&c.question.Request, &c.answer)
		return false, nil
	case err != nil:
		return false, err
	case c.taken.Over:
		return false, call.Over(name)
	}
	c.rules = statesToProto(c.facts.World, c.taken.States)
	tellRateLimits(ctx, limits, c.taken.States)
	if !c.taken.Admitted {
		c.unclaim()
		c.exhausted(c.taken.States, func(s *quota.State) bool { return slices.Contains(c.taken.Denied, s.Rule) })
		c.taken.Expire = time.Time{}
	}
	return false, nil
}

// look tells whether the call's quotas would suffice.
func (c *deciding) look(ctx context.Context) error {
	limits, err := c.limits(ctx)
	if len(limits) == 0 || err != nil {
		return err
	}
	states, err := c.gate.States(ctx, c.rests.User, limits)
	if f, ok := fault.As(err); ok && f.Kind == fault.Unavailable {
		c.rests.Uncountable(&c.question.Request, &c.answer)
		return nil
	} else if err != nil {
		return err
	}
	c.rules = statesToProto(c.facts.World, states)
	cost := quota.Cost{Calls: 1, Tokens: c.request.GetEstimatedTokens()}
	c.exhausted(states, func(s *quota.State) bool {
		rule := &limits[slices.IndexFunc(limits, func(l quota.Limited) bool { return l.ID == s.Rule })]
		short := !rule.Shadow && s.Remaining < cost.In(rule.Unit)
		if short && s.RetryAfter == 0 {
			s.RetryAfter = -1
			if cost.In(rule.Unit) <= s.Limit {
				s.RetryAfter = max(time.Second, untilReset(rule, s, time.Now())) // as far as a look tells
			}
		}
		return short
	})
	return nil
}

// exhausted makes the answer the refusal of those rules that are used up, if any is.
func (c *deciding) exhausted(states []quota.State, denied func(*quota.State) bool) {
	wait, never, any := time.Duration(0), false, false
	for i := range states {
		if s := &states[i]; denied(s) {
			any, never = true, never || s.RetryAfter < 0
			wait = max(wait, s.RetryAfter, time.Millisecond)
		}
	}
	if never {
		wait = 0
	}
	if any {
		c.rests.Exhausted(&c.question.Request, &c.answer, wait)
	}
}
