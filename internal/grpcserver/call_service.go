package grpcserver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/routing"
	"github.com/toolgrant/toolgrant/internal/span"
)

// CallStore is the storage that calls need. Its errors are faults, or unexpected.
type CallStore interface {
	// ApprovalsFor returns the approvals that a call may rest on.
	ApprovalsFor(context.Context, *approval.Call, time.Time) ([]approval.Approval, error)
	// AskApproval asks for a person's word on a call, for so long; a call that asked before is told how that stands.
	AskApproval(ctx context.Context, call approval.Call, now time.Time, wait time.Duration) (approval.Approval, error)
	// UseApproval lets a call through on a grant, or refuses, if it does not hold any more. It tells whether the grant was
	// used up before.
	UseApproval(ctx context.Context, name id.Approval, by string, now time.Time) (before bool, err error)
	// RefuseCall writes into the audit log that a risky call was refused.
	RefuseCall(context.Context, audit.Refusal) error
}

// Health is how tools and servers do, as health.Board knows it.
type Health interface {
	// Health tells how subjects do, for one call.
	Health(id.Call) func(health.Subject) health.Condition
	// Claim asks to be the one call that is let through.
	Claim(context.Context, health.Subject, id.Call) health.Condition
	// Report tells how a call went.
	Report(health.Subject, health.Report)
}

// CallOptions is what calls need besides the rest of a server.
type CallOptions struct {
	// Memory remembers what was allowed.
	Memory *call.Memory
	// Health is how tools and servers do; nil: the server's Health tells.
	Health Health
	// Outcomes is told how calls went.
	Outcomes *call.Outcomes
	// Deployment is what tools may do here.
	Deployment call.Deployment
	// Synonyms of native; nil: call.DefaultSynonyms.
	Synonyms call.Synonyms
	// CacheBytes bounds what is kept of conversations.
	CacheBytes uint64
	// Decided, unless it is nil, is told of each answer, and Reported of each report.
	Decided  func(call.Decision, call.Reason, string)
	Reported func(health.Outcome, string)
}

type callServer struct {
	healthServer
	CallOptions
	store         CallStore
	advance       func(context.Context, id.Chat, int32) error
	replica       *replica.Replica
	gate          *quota.Gate
	history       *quota.History
	conversations *conversations
	refusals      *refusals
	approvalTTL   time.Duration
	now           func() time.Time
}

// maxDecisions is how often a call is decided about when what it rests on changes meanwhile.
const maxDecisions = 4

// AuthorizeCall implements the RPC.
func (s *callServer) AuthorizeCall(ctx context.Context, r *toolgrantv1.AuthorizeCallRequest) (*toolgrantv1.AuthorizeCallResponse, error) {
	q, err := callQuestionFromProto(r)
	if err != nil {
		return nil, err
	}
	if err := s.Memory.Check(q.Call, q.content); err != nil {
		return nil, err
	}
	c := &deciding{callServer: s, request: r, question: q}
	for range maxDecisions {
		if err = c.gather(ctx); err != nil {
			return nil, err
		}
		c.decide(ctx)
		if c.failed != nil {
			return nil, c.failed
		}
		again, err := c.act(ctx)
		if err != nil {
			return nil, err
		}
		if !again && !c.facts.Expired() {
			return c.respond(ctx)
		}
	}
	return nil, &fault.Fault{Kind: fault.Aborted, Reason: fault.ReasonConflict, Message: "what the call rests on keeps changing; try again"}
}

// deciding is one call that is decided about.
type deciding struct {
	*callServer
	request  *toolgrantv1.AuthorizeCallRequest
	question *callQuestion

	facts  replica.Facts
	index  *callIndex
	rests  call.Facts
	turn   int32        // the chat's
	mode   routing.Mode // the user's
	answer call.Answer
	failed error // why the approvals are not known

	others  map[health.Subject]health.Condition // of which another call is the probe
	claimed []health.Subject
	used    bool         // the approval was used up before, by this call
	written call.Written // what is remembered of the call, if it is allowed
	taken   quota.Decision
	rules   []*toolgrantv1.QuotaState
}

// gather gets the facts that the decision rests on, and stores the chat's turn where something depends on it.
func (c *deciding) gather(ctx context.Context) (err error) {
	surface := surfaceFromProto(c.request.GetSurface())
	user := id.User(c.request.GetUserId())
	if c.facts, err = c.replica.Facts(ctx, c.question.Chat, user, surface, replica.Consistency{}); err != nil {
		return err
	}
	asked, advance, err := c.facts.Ask(surface, c.request.Turn, c.now())
	if err != nil {
		return err
	}
	if advance && !c.request.GetDryRun() {
		if err := c.advance(ctx, c.question.Chat, asked.Turn); err != nil {
			return err
		}
	}
	c.turn, c.mode = asked.Turn, modeOf(c.facts.World, &asked)
	c.index = c.conversations.compiled(c.facts.World)
	well := c.Health.Health(c.question.Call)
	c.rests = call.Facts{Index: c.index.index, Answer: c.conversations.of(&c.facts, &asked, c.request.GetChatId()), User: user, Now: asked.Now,
		Deployment: c.Deployment, Synonyms: c.Synonyms, Approvals: c.approvals(ctx),
		Health: func(s health.Subject) health.Condition {
			if condition, ok := c.others[s]; ok {
				return condition
			}
			return well(s)
		}}
	return nil
}

