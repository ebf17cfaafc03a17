package grpcserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
)

type chatServer struct {
	toolgrantv1.UnimplementedChatServiceServer
	store Store
}

// request names a write among its chat's, by id and by a fingerprint of what it asks.
func request(requestID string, message proto.Message) (enable.Request, error) {
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return enable.Request{}, err
	}
	sum := sha256.Sum256(append([]byte(message.ProtoReflect().Descriptor().FullName()+"\n"), content...))
	return enable.Request{ID: requestID, Fingerprint: sum[:]}, nil
}

// CreateChat implements the RPC.
func (s *chatServer) CreateChat(ctx context.Context, r *toolgrantv1.CreateChatRequest) (*toolgrantv1.CreateChatResponse, error) {
	req, err := request(r.GetRequestId(), r)
	if err != nil {
		return nil, err
	}
	result, err := s.store.CreateChat(ctx, id.Chat(r.GetChatId()), id.User(r.GetUserId()), surfaceFromProto(r.GetSurface()), req)
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.CreateChatResponse{Chat: chatToProto(&result.Chat), Entries: entriesToProto(result.Entries), Revision: result.Revision}, nil
}

// SetChatTools implements the RPC.
func (s *chatServer) SetChatTools(ctx context.Context, r *toolgrantv1.SetChatToolsRequest) (*toolgrantv1.SetChatToolsResponse, error) {
	req, err := request(r.GetRequestId(), r)
	if err != nil {
		return nil, err
	}
	var entries []enable.Entry
	for _, c := range r.GetChanges() {
		entries = append(entries, enable.Entry{Tool: id.Tool(c.GetToolId()), Action: actionFromProto(c.GetAction()), TTLTurns: c.GetTtlTurns(),
			Actor: actorFromProto(r.GetActor())})
	}
	result, err := s.store.ChangeChat(ctx, id.Chat(r.GetChatId()), r.Turn, req, func(chat *enable.Chat, world *effective.World) ([]enable.Entry, error) {
		if err := chat.Ended(); err != nil {
			return nil, err
		}
		return entries, enable.CheckTools(world.Catalog, chat.User, entries)
	})
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.SetChatToolsResponse{Entries: entriesToProto(result.Entries), Revision: result.Revision}, nil
}

// SetChatAvatars implements the RPC.
func (s *chatServer) SetChatAvatars(ctx context.Context, r *toolgrantv1.SetChatAvatarsRequest) (*toolgrantv1.SetChatAvatarsResponse, error) {
	req, err := request(r.GetRequestId(), r)
	if err != nil {
		return nil, err
	}
	var entries []enable.Entry
	for _, c := range r.GetChanges() {
		entries = append(entries, enable.Entry{Avatar: id.Avatar(c.GetAvatarId()), Action: actionFromProto(c.GetAction())})
	}
	result, err := s.store.ChangeChat(ctx, id.Chat(r.GetChatId()), r.Turn, req, func(chat *enable.Chat, world *effective.World) ([]enable.Entry, error) {
		if err := chat.Ended(); err != nil {
			return nil, err
		}
		return entries, world.Enable.CheckAvatars(entries)
	})
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.SetChatAvatarsResponse{Entries: entriesToProto(result.Entries), Revision: result.Revision}, nil
}

// EndChat implements the RPC.
func (s *chatServer) EndChat(ctx context.Context, r *toolgrantv1.EndChatRequest) (*toolgrantv1.EndChatResponse, error) {
	req, err := request(r.GetRequestId(), r)
	if err != nil {
		return nil, err
	}
	result, err := s.store.ChangeChat(ctx, id.Chat(r.GetChatId()), nil, req, func(chat *enable.Chat, _ *effective.World) ([]enable.Entry, error) {
		return nil, chat.Ended()
	})
	if f, ok := fault.As(err); ok && f.Reason == fault.ReasonChatEnded {
		// There is nothing to write. An ended chat does not change, so it can be read now.
		chat, at, err := s.store.Chat(ctx, id.Chat(r.GetChatId()))
		return &toolgrantv1.EndChatResponse{Chat: chatToProto(&chat), Revision: at.String()}, err
	}
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.EndChatResponse{Chat: chatToProto(&result.Chat), Revision: result.Revision}, nil
}

