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
		standings = append(standings, standingItem(s, now))
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
	var window time.Duration
	switch w := r.Window; {
	case w.Fixed != 0:
		window = w.Fixed
	case w.Calendar != nil:
		start, end := w.Period(now)
		window = end.Sub(start)
	case w.TokenBucket != nil: // until an empty one is full
		window = time.Duration(float64(r.Own) / w.TokenBucket.RefillPerSecond * float64(time.Second))
	default:
		return item
	}
	return item + ";w=" + wholeSeconds(window)
}

// standingItem is what remains of a rule, and in how many seconds more comes back.
func standingItem(s quota.State, now time.Time) string {
	item := `"` + string(s.Rule) + `";r=` + strconv.FormatInt(s.Remaining, 10)
	if s.Reset.IsZero() {
		return item
	}
	return item + ";t=" + wholeSeconds(max(0, s.Reset.Sub(now)))
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}
