package grpcserver

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	gostrings "strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
)

// maxRateLimits is how many rules the headers tell of: proxies accept few kilobytes.
const maxRateLimits = 8

// tellRateLimits tells callers by HTTP how rules stand, or those of them that have a state, in header fields.
// Callers by gRPC, who read the body, are spared them.
func tellRateLimits(ctx context.Context, rules []quota.Limited, states []quota.State) {
	if !overHTTP(ctx) {
		return
	}
	policy, limits := rateLimits(rules, states, time.Now())
	if policy != "" {
		_ = grpc.SetHeader(ctx, metadata.Pairs("RateLimit-Policy", policy, "RateLimit", limits)) // fails only outside of a call
	}
}

// tellRetryAfter tells refused callers by HTTP how long to wait.
func tellRetryAfter(ctx context.Context, wait time.Duration) {
	if wait > 0 && overHTTP(ctx) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("Retry-After", wholeSeconds(wait)))
	}
}

// rateLimits words rules as the fields RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-10. Rules
// that never deny are left out, and so are those that could not be asked; the tightest come first.
func rateLimits(rules []quota.Limited, states []quota.State, now time.Time) (policy, limits string) {
	byID := make(map[id.Quota]*quota.Limited)
	for i := range rules {
		if !rules[i].Shadow {
			byID[rules[i].ID] = &rules[i]
		}
	}
	told := slices.DeleteFunc(slices.Clone(states), func(s quota.State) bool { return s.ByOutage || byID[s.Rule] == nil })
	share := func(s quota.State) float64 { return float64(s.Remaining) / float64(max(1, s.Limit)) }
	slices.SortStableFunc(told, func(a, b quota.State) int { return cmp.Compare(share(a), share(b)) })
	var policies, standings []string
	for _, s := range told[:min(len(told), maxRateLimits)] {
		policies = append(policies, policyItem(byID[s.Rule], now))
		standings = append(standings, standingItem(byID[s.Rule], s, now))
	}
	return gostrings.Join(policies, ", "), gostrings.Join(standings, ", ")
}

// policyItem is what a rule allows. Identifiers need no escapes between quotes.
func policyItem(r *quota.Limited, now time.Time) string {
	item := `"` + string(r.ID) + `";q=` + strconv.FormatInt(r.Own, 10)
	switch r.Unit {
	case quota.UnitTokens:
		item += `;qu="tokens"`
	case quota.UnitConcurrentCalls:
		item += `;qu="concurrent-requests"`
	}
	if window := windowOf(r, now); window > 0 {
		item += ";w=" + wholeSeconds(window)
	}
	return item
}

// windowOf is over what time a rule counts; 0: none.
func windowOf(r *quota.Limited, now time.Time) time.Duration {
	switch w := r.Window; {
	case w.Fixed != 0:
		return w.Fixed
	case w.Calendar != nil:
		start, end := w.Period(now)
		return end.Sub(start)
	case w.TokenBucket != nil: // until an empty one is full
		return time.Duration(float64(r.Own) / w.TokenBucket.RefillPerSecond * float64(time.Second))
	}
	return 0
}

// untilReset is in how long some of what was used of a rule comes back. When it does is by the clock of its counter, and
// now is by this server's, which may be far apart: but nobody waits for less than no time, or for more than the rule's.
func untilReset(r *quota.Limited, s *quota.State, now time.Time) time.Duration {
	longest := windowOf(r, now)
	if r.Window.Fixed != 0 {
		longest += longest/quota.Slots + time.Millisecond
	}
	return min(max(0, s.Reset.Sub(now)), longest)
}

// standingItem is what remains of a rule, and in how many seconds more comes back.
func standingItem(r *quota.Limited, s quota.State, now time.Time) string {
	item := `"` + string(s.Rule) + `";r=` + strconv.FormatInt(s.Remaining, 10)
	if s.Reset.IsZero() {
		return item
	}
	return item + ";t=" + wholeSeconds(untilReset(r, &s, now))
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}
