package grpcserver

import (
	"fmt"
	gostrings "strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

func TestRulesAsRateLimitFields(t *testing.T) {
	now := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
	calendar := func(period quota.Period) quota.Window {
		return quota.Window{Calendar: &quota.Calendar{Period: period, Zone: "Europe/Berlin"}}
	}
	for _, test := range []struct {
		rule           quota.Rule
		own            int64
		state          quota.State
		policy, limits string
	}{
		{quota.Rule{Unit: quota.UnitCalls, Window: quota.Window{Fixed: time.Minute}}, 10,
			quota.State{Limit: 10, Used: 3, Remaining: 7, Reset: now.Add(1500 * time.Millisecond)}, `"q";q=10;w=60`, `"q";r=7;t=2`},
		{quota.Rule{Unit: quota.UnitCalls, Window: quota.Window{Fixed: 1500 * time.Millisecond}}, 10,
			quota.State{Limit: 10, Remaining: 10}, `"q";q=10;w=2`, `"q";r=10`},
		{quota.Rule{Unit: quota.UnitTokens, Window: calendar(quota.PeriodDay)}, 500, // a day of 23 hours
			quota.State{Limit: 500, Used: 600, Reset: now.Add(-time.Second)}, `"q";q=500;qu="tokens";w=82800`, `"q";r=0;t=0`},
		{quota.Rule{Unit: quota.UnitCalls, Window: quota.Window{TokenBucket: &quota.TokenBucket{RefillPerSecond: 0.5, Burst: 10}}}, 10,
			quota.State{Limit: 10, Remaining: 9, Reset: now.Add(2 * time.Second)}, `"q";q=10;w=20`, `"q";r=9;t=2`},
		{quota.Rule{Unit: quota.UnitConcurrentCalls}, 4,
			quota.State{Limit: 4, Held: 1, Remaining: 3}, `"q";q=4;qu="concurrent-requests"`, `"q";r=3`},
		{quota.Rule{Unit: quota.UnitCalls, Window: quota.Window{Fixed: time.Minute}, Shadow: true}, 10, quota.State{}, "", ""},
		{quota.Rule{Unit: quota.UnitCalls, Window: quota.Window{Fixed: time.Minute}}, 10, quota.State{ByOutage: true}, "", ""},
	} {
		test.rule.ID, test.state.Rule = "q", "q"
		policy, limits := rateLimits([]quota.Limited{{Rule: test.rule, Own: test.own}}, []quota.State{test.state}, now)
		if policy != test.policy || limits != test.limits {
			t.Errorf("got %s and %s, want %s and %s", policy, limits, test.policy, test.limits)
		}
	}
}

func TestTheTightestOfManyRulesAreTold(t *testing.T) {
	var rules []quota.Limited
	var states []quota.State
	for i := range 2 * maxRateLimits {
		name := id.Quota(fmt.Sprintf("q%02d", i))
		rules = append(rules, quota.Limited{Rule: quota.Rule{ID: name, Unit: quota.UnitConcurrentCalls}, Own: 100})
		states = append(states, quota.State{Rule: name, Limit: 100, Remaining: int64(i % 2 * 50)})
	}
	_, limits := rateLimits(rules, states, time.Now())
	if got, want := limits, `"q00";r=0, "q02";r=0, "q04";r=0, "q06";r=0, "q08";r=0, "q10";r=0, "q12";r=0, "q14";r=0`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	policy, _ := rateLimits(rules[:2], states[:2], time.Now())
	if want := `"q00";q=100;qu="concurrent-requests", "q01";q=100;qu="concurrent-requests"`; policy != want {
		t.Errorf("got %s, want %s", policy, want)
	}
	if gostrings.Count(limits, ",") != maxRateLimits-1 {
		t.Errorf("got %s", limits)
	}
}
