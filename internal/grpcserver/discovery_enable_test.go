package grpcserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func (f *finding) chat(user string) {
	f.Helper()
	if _, err := f.CreateChat(testkit.Context(f.T), &v1.CreateChatRequest{ChatId: "c-" + user, UserId: user, Surface: web, RequestId: "create"}); err != nil {
		f.Fatal(err)
	}
}

func enableBy(user, request string, names ...string) *v1.EnableToolsRequest {
	return &v1.EnableToolsRequest{ChatId: "c-" + user, UserId: user, Surface: web, RequestId: request, Names: names}
}

func (f *finding) enable(r *v1.EnableToolsRequest) *v1.EnableToolsResponse {
	f.Helper()
	p, err := f.discovery.EnableTools(testkit.Context(f.T), r)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *finding) effective(r *v1.ResolveToolsRequest) []string {
	f.Helper()
	p, err := f.ResolveTools(testkit.Context(f.T), r)
	if err != nil {
		f.Fatal(err)
	}
	return toolIDs(p.GetTools())
}

func toolIDs(tools []*v1.EffectiveTool) []string {
	var list []string
	for _, tool := range tools {
		list = append(list, tool.GetToolId())
	}
	return list
}

func TestEnableTellsOfEachName(t *testing.T) {
	f := openLibrary(t, 20)
	f.chat("ann")
	p := f.enable(enableBy("ann", "r1", "get_weather", "notes", "get_wether", "submarine", "wipe_disk", "pollen", "get_weather"))
	var on []string
	for _, e := range p.GetEnabled() {
		on = append(on, e.GetRequestedName()+"="+e.GetToolId()+fmt.Sprint(e.GetTtlTurns()))
	}
	// One's own notes come before the shared ones of that name; pollen is an id.
	if want := []string{"get_weather=weather3", "notes=ann.notes3", "pollen=pollen3", "get_weather=weather3"}; !slices.Equal(on, want) {
		t.Errorf("enabled %v, want %v", on, want)
	}
	var off []string
	for _, r := range p.GetRejected() {
		off = append(off, r.GetRequestedName()+" "+strings.TrimPrefix(r.GetReason().String(), "REJECTION_REASON_"))
		if r.GetMessage() == "" || r.GetMessageZh() == "" || r.GetNextStep() == "" || r.GetNextStepZh() == "" {
			t.Errorf("without words: %v", r)
		}
	}
	if want := []string{"get_wether UNKNOWN_NAME", "submarine WITHHELD", "wipe_disk NEEDS_APPROVAL"}; !slices.Equal(off, want) {
		t.Errorf("rejected %v, want %v", off, want)
	}
	if near := p.GetRejected()[0].GetNearestNames(); len(near) == 0 || near[0] != "get_weather" {
		t.Errorf("nearest: %v", near)
	}
	if p.GetRejected()[1].GetWithheld().GetReason() != v1.WithheldReason_WITHHELD_REASON_NOT_OFFERED {
		t.Errorf("withheld: %v", p.GetRejected()[1])
	}
	if len(p.GetEntries()) != 3 || p.GetEntries()[0].GetActor() != v1.ChatActor_CHAT_ACTOR_MODEL {
		t.Errorf("entries: %v", p.GetEntries())
	}
	for turn, want := range map[int32][]string{0: {"now", "ann.notes", "pollen", "weather"}, 2: {"now", "ann.notes", "pollen", "weather"}} {
		if got := f.effective(&v1.ResolveToolsRequest{ChatId: "c-ann", UserId: "ann", Surface: web, Turn: proto.Int32(turn)}); !slices.Equal(got, want) {
			t.Errorf("turn %d: %v, want %v", turn, got, want)
		}
	}
	if got := f.effective(&v1.ResolveToolsRequest{ChatId: "c-ann", UserId: "ann", Surface: web, Turn: proto.Int32(3)}); !slices.Equal(got, []string{"now"}) {
		t.Errorf("after three turns: %v", got)
	}
}

