package grpcserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/effective/effectivetest"
)

// TestCases asks the server what internal/effective's test of this name asks the pure functions.
func TestCases(t *testing.T) {
	effectivetest.Run(t, "../effective/testdata", func(t *testing.T, file *effectivetest.File) func(*testing.T, *effectivetest.Question) effectivetest.Answer {
		var now atomic.Pointer[time.Time]
		now.Store(&file.Questions[0].Now)
		ctx, c := serve(t, func() time.Time { return *now.Load() })
		manifest, err := yaml.Marshal(&file.World)
		if err != nil {
			t.Fatal(err)
		}
		c.apply(ctx, t, string(manifest))
		chats := 0
		return func(t *testing.T, q *effectivetest.Question) effectivetest.Answer {
			now.Store(&q.Now)
			chats++
			a := asker{client: c, world: parse(t, string(manifest)), question: q, chat: fmt.Sprint("chat-", chats)}
			answer, err := a.ask(ctx)
			if err == nil {
				return answer
			}
			for _, detail := range status.Convert(err).Details() {
				if info, ok := detail.(*errdetails.ErrorInfo); ok {
					return effectivetest.Answer{Refused: strings.TrimPrefix(info.GetReason(), "ERROR_REASON_")}
				}
			}
			t.Fatal(err)
			return answer
		}
	})
}

// asker asks the server one question.
type asker struct {
	client
	world    *v1.Manifest
	question *effectivetest.Question
	chat     string
}

func (a *asker) ask(ctx context.Context) (answer effectivetest.Answer, err error) {
	q := a.question
	if q.Created() {
		if _, err := a.CreateChat(ctx, &v1.CreateChatRequest{ChatId: a.chat, UserId: q.CreatedBy, Surface: surfaceNamed(q.CreatedOn), RequestId: "create"}); err != nil {
			return answer, err
		}
	}
	for i, e := range q.Log {
		if err := a.write(ctx, fmt.Sprint("entry-", i), e); err != nil {
			return answer, err
		}
	}
	resolved, err := a.resolve(ctx, q.Turn)
	if err != nil {
		return answer, err
	}
	if resolved.GetNewChat() == q.Created() {
		return answer, fmt.Errorf("new_chat is %t", resolved.GetNewChat())
	}
	answer = plain(resolved)
	if answer.Available, err = a.available(ctx); err != nil {
		return answer, err
	}
	if q.Explain != "" {
		answer.Steps, err = a.steps(ctx)
	}
	return answer, err
}

func (a *asker) write(ctx context.Context, request string, e effectivetest.Entry) error {
	action := v1.ChatAction_CHAT_ACTION_ENABLE
	if e.Disable != "" || e.DisableAvatar != "" {
		action = v1.ChatAction_CHAT_ACTION_DISABLE
	}
	if e.AskedInTurn != nil {
		_, err := a.resolve(ctx, e.AskedInTurn)
		return err
	}
	if avatar := e.EnableAvatar + e.DisableAvatar; avatar != "" {
		_, err := a.SetChatAvatars(ctx, &v1.SetChatAvatarsRequest{ChatId: a.chat, RequestId: request, Turn: e.Turn,
			Changes: []*v1.AvatarChange{{AvatarId: avatar, Action: action}}})
		return err
	}
	change := &v1.ToolChange{ToolId: e.Enable + e.Disable, Action: action}
	if e.TTLTurns > 0 {
		change.TtlTurns = proto.Int32(e.TTLTurns)
	}
	_, err := a.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: a.chat, RequestId: request, Turn: e.Turn, Changes: []*v1.ToolChange{change}})
	return err
}

func (a *asker) resolve(ctx context.Context, turn *int32) (*v1.ResolveToolsResponse, error) {
	return a.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: a.chat, UserId: a.question.User, Surface: surfaceNamed(a.question.Device), Turn: turn})
}

// available asks of every tool of the world whether it is available, in the order of answers: the effective
// and the withheld tools are not all that is available.
func (a *asker) available(ctx context.Context) (*[]string, error) {
	if a.question.Want.Available == nil {
		return nil, nil
	}
	core, others := []string{}, []string{}
	for _, tool := range a.world.GetTools() {
		r, err := a.CheckTool(ctx, &v1.CheckToolRequest{ChatId: a.chat, UserId: a.question.User,
			Surface: surfaceNamed(a.question.Device), Turn: a.question.Turn, ToolId: tool.GetToolId()})
		switch {
		case status.Code(err) == codes.NotFound: // another user's
		case err != nil:
			return nil, err
		case r.GetAvailable() && tool.GetCore():
			core = append(core, tool.GetToolId())
		case r.GetAvailable():
			others = append(others, tool.GetToolId())
		}
	}
	slices.Sort(core)
	slices.Sort(others)
	all := append(core, others...)
	return &all, nil
}

func (a *asker) steps(ctx context.Context) ([]string, error) {
	r, err := a.ExplainTool(ctx, &v1.ExplainToolRequest{ChatId: a.chat, UserId: a.question.User,
		Surface: surfaceNamed(a.question.Device), Turn: a.question.Turn, ToolId: a.question.Explain})
	if err != nil {
		return nil, err
	}
	var steps []string
	for _, s := range r.GetSteps() {
		var rows []string
		for _, row := range s.GetRows() {
			rows = append(rows, row.GetKind()+"/"+row.GetId())
		}
		steps = append(steps, effectivetest.Step(strings.TrimPrefix(s.GetRule().String(), "EXPLAIN_RULE_"),
			strings.TrimPrefix(s.GetOutcome().String(), "EXPLAIN_OUTCOME_"), rows...))
	}
	return steps, nil
}

func surfaceNamed(name string) *v1.Surface {
	if name == "" || name == effectivetest.Web {
		return web
	}
	return on(name)
}

// plain words an answer as cases do.
func plain(r *v1.ResolveToolsResponse) effectivetest.Answer {
	avatars := append([]string{}, r.GetActiveAvatarIds()...)
	p := effectivetest.Answer{Avatars: &avatars}
	for _, tool := range r.GetTools() {
		p.Effective = append(p.Effective, tool.GetToolId())
		if tool.ExpiresAfterTurns != nil {
			if p.ExpiresAfterTurns == nil {
				p.ExpiresAfterTurns = map[string]int32{}
			}
			p.ExpiresAfterTurns[tool.GetToolId()] = tool.GetExpiresAfterTurns()
		}
	}
	for _, w := range r.GetWithheld() {
		var surfaces []string
		for _, s := range w.GetSurfaces() {
			if s.GetWeb() != nil {
				surfaces = append(surfaces, effectivetest.Web)
			} else {
				surfaces = append(surfaces, s.GetDeviceId())
			}
		}
		p.Withheld = append(p.Withheld, effectivetest.Withheld{Tool: w.GetToolId(), Reason: strings.TrimPrefix(w.GetReason().String(), "WITHHELD_REASON_"),
			MissingCapabilities: w.GetMissingCapabilities(), Groups: w.GetGroupIds(), GrantingGroups: w.GetGrantingGroupIds(),
			Surfaces: surfaces, ShadowedBy: w.GetShadowedByToolId(), Message: w.GetMessage(), MessageZH: w.GetMessageZh()})
	}
	return p
}
