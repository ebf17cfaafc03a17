package grpcserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	gostrings "strings"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/approval"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// ApprovalStore keeps approvals. Its errors are faults, or unexpected.
type ApprovalStore interface {
	// Approval returns an approval.
	Approval(context.Context, id.Approval) (approval.Approval, error)
	// ApprovalsByID returns those that exist, the oldest first.
	ApprovalsByID(context.Context, []id.Approval) ([]approval.Approval, error)
	// Approvals returns approvals after a key, newest first, at most so many. Some may not fit the filter.
	Approvals(ctx context.Context, f approval.Filter, after approval.Key, now time.Time, atMost int32) ([]approval.Approval, error)
	// DecideApproval writes a decision, or finds that it was made before.
	DecideApproval(context.Context, id.Approval, approval.Decision) (approval.Approval, revision.Revision, error)
	// RevokeApproval takes a grant back, or finds that it was.
	RevokeApproval(context.Context, id.Approval, approval.Revocation) (approval.Approval, revision.Revision, error)
}

type approvalServer struct {
	toolgrantv1.UnimplementedApprovalServiceServer
	store      ApprovalStore
	replica    *replica.Replica
	checkpoint time.Duration
	drain      *Drain
	now        func() time.Time
}

func (s *approvalServer) GetApproval(ctx context.Context, r *toolgrantv1.GetApprovalRequest) (*toolgrantv1.GetApprovalResponse, error) {
	a, err := s.store.Approval(ctx, id.Approval(r.GetApprovalId()))
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.GetApprovalResponse{Approval: approvalToProto(&a, s.now())}, nil
}

// maxScanned bounds how many approvals are looked at for one page. How an approval stands depends on the time, so no
// index tells.
const maxScanned = 10_000

func (s *approvalServer) ListApprovals(ctx context.Context, r *toolgrantv1.ListApprovalsRequest) (*toolgrantv1.ListApprovalsResponse, error) {
	f := approval.Filter{User: id.User(r.GetUserId()), Chat: id.Chat(r.GetChatId())}
	if r.GetState() != toolgrantv1.ApprovalState_APPROVAL_STATE_UNSPECIFIED {
		f.State = approval.State(gostrings.TrimPrefix(r.GetState().String(), "APPROVAL_STATE_"))
	}
	list := fmt.Sprintf("approvals %s,%s,%s", f.State, f.User, f.Chat)
	token, err := parsePageToken(list, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	var after approval.Key
	if token != "" {
		if err := json.Unmarshal([]byte(token), &after); err != nil {
			return nil, errPageToken
		}
	}
	size := int(r.GetPageSize())
	if size == 0 {
		size = defaultPageSize
	}
	response, now := &toolgrantv1.ListApprovalsResponse{}, s.now()
	for scanned := 0; ; {
		const batch = 1000
		some, err := s.store.Approvals(ctx, f, after, now, batch)
		if err != nil {
			return nil, err
		}
		for i := range some {
			if !f.Fits(&some[i], now) {
				after = some[i].Key()
				continue
			}
			if len(response.GetApprovals()) == size {
				response.NextPageToken = approvalsToken(list, after)
				return response, nil
			}
			after = some[i].Key()
			response.Approvals = append(response.Approvals, approvalToProto(&some[i], now))
		}
		switch scanned += len(some); {
		case len(some) < batch:
			return response, nil
		case scanned >= maxScanned:
			response.NextPageToken = approvalsToken(list, after)
			return response, nil
		}
	}
}

func approvalsToken(list string, after approval.Key) string {
	key, _ := json.Marshal(after) // a time and a string always marshal
	return pageToken(list, string(key))
}

func (s *approvalServer) DecideApproval(ctx context.Context, r *toolgrantv1.DecideApprovalRequest) (*toolgrantv1.DecideApprovalResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	d := approval.Decision{Approve: r.GetApprove(), Expire: timeFromProto(r.GetExpireTime()), By: caller.From(ctx).Actor,
		Reason: r.GetReason(), Time: s.now()}
	if r.GetScope() != toolgrantv1.ApprovalScope_APPROVAL_SCOPE_UNSPECIFIED {
		d.Scope = approval.Scope(gostrings.TrimPrefix(r.GetScope().String(), "APPROVAL_SCOPE_"))
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	a, at, err := s.store.DecideApproval(ctx, id.Approval(r.GetApprovalId()), d)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.DecideApprovalResponse{Approval: approvalToProto(&a, s.now()), Revision: at.String()}, nil
}

func (s *approvalServer) RevokeApproval(ctx context.Context, r *toolgrantv1.RevokeApprovalRequest) (*toolgrantv1.RevokeApprovalResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	a, at, err := s.store.RevokeApproval(ctx, id.Approval(r.GetApprovalId()),
		approval.Revocation{By: caller.From(ctx).Actor, Reason: r.GetReason(), Time: s.now()})
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.RevokeApprovalResponse{Approval: approvalToProto(&a, s.now()), Revision: at.String()}, nil
}

// approvalToProto tells how an approval stands at an instant. Of one that was revoked it tells who did that, and why.
func approvalToProto(a *approval.Approval, now time.Time) *toolgrantv1.Approval {
	p := &toolgrantv1.Approval{ApprovalId: string(a.ID), CallId: string(a.Call.ID), ChatId: string(a.Chat), UserId: string(a.User),
		ToolId: string(a.Tool), Function: a.Function, Arguments: string(a.Arguments), CreateTime: timeToProto(a.Create),
		State:      toolgrantv1.ApprovalState(toolgrantv1.ApprovalState_value["APPROVAL_STATE_"+string(a.State(now))]),
		ExpireTime: timeToProto(a.Request.Expire)}
	if d := a.Decision; d != nil {
		p.Scope = toolgrantv1.ApprovalScope(toolgrantv1.ApprovalScope_value["APPROVAL_SCOPE_"+string(d.Scope)])
		p.ExpireTime, p.DecideTime, p.DecidedBy, p.Reason = timeToProto(d.Expire), timeToProto(d.Time), d.By, d.Reason
	}
	if r := a.Revocation; r != nil {
		p.DecideTime, p.DecidedBy, p.Reason = timeToProto(r.Time), r.By, r.Reason
	}
	return p
}
