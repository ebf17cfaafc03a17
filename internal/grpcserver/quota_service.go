package grpcserver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// defaultLease is how long a reservation is held that does not say.
const defaultLease = 5 * time.Minute

// Overrides is the storage of limits of single users.
type Overrides interface {
	// SetOverride sets a user's own limit of a USER rule; nil: there is none any more.
	SetOverride(ctx context.Context, user id.User, rule id.Quota, limit *int64, expire time.Time) (revision.Revision, error)
}

type quotaServer struct {
	toolgrantv1.UnimplementedQuotaServiceServer
	gate      *quota.Gate
	replica   *replica.Replica
	overrides Overrides
	usage     Usage
	history   *quota.History
	resets    quota.ResetLog
	now       func() time.Time
}

// account returns what rules need to know of a user.
func (s *quotaServer) account(ctx context.Context, user string) (replica.Account, error) {
	return s.replica.Account(ctx, id.User(user))
}

// rules returns the rules of a tool that exists for the user, with the limits that count for him.
func (s *quotaServer) rules(a *replica.Account, user, tool string) ([]quota.Limited, error) {
	n, _ := a.World.Catalog.Number(id.Tool(tool))
	if !a.World.Catalog.ExistsFor(id.User(user), id.Tool(tool)) {
		return nil, fault.Missing("tool", tool)
	}
	return a.Overrides.Apply(a.World.Catalog.Rules(n), s.now()), nil
}

// take takes a cost, and returns the states of all rules.
func (s *quotaServer) take(ctx context.Context, o quota.Operation) (quota.Decision, []*toolgrantv1.QuotaState, error) {
	account, err := s.account(ctx, string(o.User))
	if err != nil {
		return quota.Decision{}, nil, err
	}
	if o.Rules, err = s.rules(&account, string(o.User), string(o.Tool)); err != nil {
		return quota.Decision{}, nil, err
	}
	if err := checkBound(&o); err != nil {
		return quota.Decision{}, nil, err
	}
	d, err := s.gate.Take(ctx, o)
	if err != nil {
		return d, nil, err
	}
	tellRateLimits(ctx, o.Rules, d.States)
	if !d.Admitted {
		err = denied(&o, &d)
	} else if o.Lease == 0 && !d.Repeated {
		s.history.Record(o.User, o.Tool, o.Cost.Calls, o.Cost.Tokens)
	}
	return d, statesToProto(account.World, d.States), err
}

// unbounded is what the tokens of a reservation are that names none.
const unbounded = -1

// checkBound refuses a reservation that has no bound where one is needed.
func checkBound(o *quota.Operation) error {
	if o.Cost.Tokens != unbounded {
		return nil
	}
	for _, r := range o.Rules {
		if r.Unit == quota.UnitTokens {
			return fault.Invalid(fault.Violation{Field: "tokens", Description: "is required: quota " + string(r.ID) + " counts tokens"})
		}
	}
	o.Cost.Tokens = 0
	return nil
}

// ConsumeQuota implements the RPC.
func (s *quotaServer) ConsumeQuota(ctx context.Context, r *toolgrantv1.ConsumeQuotaRequest) (*toolgrantv1.ConsumeQuotaResponse, error) {
	cost := quota.Cost{Calls: 1, Tokens: r.GetTokens()}
	if r.Calls != nil {
		cost.Calls = r.GetCalls()
	}
	_, states, err := s.take(ctx, quota.Operation{ID: r.GetOperationId(), User: id.User(r.GetUserId()), Tool: id.Tool(r.GetToolId()), Cost: cost})
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ConsumeQuotaResponse{Rules: states}, nil
}

// ReserveQuota implements the RPC.
func (s *quotaServer) ReserveQuota(ctx context.Context, r *toolgrantv1.ReserveQuotaRequest) (*toolgrantv1.ReserveQuotaResponse, error) {
	o := quota.Operation{ID: r.GetOperationId(), User: id.User(r.GetUserId()), Tool: id.Tool(r.GetToolId()),
		Cost: quota.Cost{Calls: 1, Tokens: unbounded}, Lease: defaultLease}
	if r.Tokens != nil {
		o.Cost.Tokens = r.GetTokens()
	}
	if r.GetLease() != nil {
		o.Lease = r.GetLease().AsDuration().Truncate(time.Millisecond)
	}
	d, states, err := s.take(ctx, o)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ReserveQuotaResponse{Rules: states, ExpireTime: timestamppb.New(d.Expire)}, nil
}

