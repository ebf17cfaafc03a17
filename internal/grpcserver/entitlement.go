package grpcserver

import (
	"context"
	gostrings "strings"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/mem"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/quota"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/revision"
)

type entitlementServer struct {
	toolgrantv1.UnimplementedEntitlementServiceServer
	store      Store
	replica    *replica.Replica
	gate       *quota.Gate
	answers    *Answers
	finds      *discoverer
	answered   func(bytes int, held bool)
	watching   *semaphore.Weighted // how many watchers make their answers at a time
	checkpoint time.Duration
	drain      *Drain
	now        func() time.Time
}

// question is what all RPCs have in common.
type question interface {
	GetChatId() string
	GetUserId() string
	GetSurface() *toolgrantv1.Surface
	GetConsistency() *toolgrantv1.Consistency
}

// ask gets the facts that a question rests on, and stores the chat's turn where something depends on it.
func (s *entitlementServer) ask(ctx context.Context, q question, turn *int32) (replica.Facts, effective.Question, error) {
	surface := surfaceFromProto(q.GetSurface())
	chat := id.Chat(q.GetChatId())
	facts, err := s.replica.Facts(ctx, chat, id.User(q.GetUserId()), surface, consistencyFromProto(q.GetConsistency()))
	if err != nil {
		return facts, effective.Question{}, err
	}
	asked, advance, err := facts.Ask(surface, turn, s.now())
	if err != nil {
		return facts, asked, err
	}
	if advance {
		err = s.store.AdvanceTurn(ctx, chat, asked.Turn)
	}
	return facts, asked, err
}

// resolve asks the rules. If that took so long that the facts are not fresh any more it asks again.
func (s *entitlementServer) resolve(ctx context.Context, q question, turn *int32) (*effective.Answer, replica.Facts, error) {
	for {
		facts, asked, err := s.ask(ctx, q, turn)
		if err != nil {
			return nil, facts, err
		}
		if answer := facts.World.Resolve(asked); !facts.Expired() {
			return answer, facts, nil
		}
	}
}

func consistencyFromProto(c *toolgrantv1.Consistency) replica.Consistency {
	return replica.Consistency{AtLeastAsFresh: c.GetAtLeastAsFresh(), Full: c.GetFullyConsistent()}
}

// checkConsistency refuses a revision that the database, as it was read, does not include.
func checkConsistency(c *toolgrantv1.Consistency, now revision.Revision) error {
	if c.GetAtLeastAsFresh() == "" {
		return nil
	}
	return revision.Require(c.GetAtLeastAsFresh(), now)
}

// resolveTools implements ResolveTools, but for its answer, which is encoded already.
func (s *entitlementServer) resolveTools(ctx context.Context, r *toolgrantv1.ResolveToolsRequest) (encoded, error) {
	for {
		facts, asked, err := s.ask(ctx, r, r.Turn)
		if err != nil {
			return nil, err
		}
		held := false
		made, err := s.narrow(ctx, &facts, &asked, r)
		switch {
		case err != nil || made != nil:
		case r.GetConsistency().GetFullyConsistent():
			// Its facts are of this call only, so nobody could use the answer again.
			made, err = s.answers.make(ctx, &facts, &asked, r.GetView())
		default:
			made, held, err = s.answers.of(ctx, &facts, &asked, r.GetChatId(), r.GetView())
		}
		if err != nil {
			return nil, err
		}
		body := made.body
		if len(made.limited) > 0 {
			if body, err = s.withQuotas(ctx, made, &facts); err != nil {
				return nil, err
			}
		}
		if !facts.Expired() {
			message := complete(body, &facts)
			s.answered(mem.BufferSlice(message).Len(), held)
			return message, nil
		}
	}
}