// GetChat implements the RPC.
func (s *chatServer) GetChat(ctx context.Context, r *toolgrantv1.GetChatRequest) (*toolgrantv1.GetChatResponse, error) {
	chat, at, err := s.store.Chat(ctx, id.Chat(r.GetChatId()))
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	return &toolgrantv1.GetChatResponse{Chat: chatToProto(&chat), Revision: at.String()}, nil
}

// ListChatLog implements the RPC.
func (s *chatServer) ListChatLog(ctx context.Context, r *toolgrantv1.ListChatLogRequest) (*toolgrantv1.ListChatLogResponse, error) {
	list := "chat_log/" + r.GetChatId()
	after, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	var last int32
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d", &last); err != nil || last < 0 || fmt.Sprint(last) != after {
			return nil, errPageToken
		}
	}
	entries, more, at, err := s.store.ChatLog(ctx, id.Chat(r.GetChatId()), last, size)
	if err != nil {
		return nil, err
	}
	if err := checkConsistency(r.GetConsistency(), at); err != nil {
		return nil, err
	}
	response := &toolgrantv1.ListChatLogResponse{Entries: entriesToProto(entries), Revision: at.String()}
	if more && len(entries) > 0 {
		response.NextPageToken = pageToken(list, fmt.Sprint(entries[len(entries)-1].Sequence))
	}
	return response, nil
}

func chatToProto(c *enable.Chat) *toolgrantv1.Chat {
	active := strings(c.State.ActiveAvatars())
	slices.Sort(active)
	p := &toolgrantv1.Chat{ChatId: string(c.ID), UserId: string(c.User), Turn: c.Turn, ActiveAvatarIds: active,
		EntryCount: c.EntryCount, CreateTime: timestamppb.New(c.CreateTime)}
	if !c.EndTime.IsZero() {
		p.EndTime = timestamppb.New(c.EndTime)
	}
	return p
}

func entriesToProto(entries []enable.LogEntry) []*toolgrantv1.ChatLogEntry {
	var list []*toolgrantv1.ChatLogEntry
	for _, e := range entries {
		p := &toolgrantv1.ChatLogEntry{SequenceNumber: e.Sequence, Turn: e.Turn, RequestId: e.RequestID, CreateTime: timestamppb.New(e.CreateTime),
			Action: toolgrantv1.ChatAction(toolgrantv1.ChatAction_value["CHAT_ACTION_"+string(e.Action)])}
		if e.Avatar != "" {
			p.Subject = &toolgrantv1.ChatLogEntry_AvatarId{AvatarId: string(e.Avatar)}
		} else {
			p.Subject = &toolgrantv1.ChatLogEntry_ToolId{ToolId: string(e.Tool)}
		}
		if e.TTLTurns > 0 {
			p.TtlTurns = &e.TTLTurns
		}
		if e.Actor != "" {
			p.Actor = toolgrantv1.ChatActor(toolgrantv1.ChatActor_value["CHAT_ACTOR_"+string(e.Actor)])
		}
		list = append(list, p)
	}
	return list
}

func actorFromProto(a toolgrantv1.ChatActor) enable.Actor {
	switch a {
	case toolgrantv1.ChatActor_CHAT_ACTOR_MODEL:
		return enable.ActorModel
	case toolgrantv1.ChatActor_CHAT_ACTOR_PERSON:
		return enable.ActorPerson
	}
	return ""
}

func actionFromProto(a toolgrantv1.ChatAction) enable.Action {
	if a == toolgrantv1.ChatAction_CHAT_ACTION_ENABLE {
		return enable.ActionEnable
	}
	return enable.ActionDisable
}
