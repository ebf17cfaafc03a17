package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// subject is a question whose answer tells the number of the write that it is as new as. The catalogue's
// number is in the title of a tool, the chat's is the time to live of another.
type subject struct {
	question *toolgrantv1.ResolveToolsRequest
	title    *title
	living   string // the tool with a time to live
	number   int
}

// numbered is a kind of write that has a number, and how that is read from an answer.
type numbered struct {
	name  string
	write func(context.Context, *grpc.ClientConn) (revision string, err error)
	read  func(*toolgrantv1.ResolveToolsResponse) int
}

// peer is a server, and what was seen of it.
type peer struct {
	conn  *grpc.ClientConn
	seen  int           // the highest number
	delay time.Duration // of the last write
	tally
}

// tally counts answers, and those that break a promise.
type tally struct {
	Answers        int `json:"answers"`
	BackInTime     int `json:"answers_back_in_time"`
	BeyondBound    int `json:"answers_beyond_bound"`
	BeforeRevision int `json:"answers_before_revision"`
}

// newSubject makes a chat of a user who is given both a core tool and another one.
func newSubject(ctx context.Context, w *world, conn *grpc.ClientConn) (*subject, error) {
	for i := range min(w.users, 1_000) {
		user := w.user(i).GetUserId()
		s := &subject{question: &toolgrantv1.ResolveToolsRequest{ChatId: fmt.Sprintf("bench-freshness-%d", time.Now().UnixNano()), UserId: user,
			Surface: &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}}}
		answer, err := toolgrantv1.NewEntitlementServiceClient(conn).ResolveTools(ctx, s.question)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w (was the world loaded with these sizes and this seed?)", user, err)
		}
		core := ""
		for _, tool := range answer.GetTools() {
			if tool.GetCore() {
				core = tool.GetToolId()
			} else {
				s.living = tool.GetToolId()
			}
		}
		if core == "" || s.living == "" {
			continue
		}
		if s.title, err = titleOf(ctx, conn, core); err != nil {
			return nil, err
		}
		return s, s.create(ctx, conn)
	}
	return nil, errors.New("no user is given both a core tool and another one: more tools per device type and Avatar are needed")
}

// create makes the chat, and turns the living tool off for as long as it has no time to live: else an Avatar
// may keep it on, and no answer tells for how long.
func (s *subject) create(ctx context.Context, conn *grpc.ClientConn) error {
	chats := toolgrantv1.NewChatServiceClient(conn)
	if _, err := chats.CreateChat(ctx, &toolgrantv1.CreateChatRequest{ChatId: s.question.GetChatId(), UserId: s.question.GetUserId(),
		Surface: s.question.GetSurface(), RequestId: "create"}); err != nil {
		return err
	}
	_, err := chats.SetChatTools(ctx, &toolgrantv1.SetChatToolsRequest{ChatId: s.question.GetChatId(), RequestId: "off",
		Changes: []*toolgrantv1.ToolChange{{ToolId: s.living, Action: toolgrantv1.ChatAction_CHAT_ACTION_DISABLE}}})
	return err
}

// look asks a node, and counts an answer that is older than one before it.
func (p *peer) look(ctx context.Context, s *subject, what numbered, token string) error {
	q := proto.CloneOf(s.question)
	if token != "" {
		q.Consistency = &toolgrantv1.Consistency{Requirement: &toolgrantv1.Consistency_AtLeastAsFresh{AtLeastAsFresh: token}}
	}
	answer, err := toolgrantv1.NewEntitlementServiceClient(p.conn).ResolveTools(ctx, q)
	if err != nil {
		return err
	}
	seen := what.read(answer)
	p.Answers++
	if seen < p.seen {
		p.BackInTime++
	}
	p.seen = max(p.seen, seen)
	return nil
}

func (s *subject) writeChat(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	response, err := toolgrantv1.NewChatServiceClient(conn).SetChatTools(ctx, &toolgrantv1.SetChatToolsRequest{
		ChatId: s.question.GetChatId(), RequestId: strconv.Itoa(s.number), Changes: []*toolgrantv1.ToolChange{{ToolId: s.living,
			Action: toolgrantv1.ChatAction_CHAT_ACTION_ENABLE, TtlTurns: proto.Int32(int32(s.number))}}})
	return response.GetRevision(), err
}

func (s *subject) chatNumber(answer *toolgrantv1.ResolveToolsResponse) int {
	for _, tool := range answer.GetTools() {
		if tool.GetToolId() == s.living {
			return int(tool.GetExpiresAfterTurns())
		}
	}
	return 0
}

const titleStart = "Bench "

func (s *subject) writeTitle(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	return s.title.set(ctx, conn, titleStart+strconv.Itoa(s.number))
}

func (s *subject) titleNumber(answer *toolgrantv1.ResolveToolsResponse) int {
	for _, tool := range answer.GetTools() {
		if tool.GetToolId() == s.title.tool {
			number, err := strconv.Atoi(strings.TrimPrefix(tool.GetTitle(), titleStart))
			if err != nil { // the title of before
				return 0
			}
			return number
		}
	}
	return 0
}