// CheckTool implements the RPC.
func (s *entitlementServer) CheckTool(ctx context.Context, r *toolgrantv1.CheckToolRequest) (*toolgrantv1.CheckToolResponse, error) {
	answer, facts, err := s.resolve(ctx, r, r.Turn)
	if err != nil {
		return nil, err
	}
	n, err := named(&facts.Facts, id.Tool(r.GetToolId()))
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.CheckToolResponse{
		Effective: answer.Effective.Test(n),
		Available: answer.Availability.Available.Test(n),
		Enabled:   answer.Enable.Enabled.Test(n),
		Revision:  facts.Token,
		Stale:     facts.Stale,
	}
	if reason := answer.Reason(n); reason != effective.ReasonNone {
		response.Reason = reasonToProto(reason).Enum()
	}
	return response, nil
}

// ExplainTool implements the RPC.
func (s *entitlementServer) ExplainTool(ctx context.Context, r *toolgrantv1.ExplainToolRequest) (*toolgrantv1.ExplainToolResponse, error) {
	answer, facts, err := s.resolve(ctx, r, r.Turn)
	if err != nil {
		return nil, err
	}
	n, err := named(&facts.Facts, id.Tool(r.GetToolId()))
	if err != nil {
		return nil, err
	}
	response := &toolgrantv1.ExplainToolResponse{
		Effective: answer.Effective.Test(n),
		Available: answer.Availability.Available.Test(n),
		Enabled:   answer.Enable.Enabled.Test(n),
		Revision:  facts.Token,
		Stale:     facts.Stale,
	}
	if w, withheld := answer.WithheldTool(n); withheld {
		response.Reason = reasonToProto(w.Reason).Enum()
		response.Withheld = withheldToProto(w)
	}
	for _, step := range answer.Explain(n) {
		p := &toolgrantv1.ExplainStep{
			Rule:    toolgrantv1.ExplainRule(toolgrantv1.ExplainRule_value["EXPLAIN_RULE_"+string(step.Rule)]),
			Outcome: toolgrantv1.ExplainOutcome(toolgrantv1.ExplainOutcome_value["EXPLAIN_OUTCOME_"+string(step.Outcome)]),
			Message: step.Message,
		}
		for _, row := range step.Rows {
			p.Rows = append(p.Rows, &toolgrantv1.ExplainRow{Kind: row.Kind, Id: row.ID, Detail: row.Detail})
		}
		response.Steps = append(response.Steps, p)
	}
	return response, nil
}

// named returns the number of a tool that a request names. Another user's private tool does not exist.
func named(facts *effective.Facts, tool id.Tool) (uint, error) {
	n, _ := facts.World.Catalog.Number(tool)
	if !facts.World.Catalog.ExistsFor(facts.User.ID, tool) {
		return 0, fault.Missing("tool", string(tool))
	}
	return n, nil
}

func withheldToProto(w effective.Withheld) *toolgrantv1.WithheldTool {
	p := &toolgrantv1.WithheldTool{
		ToolId:              string(w.Tool),
		Reason:              reasonToProto(w.Reason),
		Message:             w.Message,
		MessageZh:           w.MessageZH,
		MissingCapabilities: w.MissingCapabilities,
		GroupIds:            strings(w.Groups),
		GrantingGroupIds:    strings(w.GrantingGroups),
		ShadowedByToolId:    string(w.ShadowedBy),
	}
	for _, surface := range w.Surfaces {
		p.Surfaces = append(p.Surfaces, surfaceToProto(surface))
	}
	return p
}

// reasons are the proto's, by the rules'.
var reasons = func() map[effective.Reason]toolgrantv1.WithheldReason {
	reasons := map[effective.Reason]toolgrantv1.WithheldReason{}
	for name, number := range toolgrantv1.WithheldReason_value {
		reasons[effective.Reason(gostrings.TrimPrefix(name, "WITHHELD_REASON_"))] = toolgrantv1.WithheldReason(number)
	}
	return reasons
}()

func reasonToProto(r effective.Reason) toolgrantv1.WithheldReason { return reasons[r] }

func surfaceFromProto(s *toolgrantv1.Surface) availability.Surface {
	return availability.Surface{Device: id.Device(s.GetDeviceId())}
}

func surfaceToProto(s availability.Surface) *toolgrantv1.Surface {
	if s.IsWeb() {
		return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
	}
	return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: string(s.Device)}}
}
