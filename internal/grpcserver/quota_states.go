package grpcserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	gostrings "strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// statesOf returns how the rules of several tools stand. Each rule is asked for once, and all of them together.
func statesOf(ctx context.Context, gate *quota.Gate, user id.User, tools [][]quota.Limited) ([][]quota.State, error) {
	byID := func(a, b quota.Limited) int { return cmp.Compare(a.ID, b.ID) }
	all := slices.Concat(tools...)
	slices.SortFunc(all, byID)
	all = slices.CompactFunc(all, func(a, b quota.Limited) bool { return a.ID == b.ID })
	if len(all) == 0 {
		return make([][]quota.State, len(tools)), nil
	}
	found, err := gate.States(ctx, user, all)
	if err != nil {
		return nil, err
	}
	states := make([][]quota.State, len(tools))
	for i, rules := range tools {
		for _, r := range rules {
			if k, ok := slices.BinarySearchFunc(all, r, byID); ok {
				states[i] = append(states[i], found[k])
			}
		}
	}
	return states, nil
}

func statesToProto(w *effective.World, states []quota.State) []*toolgrantv1.QuotaState {
	if len(states) == 0 {
		return nil
	}
	list := make([]*toolgrantv1.QuotaState, len(states))
	all := make([]struct {
		state toolgrantv1.QuotaState
		reset timestamppb.Timestamp
	}, len(states)) // one allocation, not two for each
	for i := range states {
		list[i] = &all[i].state
		putState(list[i], w, &states[i], &all[i].reset)
	}
	return list
}

var (
	scopeToProto = map[quota.Scope]toolgrantv1.QuotaScope{
		quota.ScopeUser:   toolgrantv1.QuotaScope_QUOTA_SCOPE_USER,
		quota.ScopeNode:   toolgrantv1.QuotaScope_QUOTA_SCOPE_NODE,
		quota.ScopeSystem: toolgrantv1.QuotaScope_QUOTA_SCOPE_SYSTEM,
	}
	unitToProto = map[quota.Unit]toolgrantv1.QuotaUnit{
		quota.UnitCalls:           toolgrantv1.QuotaUnit_QUOTA_UNIT_CALLS,
		quota.UnitTokens:          toolgrantv1.QuotaUnit_QUOTA_UNIT_TOKENS,
		quota.UnitConcurrentCalls: toolgrantv1.QuotaUnit_QUOTA_UNIT_CONCURRENT_CALLS,
	}
)

// putState tells how a rule stands. One that a reservation was made under may be gone by now.
func putState(p *toolgrantv1.QuotaState, w *effective.World, s *quota.State, reset *timestamppb.Timestamp) {
	p.QuotaId, p.Limit, p.Used, p.Held, p.Remaining, p.DecidedByOutage = string(s.Rule), s.Limit, s.Used, s.Held, s.Remaining, s.ByOutage
	if !s.Reset.IsZero() {
		reset.Seconds, reset.Nanos = s.Reset.Unix(), int32(s.Reset.Nanosecond())
		p.ResetTime = reset
	}
	if rule := w.Catalog.Rule(s.Rule); rule != nil {
		p.Scope, p.Unit = scopeToProto[rule.Scope], unitToProto[rule.Unit]
		p.Shadow, p.NearLimit = rule.Shadow, rule.Near(*s)
	}
}

// denied is the refusal of an operation.
func denied(o *quota.Operation, d *quota.Decision) error {
	f := &fault.Fault{Kind: fault.ResourceExhausted, Reason: fault.ReasonQuotaExceeded}
	var names []string
	never := false
	for _, s := range d.States {
		if !slices.Contains(d.Denied, s.Rule) {
			continue
		}
		rule := o.Rules[slices.IndexFunc(o.Rules, func(r quota.Limited) bool { return r.ID == s.Rule })]
		unit := gostrings.ToLower(gostrings.ReplaceAll(string(rule.Unit), "_", " "))
		subject := gostrings.ToLower(string(rule.Scope))
		if rule.Scope == quota.ScopeUser {
			subject = "user:" + string(o.User)
		}
		f.Denials = append(f.Denials, fault.Denial{Quota: string(s.Rule), Subject: subject, Unit: string(rule.Unit), Limit: s.Limit, Used: s.Used, Held: s.Held,
			Description: fmt.Sprintf("%d %s asked for; of %d, %d are used and %d held", o.Cost.In(rule.Unit), unit, s.Limit, s.Used, s.Held)})
		names = append(names, string(s.Rule))
		never = never || s.RetryAfter < 0
		f.RetryAfter = max(f.RetryAfter, s.RetryAfter, time.Millisecond)
	}
	if never {
		f.RetryAfter = 0
	}
	f.Message = "quota exceeded: " + gostrings.Join(names, ", ")
	return f
}
