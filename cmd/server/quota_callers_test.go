package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// quotaWindow is the length of the windows, several of which end while the callers are at work.
const quotaWindow = 2 * time.Second

// Limits of the rules, which the callers would take many times over.
const (
	userLimit   = 60
	systemLimit = 200
)

// quotaWorld has a tool with a USER rule, one with a SYSTEM rule, and one whose tokens are counted over a day.
func quotaWorld() *v1.Manifest {
	fixed := &v1.QuotaWindow{Kind: &v1.QuotaWindow_Fixed{Fixed: durationpb.New(quotaWindow)}}
	day := &v1.QuotaWindow{Kind: &v1.QuotaWindow_Calendar{Calendar: &v1.CalendarWindow{Period: v1.CalendarPeriod_CALENDAR_PERIOD_MONTH}}}
	limited := func(name string, scope v1.QuotaScope, unit v1.QuotaUnit, limit int64, window *v1.QuotaWindow) *v1.Tool {
		t := tool(name, "")
		t.Quotas = []*v1.Quota{{QuotaId: "rule-" + name, Scope: scope, Unit: unit, Limit: limit, Window: window}}
		return t
	}
	return &v1.Manifest{
		ToolTypes: []*v1.ToolType{{ToolTypeId: "type", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}},
		Tools: []*v1.Tool{
			limited("user", v1.QuotaScope_QUOTA_SCOPE_USER, v1.QuotaUnit_QUOTA_UNIT_CALLS, userLimit, fixed),
			limited("system", v1.QuotaScope_QUOTA_SCOPE_SYSTEM, v1.QuotaUnit_QUOTA_UNIT_CALLS, systemLimit, fixed),
			limited("tokens", v1.QuotaScope_QUOTA_SCOPE_USER, v1.QuotaUnit_QUOTA_UNIT_TOKENS, 1_000_000_000, day),
		},
		Users: []*v1.User{{UserId: "u"}},
	}
}

// admission is that a call was admitted at some instant between two.
type admission struct{ sent, told time.Time }

// callers ask for quotas through several nodes.
type callers struct {
	t       *testing.T
	nodes   []client
	number  atomic.Int64 // of operations
	group   sync.WaitGroup
	stopped atomic.Bool
	quiet   sync.RWMutex // whoever holds it, nobody asks meanwhile

	mu        sync.Mutex
	admitted  map[string][]admission // by tool
	committed int64                  // tokens, as acknowledged
	denied    int
	lost      int // attempts that nobody answered
}

// start lets so many callers ask each node, for each of the tools in turn.
func (c *callers) start(ctx context.Context, perNode int) {
	c.admitted = map[string][]admission{}
	for i := range perNode * len(c.nodes) {
		c.group.Go(func() {
			for n := i; !c.stopped.Load(); n++ {
				c.quiet.RLock()
				switch name := fmt.Sprintf("o-%d", c.number.Add(1)); n % 3 {
				case 0:
					c.consume(ctx, n, name, "user")
				case 1:
					c.consume(ctx, n, name, "system")
				default:
					c.reserve(ctx, n, name)
				}
				c.quiet.RUnlock()
				time.Sleep(rand.N(20 * time.Millisecond))
			}
		})
	}
}

// stop ends it when every operation has an answer.
func (c *callers) stop() {
	c.stopped.Store(true)
	c.group.Wait()
}

// insist repeats an attempt, each time through the next node, until somebody answers.
func (c *callers) insist(ctx context.Context, n int, attempt func(context.Context, client) error) error {
	for {
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := attempt(limit, c.nodes[n%len(c.nodes)])
		cancel()
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
			if ctx.Err() != nil {
				return err
			}
			c.mu.Lock()
			c.lost++
			c.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			n++
		default:
			return err
		}
	}
}

func (c *callers) consume(ctx context.Context, n int, operation, tool string) {
	a := admission{sent: time.Now()}
	err := c.insist(ctx, n, func(ctx context.Context, node client) error {
		_, err := node.ConsumeQuota(ctx, &v1.ConsumeQuotaRequest{OperationId: operation, UserId: "u", ToolId: tool})
		return err
	})
	a.told = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.admitted[tool] = append(c.admitted[tool], a)
	case exhausted(err, "rule-"+tool):
		c.denied++
	default:
		c.t.Errorf("%s: %v", operation, err)
	}
}

// reserve holds tokens, and then commits some of them, releases them, or leaves them to themselves. Nothing that breaks
// lasts as long as the leases of those that are settled.
func (c *callers) reserve(ctx context.Context, n int, operation string) {
	const abandoned, released = 0, 1
	fate, lease := rand.IntN(10), time.Minute
	if fate == abandoned {
		lease = 2 * time.Second
	}
	err := c.insist(ctx, n, func(ctx context.Context, node client) error {
		_, err := node.ReserveQuota(ctx, &v1.ReserveQuotaRequest{OperationId: operation, UserId: "u", ToolId: "tokens",
			Tokens: proto.Int64(100), Lease: durationpb.New(lease)})
		return err
	})
	if err != nil {
		c.t.Errorf("%s: %v", operation, err)
		return
	}
	tokens := int64(rand.IntN(200))
	switch fate {
	case abandoned:
		return
	case released:
		err = c.insist(ctx, n+1, func(ctx context.Context, node client) error {
			_, err := node.ReleaseQuota(ctx, &v1.ReleaseQuotaRequest{OperationId: operation})
			return err
		})
		tokens = 0
	default:
		err = c.insist(ctx, n+1, func(ctx context.Context, node client) error {
			_, err := node.CommitQuota(ctx, &v1.CommitQuotaRequest{OperationId: operation, Tokens: &tokens})
			return err
		})
	}
	if err != nil {
		c.t.Errorf("%s: %v", operation, err)
		return
	}
	c.mu.Lock()
	c.committed += tokens
	c.mu.Unlock()
}

// exhausted tells whether a refusal is that of a rule, with all that callers are to be told.
func exhausted(err error, rule string) bool {
	if status.Code(err) != codes.ResourceExhausted {
		return false
	}
	named, wait := false, false
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			named = slices.ContainsFunc(d.GetViolations(), func(v *errdetails.QuotaFailure_Violation) bool { return v.GetSubject() != "" })
		case *errdetails.RetryInfo:
			wait = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return named && wait
}

// check fails if in any stretch of the windows' length more calls were admitted than the limit. Calls count whose
// whole way lies in it.
func (c *callers) check(tool string, limit int) {
	c.t.Helper()
	all := c.admitted[tool]
	slices.SortFunc(all, func(a, b admission) int { return a.sent.Compare(b.sent) })
	most := 0
	for i, first := range all {
		within := 0
		for _, a := range all[i:] {
			if a.sent.After(first.sent.Add(quotaWindow)) {
				break
			}
			if !a.told.After(first.sent.Add(quotaWindow)) {
				within++
			}
		}
		most = max(most, within)
	}
	if most > limit {
		c.t.Errorf("%s: %d calls were admitted within %v, %d may be", tool, most, quotaWindow, limit)
	}
	c.t.Logf("%s: %d admitted, at most %d within %v, of %d", tool, len(all), most, quotaWindow, limit)
}