func TestEnableIsRepeatable(t *testing.T) {
	f := openLibrary(t, 20)
	f.chat("ann")
	ctx := testkit.Context(t)
	first := f.enable(enableBy("ann", "r1", "get_weather", "gone"))
	if _, err := f.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: "gone", ToolTypeId: "plain", Name: "gone", OwnerUserId: "ann"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "weather", Status: v1.ToolStatus_TOOL_STATUS_RETIRED}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"status"}}}); err != nil {
		t.Fatal(err)
	}
	// What was answered is answered again, whatever holds by now.
	if again := f.enable(enableBy("ann", "r1", "get_weather", "gone")); !proto.Equal(again, first) {
		t.Errorf("%v\nfirst %v", again, first)
	}
	if _, err := f.discovery.EnableTools(ctx, enableBy("ann", "r1", "pollen")); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another request of that id: %v", err)
	}
	// What turned on nothing wrote nothing, and ends no chat.
	if p := f.enable(enableBy("ann", "r2", "later")); len(p.GetEntries()) != 0 || len(p.GetRejected()) != 1 || p.GetRevision() == "" {
		t.Errorf("%v", p)
	}
	if _, err := f.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: "later", ToolTypeId: "plain", Name: "later", OwnerUserId: "ann"}}); err != nil {
		t.Fatal(err)
	}
	if p := f.enable(enableBy("ann", "r2", "later")); len(p.GetEnabled()) != 1 {
		t.Errorf("decided anew: %v", p)
	}
}

func TestEnableByPersonAndModelIsToldApart(t *testing.T) {
	f := openLibrary(t, 20)
	f.chat("ann")
	ctx := testkit.Context(t)
	f.enable(enableBy("ann", "r1", "pollen"))
	byPerson := enableBy("ann", "r2", "wipe_disk")
	byPerson.Actor, byPerson.TtlTurns = v1.ChatActor_CHAT_ACTOR_PERSON, proto.Int32(7)
	if p := f.enable(byPerson); len(p.GetEnabled()) != 1 || p.GetEnabled()[0].GetTtlTurns() != 7 {
		t.Errorf("%v", p)
	}
	if _, err := f.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c-ann", RequestId: "r3", Actor: v1.ChatActor_CHAT_ACTOR_PERSON,
		Changes: []*v1.ToolChange{{ToolId: "weather", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c-ann", RequestId: "r4",
		Changes: []*v1.ToolChange{{ToolId: "weather", Action: v1.ChatAction_CHAT_ACTION_DISABLE}}}); err != nil {
		t.Fatal(err)
	}
	log, err := f.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: "c-ann"})
	if err != nil {
		t.Fatal(err)
	}
	var actors []v1.ChatActor
	for _, e := range log.GetEntries() {
		if e.GetToolId() != "" {
			actors = append(actors, e.GetActor())
		}
	}
	if want := []v1.ChatActor{v1.ChatActor_CHAT_ACTOR_MODEL, v1.ChatActor_CHAT_ACTOR_PERSON, v1.ChatActor_CHAT_ACTOR_PERSON, v1.ChatActor_CHAT_ACTOR_UNSPECIFIED}; !slices.Equal(actors, want) {
		t.Errorf("%v, want %v", actors, want)
	}
}