// CommitQuota implements the RPC.
func (s *quotaServer) CommitQuota(ctx context.Context, r *toolgrantv1.CommitQuotaRequest) (*toolgrantv1.CommitQuotaResponse, error) {
	d, err := s.gate.Commit(ctx, r.GetOperationId(), r.Tokens)
	if err != nil {
		return nil, err
	}
	if of := d.Settled; !d.Repeated {
		s.history.Record(of.User, of.Tool, of.Cost.Calls, of.Cost.Tokens)
	}
	return &toolgrantv1.CommitQuotaResponse{Rules: statesToProto(s.replica.World(), d.States)}, nil
}

// ReleaseQuota implements the RPC.
func (s *quotaServer) ReleaseQuota(ctx context.Context, r *toolgrantv1.ReleaseQuotaRequest) (*toolgrantv1.ReleaseQuotaResponse, error) {
	d, err := s.gate.Release(ctx, r.GetOperationId())
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ReleaseQuotaResponse{Rules: statesToProto(s.replica.World(), d.States)}, nil
}

// GetQuotaUsage implements the RPC.
func (s *quotaServer) GetQuotaUsage(ctx context.Context, r *toolgrantv1.GetQuotaUsageRequest) (*toolgrantv1.GetQuotaUsageResponse, error) {
	account, err := s.account(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	tools := r.GetToolIds()
	if len(tools) == 0 {
		tools = withRules(account.World, id.User(r.GetUserId()))
	}
	of := make([][]quota.Limited, len(tools))
	for i, tool := range tools {
		if of[i], err = s.rules(&account, r.GetUserId(), tool); err != nil {
			return nil, err
		}
	}
	states, err := statesOf(ctx, s.gate, id.User(r.GetUserId()), of)
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.GetQuotaUsageResponse{}
	for i, tool := range tools {
		response.Tools = append(response.Tools, &toolgrantv1.ToolQuotas{ToolId: tool, Rules: statesToProto(account.World, states[i])})
	}
	return response, nil
}

// withRules returns the tools that exist for a user and have rules, by id.
func withRules(w *effective.World, user id.User) (tools []string) {
	for n := range uint(w.Catalog.Len()) {
		if tool := w.Catalog.Tool(n).ID; len(w.Catalog.Rules(n)) > 0 && w.Catalog.ExistsFor(user, tool) {
			tools = append(tools, string(tool))
		}
	}
	return tools
}

// SetQuotaOverride implements the RPC.
func (s *quotaServer) SetQuotaOverride(ctx context.Context, r *toolgrantv1.SetQuotaOverrideRequest) (*toolgrantv1.SetQuotaOverrideResponse, error) {
	var expire time.Time
	if end := r.GetExpireTime(); end != nil {
		if err := end.CheckValid(); err != nil {
			return nil, fault.Invalid(fault.Violation{Field: "expire_time", Description: "is no time"})
		}
		if r.Limit == nil {
			return nil, fault.Invalid(fault.Violation{Field: "expire_time", Description: "without a limit there is nothing to end"})
		}
		expire = end.AsTime()
	}
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.overrides.SetOverride(ctx, id.User(r.GetUserId()), id.Quota(r.GetQuotaId()), r.Limit, expire)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.SetQuotaOverrideResponse{Revision: at.String()}, nil
}

// ResetQuotaUsage implements the RPC.
func (s *quotaServer) ResetQuotaUsage(ctx context.Context, r *toolgrantv1.ResetQuotaUsageRequest) (*toolgrantv1.ResetQuotaUsageResponse, error) {
	account, err := s.account(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	rule := account.World.Catalog.Rule(id.Quota(r.GetQuotaId()))
	if rule == nil {
		return nil, fault.Missing("quota", r.GetQuotaId())
	}
	if rule.Scope != quota.ScopeUser {
		return nil, fault.Invalid(fault.Violation{Field: "quota_id", Description: "it counts all users together: only what single users used can be reset"})
	}
	if ctx, err = identify(ctx); err != nil {
		return nil, err
	}
	limited := account.Overrides.Apply([]quota.Limited{rule.Limited()}, s.now())[0]
	reset := quota.Reset{ID: r.GetRequestId(), User: id.User(r.GetUserId()), Quota: rule.ID, Reason: r.GetReason()}
	state, err := reset.CarryOut(ctx, s.resets, s.gate, limited)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.ResetQuotaUsageResponse{Rule: statesToProto(account.World, []quota.State{state})[0]}, nil
}
