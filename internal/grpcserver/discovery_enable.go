package grpcserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/id"
)

// errNothingEnabled ends a change of a chat that would write nothing.
var errNothingEnabled = errors.New("no name may be turned on")

// EnableTools implements the RPC.
func (s *discoveryServer) EnableTools(ctx context.Context, r *toolgrantv1.EnableToolsRequest) (*toolgrantv1.EnableToolsResponse, error) {
	req, err := request(r.GetRequestId(), r)
	if err != nil {
		return nil, err
	}
	chat, user := id.Chat(r.GetChatId()), id.User(r.GetUserId())
	facts, asked, err := s.ask(ctx, r, r.Turn)
	if err != nil {
		return nil, err
	}
	view, err := s.view(ctx, facts.World, &asked.Question)
	if err != nil {
		return nil, err
	}
	actor := cmp.Or(actorFromProto(r.GetActor()), enable.ActorModel)
	ttl := cmp.Or(r.GetTtlTurns(), finder.DefaultTTLTurns)
	named := view.Enable(s.facts(&facts, &asked.Question, r.GetChatId()), r.GetNames(), actor)
	answer, entries := enabledToProto(facts.World, named, actor, ttl)
	if req.Answer, err = canonical.Marshal(answer); err != nil {
		return nil, err
	}
	result, err := s.store.ChangeChat(ctx, chat, r.Turn, req, func(c *enable.Chat, world *effective.World) ([]enable.Entry, error) {
		if err := c.Ended(); err != nil {
			return nil, err
		}
		if c.User != user {
			return nil, &fault.Fault{Kind: fault.PermissionDenied, Reason: fault.ReasonChatOfAnotherUser, Message: fmt.Sprintf("chat %q belongs to another user", chat)}
		}
		if len(entries) == 0 {
			return nil, errNothingEnabled
		}
		return entries, enable.CheckTools(world.Catalog, user, entries)
	})
	if errors.Is(err, errNothingEnabled) {
		answer.Revision = facts.Token
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	answer = &toolgrantv1.EnableToolsResponse{}
	if err := proto.Unmarshal(result.Answer, answer); err != nil {
		return nil, err
	}
	answer.Entries, answer.Revision = entriesToProto(result.Entries), result.Revision
	return answer, nil
}

// enabledToProto is the answer, and the entries that make it true. A tool that is named twice has one.
func enabledToProto(w *effective.World, named []finder.Named, actor enable.Actor, ttl int32) (*toolgrantv1.EnableToolsResponse, []enable.Entry) {
	answer := &toolgrantv1.EnableToolsResponse{}
	var entries []enable.Entry
	written := map[uint]bool{}
	for i := range named {
		n := &named[i]
		if n.Rejection != "" {
			answer.Rejected = append(answer.Rejected, rejectedToProto(w, n))
			continue
		}
		t := w.Catalog.Tool(n.Number)
		answer.Enabled = append(answer.Enabled, &toolgrantv1.EnabledTool{RequestedName: n.Name, ToolId: string(t.ID), Name: t.Name, TtlTurns: ttl})
		if !written[n.Number] {
			written[n.Number] = true
			entries = append(entries, enable.Entry{Tool: t.ID, Action: enable.ActionEnable, TTLTurns: ttl, Actor: actor})
		}
	}
	return answer, entries
}

func rejectedToProto(w *effective.World, n *finder.Named) *toolgrantv1.RejectedTool {
	p := &toolgrantv1.RejectedTool{RequestedName: n.Name, Reason: toolgrantv1.RejectionReason(toolgrantv1.RejectionReason_value["REJECTION_REASON_"+string(n.Rejection)]),
		Message: n.Message, MessageZh: n.MessageZH, NextStep: n.Next, NextStepZh: n.NextZH, NearestNames: n.Nearest}
	if n.Rejection != finder.RejectedUnknown {
		p.ToolId = string(w.Catalog.Tool(n.Number).ID)
	}
	if n.Withheld != nil {
		p.Withheld = withheldToProto(*n.Withheld)
	}
	return p
}