func TestEnableOfOthers(t *testing.T) {
	f := openLibrary(t, 20)
	f.chat("ann")
	f.chat("bob")
	ctx := testkit.Context(t)
	for _, name := range []string{"zanzibar_index", "ann.more", "ann.notes", "zanzibar_indx", "quokka log"} {
		p := f.enable(enableBy("bob", "r-"+fmt.Sprint(len(name)), name))
		if r := p.GetRejected(); len(r) != 1 || r[0].GetReason() != v1.RejectionReason_REJECTION_REASON_UNKNOWN_NAME || r[0].GetToolId() != "" ||
			slices.Contains(r[0].GetNearestNames(), "zanzibar_index") {
			t.Errorf("%s: %v", name, p)
		}
	}
	for want, r := range map[codes.Code]*v1.EnableToolsRequest{
		codes.PermissionDenied: {ChatId: "c-ann", UserId: "bob", Surface: web, RequestId: "x", Names: []string{"pollen"}},
		codes.NotFound:         {ChatId: "never", UserId: "bob", Surface: web, RequestId: "x", Names: []string{"nothing"}},
		codes.InvalidArgument:  {ChatId: "c-bob", UserId: "bob", Surface: web, RequestId: "x"},
	} {
		if _, err := f.discovery.EnableTools(ctx, r); status.Code(err) != want {
			t.Errorf("%v: %v, want %v", r, err, want)
		}
	}
	if _, err := f.EndChat(ctx, &v1.EndChatRequest{ChatId: "c-bob", RequestId: "end"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.discovery.EnableTools(ctx, enableBy("bob", "late", "pollen")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an ended chat: %v", err)
	}
}

func TestResolveNarrowsForAQuery(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	f.apply(ctx, t, "avatars: [{avatar_id: all, tool_ids: [weather, pollen, notes, f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, hidden, ann.notes]}]\ndefault_avatars: [{avatar_id: all}]")
	f.chat("bob")
	f.enable(enableBy("bob", "r1", "catalogue_ribbons_19"))
	ask := func(query string, view v1.ToolView) *v1.ResolveToolsResponse {
		t.Helper()
		p, err := f.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c-bob", UserId: "bob", Surface: web, Query: query, View: view})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole := ask("", v1.ToolView_TOOL_VIEW_FULL)
	if len(whole.GetTools()) != 19 || len(whole.GetDeferred()) != 0 || whole.GetPromptNote() != "" {
		t.Fatalf("without a query: %v", whole)
	}
	for query, want := range map[string][]string{
		"get the weather: will it rain": {"now", "f19", "weather"},
		"my collection of violins":      {"now", "f03", "f19"},
		"I love you":                    {"now", "f19"},
	} {
		p := ask(query, v1.ToolView_TOOL_VIEW_FULL)
		got := toolIDs(p.GetTools())
		for _, tool := range want {
			if !slices.Contains(got, tool) {
				t.Errorf("%q gives %v, want %v", query, got, want)
			}
		}
		if len(got) > 2+3 {
			t.Errorf("%q gives %v", query, got)
		}
		// Nothing is lost, and what is told is told as without a query, in its order.
		var told []*v1.EffectiveTool
		all := append([]string(nil), got...)
		for _, tool := range whole.GetTools() {
			if slices.Contains(got, tool.GetToolId()) {
				told = append(told, tool)
			}
		}
		for _, d := range p.GetDeferred() {
			all = append(all, d.GetToolId())
		}
		slices.Sort(all)
		if every := toolIDs(whole.GetTools()); !slices.Equal(all, sorted(every)) {
			t.Errorf("%q: %v, want %v", query, all, every)
		}
		if !proto.Equal(&v1.ResolveToolsResponse{Tools: p.GetTools(), Withheld: p.GetWithheld(), ActiveAvatarIds: p.GetActiveAvatarIds()},
			&v1.ResolveToolsResponse{Tools: told, Withheld: whole.GetWithheld(), ActiveAvatarIds: whole.GetActiveAvatarIds()}) {
			t.Errorf("%q: %v", query, p)
		}
		if p.GetPromptNote() == "" || p.GetPromptNoteZh() == "" {
			t.Errorf("%q: no note", query)
		}
	}
	// A deferred tool may be called.
	answer, err := v1.NewCallServiceClient(f.conn).AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: "x", ChatId: "c-bob", UserId: "bob", Surface: web, Function: "catalogue_stamps_0"})
	if err != nil || answer.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
		t.Errorf("%v, %v", answer, err)
	}
	// Few tools are told whatever the query.
	f.apply(ctx, t, "avatars: [{avatar_id: all, tool_ids: [weather, pollen, notes, f00, f01]}]")
	if p := ask("get the weather: will it rain", v1.ToolView_TOOL_VIEW_BASIC); len(p.GetTools()) != 7 || len(p.GetDeferred()) != 0 || p.GetPromptNote() != "" {
		t.Errorf("few tools: %v", p)
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