// approvals reads what a call may rest on, once for each function.
func (c *deciding) approvals(ctx context.Context) func(*approval.Call) []approval.Approval {
	type function struct {
		tool id.Tool
		name string
	}
	var known map[function][]approval.Approval
	return func(asked *approval.Call) []approval.Approval {
		of := function{asked.Tool, asked.Function}
		found, ok := known[of]
		if !ok && c.failed == nil {
			if known == nil {
				known = map[function][]approval.Approval{}
			}
			found, c.failed = c.store.ApprovalsFor(ctx, asked, c.rests.Now)
			known[of] = found
		}
		return found
	}
}

func (c *deciding) decide(ctx context.Context) {
	_, part := span.Start(ctx, "decide")
	c.answer = call.Decide(&c.rests, &c.question.Request)
	part.End(c.failed)
}

// act does what the decision asks for: a person is asked, or an approval, a probe and quotas are taken. It tells whether
// the call must be decided about again, because of what was found.
func (c *deciding) act(ctx context.Context) (again bool, err error) {
	a := &c.answer
	switch {
	case c.request.GetDryRun():
		if a.Decision == call.Allow {
			err = c.look(ctx)
		}
		return false, err
	case a.Reason == call.ReasonApprovalRequired:
		return c.ask(ctx)
	case a.Decision != call.Allow:
		return false, nil
	}
	held := c.held()
	c.written = c.record(held)
	for _, step := range [...]func(context.Context) (bool, error){c.useApproval, c.claim, c.reserve} {
		if again, err = step(ctx); again || err != nil {
			return again, err
		}
	}
	if a.Decision == call.Allow {
		err = c.Memory.Remember(c.written, held == call.HeldByAll)
	}
	return false, err
}

// ask asks for a person's word. It may have been given meanwhile.
func (c *deciding) ask(ctx context.Context) (again bool, err error) {
	if c.answer.Approval != "" {
		return false, nil
	}
	if ctx, err = identify(ctx); err != nil {
		return false, err
	}
	now := c.now()
	asked, err := c.store.AskApproval(ctx, c.question.Asked(c.rests.User, c.answer.Tool, c.answer.Function), now, c.approvalTTL)
	c.answer.Approval = asked.ID
	return err == nil && asked.State(now) != approval.Pending, err
}

// useApproval takes the approval that the call rests on. It may have been taken back meanwhile.
func (c *deciding) useApproval(ctx context.Context) (again bool, err error) {
	if c.answer.Approval == "" {
		return false, nil
	}
	if ctx, err = identify(ctx); err != nil {
		return false, err
	}
	c.used, err = c.store.UseApproval(ctx, c.answer.Approval, caller.From(ctx).Actor, c.now())
	if f, ok := fault.As(err); ok && f.Reason == fault.ReasonApprovalDecided {
		return true, nil
	}
	return false, err
}

// claim makes the call the probe of what is tried again. Another call may be it already.
func (c *deciding) claim(ctx context.Context) (again bool, err error) {
	c.claimed = nil
	for _, subject := range c.answer.Probes {
		condition := c.Health.Claim(ctx, subject, c.question.Call)
		if condition.State == health.Open {
			if c.others == nil {
				c.others = map[health.Subject]health.Condition{}
			}
			c.others[subject] = condition
			c.unclaim()
			return true, nil
		}
		c.claimed = append(c.claimed, subject)
	}
	return false, nil
}

// unclaim makes way for another probe.
func (c *deciding) unclaim() {
	for _, subject := range c.claimed {
		c.Health.Report(subject, health.Report{Call: c.question.Call, Outcome: health.Cancelled})
	}
	c.claimed = nil
}

func (c *deciding) respond(ctx context.Context) (*toolgrantv1.AuthorizeCallResponse, error) {
	p, err := callToProto(c.index, &c.answer)
	if err != nil {
		return nil, err
	}
	if c.refused() {
		if err := c.refusals.tell(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.Decided != nil {
		c.Decided(c.answer.Decision, c.answer.Reason, c.sourceOf(c.answer.Tool))
	}
	p.Rules, p.Revision, p.ApprovalUsed = c.rules, c.facts.Token, c.used && c.answer.Decision == call.Allow
	if !c.taken.Expire.IsZero() {
		p.ExpireTime = timestamppb.New(c.taken.Expire)
	}
	return p, nil
}

// sourceOf is the source of a tool's type, as metrics call it; empty: there is no such tool.
func (s *callServer) sourceOf(tool id.Tool) string {
	w := s.replica.World()
	if n, ok := w.Catalog.Number(tool); ok {
		return string(w.Catalog.Type(n).Source)
	}
	return ""
}
