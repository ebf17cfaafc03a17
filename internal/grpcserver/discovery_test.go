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
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// library has more tools than are told without a choice, most of them off.
const library = `
tool_types:
  - {tool_type_id: plain, source: TOOL_SOURCE_NATIVE}
  - {tool_type_id: weather, source: TOOL_SOURCE_NATIVE, input_schema: {type: object, properties: {city: {type: string, description: name of the town}}}}
tools:
  - {tool_id: now, tool_type_id: plain, name: now, title: Clock, description: Tells the date and the time., core: true, capability: {deterministic_for: [what time is it]}}
  - {tool_id: weather, tool_type_id: weather, name: get_weather, title: Weather, description: Forecast of rain and temperature., category: outdoors, aliases: [天气预报], related_tool_ids: [pollen], localized: {zh: {title: 天气, description: 查询天气}}}
  - {tool_id: pollen, tool_type_id: plain, name: pollen_count, description: How much pollen is in the air.}
  - {tool_id: look, tool_type_id: plain, name: describe_picture, description: Tells what a photograph shows., capability: {requires: [model.image_input]}}
  - {tool_id: acme, tool_type_id: plain, name: ledger_entry, description: Books an invoice in the ledger., capability: {provider_constraints: [acme]}}
  - {tool_id: files, tool_type_id: plain, name: read_file, description: Reads a file of the disk., capability: {requires: [filesystem.read]}}
  - {tool_id: wipe, tool_type_id: plain, name: wipe_disk, description: Erases the disk., risk: TOOL_RISK_HIGH}
  - {tool_id: hidden, tool_type_id: plain, name: submarine, description: Steers a submarine.}
  - {tool_id: notes, tool_type_id: plain, name: notes, description: Shared notes of the whole house.}
  - {tool_id: ann.notes, tool_type_id: plain, name: notes, description: Private diary of zanzibar adventures., aliases: [quokka log], owner_user_id: ann, related_tool_ids: [ann.more]}
  - {tool_id: ann.more, tool_type_id: plain, name: zanzibar_index, description: Index of the diary., owner_user_id: ann}
FILLERS
device_types:
  - {device_type_id: phone, tool_ids: [now, weather, pollen, look, acme, files, wipe, notesLISTED]}
users:
  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}]}
  - {user_id: bob, devices: [{device_id: bob-phone, device_type_id: phone}]}
`

// libraryOf is the library with fillers, which everybody may have.
func libraryOf(fillers int) string {
	subjects := []string{"stamps", "bicycles", "sonnets", "violins", "tomatoes", "comets", "bridges", "sheep", "carpets", "candles", "lanterns", "marbles",
		"kettles", "ladders", "mirrors", "needles", "onions", "pillows", "quilts", "ribbons"}
	var tools, listed strings.Builder
	for i := range fillers {
		subject := subjects[i%len(subjects)]
		fmt.Fprintf(&tools, "  - {tool_id: f%02d, tool_type_id: plain, name: catalogue_%s_%d, description: Keeps a collection of %s.}\n", i, subject, i, subject)
		fmt.Fprintf(&listed, ", f%02d", i)
	}
	return strings.NewReplacer("FILLERS", tools.String(), "LISTED", listed.String()).Replace(library)
}

type finding struct {
	*testing.T
	client
	discovery v1.DiscoveryServiceClient
	node      *node.Node
}

func openLibrary(t *testing.T, fillers int) *finding {
	t.Helper()
	url := testkit.Database(t)
	n := node.Start(t, url, node.Options{Calls: grpcserver.CallOptions{Deployment: call.Deployment{Network: true}}})
	f := &finding{t, clientOf(n.Conn, url), v1.NewDiscoveryServiceClient(n.Conn), n}
	f.apply(testkit.Context(t), t, libraryOf(fillers))
	return f
}

func searchBy(user, query string) *v1.SearchToolsRequest {
	return &v1.SearchToolsRequest{ChatId: "c-" + user, UserId: user, Surface: web, Query: query}
}

func (f *finding) search(r *v1.SearchToolsRequest) *v1.SearchToolsResponse {
	f.Helper()
	p, err := f.discovery.SearchTools(testkit.Context(f.T), r)
	if err != nil {
		f.Fatalf("%q: %v", r.GetQuery(), err)
	}
	return p
}

func matchIDs(p *v1.SearchToolsResponse) []string {
	var found []string
	for _, m := range p.GetMatches() {
		found = append(found, m.GetToolId())
	}
	return found
}

func TestSearchFindsWhatIsAvailable(t *testing.T) {
	f := openLibrary(t, 20)
	for query, want := range map[string]string{
		"get the weather: will it rain": "weather", "明天的天气怎么样": "weather", "查一下 pollen": "pollen", "collection of violins": "f03",
		"quokka log": "ann.notes", "notes of zanzibar": "ann.notes", "weather of the town": "weather",
	} {
		p := f.search(searchBy("ann", query))
		if len(p.GetMatches()) == 0 || p.GetMatches()[0].GetToolId() != want {
			t.Errorf("%q finds %v, want %s", query, matchIDs(p), want)
			continue
		}
		m := p.GetMatches()[0]
		if len(m.GetWhyMatched()) == 0 || m.GetWhyMatched()[0].GetMessage() == "" || m.GetWhyMatched()[0].GetMessageZh() == "" {
			t.Errorf("%q: no reasons: %v", query, m)
		}
		if m.GetConfidence() <= 0 || m.GetScore() <= 0 || m.GetFeatures() != nil || p.GetFallback() != nil || len(p.GetMatches()) > 5 {
			t.Errorf("%q: %v", query, p)
		}
	}
	explained := searchBy("ann", "get the weather: will it rain")
	explained.Explain, explained.TopK = true, 1
	p := f.search(explained)
	if m := p.GetMatches(); len(m) != 1 || m[0].GetFeatures().GetWords() != 1 || m[0].GetFeatures().GetAdjustment() != 1 || m[0].GetFeatures().GetRanking() != m[0].GetScore() {
		t.Errorf("explained: %v", p)
	}
	if r := p.GetRelated(); len(r) != 1 || r[0].GetToolId() != "pollen" || r[0].GetRelatedToToolId() != "weather" {
		t.Errorf("related: %v", r)
	}
}

func TestSearchHoldsNothingThatMayNotBeUsed(t *testing.T) {
	f := openLibrary(t, 20)
	for query, missing := range map[string]string{
		"steer a submarine": "hidden", "describe the picture: what does the photograph show": "look", "book an invoice in the ledger": "acme", "read a file of the disk": "files",
	} {
		if p := f.search(searchBy("ann", query)); slices.Contains(matchIDs(p), missing) {
			t.Errorf("%q finds %v", query, matchIDs(p))
		}
	}
	able := searchBy("ann", "describe the picture: what does the photograph show")
	able.ModelCapabilities = []string{"image_input"}
	if p := f.search(able); len(p.GetMatches()) == 0 || p.GetMatches()[0].GetToolId() != "look" {
		t.Errorf("a model that sees finds %v", matchIDs(p))
	}
	acme := searchBy("ann", "book an invoice in the ledger")
	acme.Provider = "acme"
	if p := f.search(acme); len(p.GetMatches()) == 0 || p.GetMatches()[0].GetToolId() != "acme" {
		t.Errorf("a model of acme finds %v", matchIDs(p))
	}
}

func TestSearchSaysThatNothingFits(t *testing.T) {
	f := openLibrary(t, 20)
	for _, query := range []string{"", "?!", "I love you", "你好吗", "the of and"} {
		p := f.search(searchBy("bob", query))
		if len(p.GetMatches()) != 0 || p.GetFallback().GetSuggestion() == "" || p.GetFallback().GetSuggestionZh() == "" {
			t.Errorf("%q: %v", query, p)
		}
	}
}

func TestSearchOfFewCandidatesReturnsThemAll(t *testing.T) {
	f := openLibrary(t, 2)
	p := f.search(searchBy("bob", "will it rain"))
	if !p.GetAllCandidates() || int(p.GetCandidateCount()) != len(p.GetMatches()) || p.GetMatches()[0].GetToolId() != "weather" {
		t.Fatalf("%v", p)
	}
	found := matchIDs(p)
	slices.Sort(found)
	if want := []string{"f00", "f01", "notes", "now", "pollen", "weather", "wipe"}; !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
	p = f.search(searchBy("bob", "I love you"))
	if len(p.GetMatches()) != 7 || p.GetFallback() == nil {
		t.Errorf("nothing fits: %v", p)
	}
}

func TestFastPath(t *testing.T) {
	f := openLibrary(t, 20)
	if p := f.search(searchBy("ann", "Please: what time is it now, by the clock?")); p.GetFastPath().GetToolId() != "now" || p.GetFastPath().GetTask() != "what time is it" {
		t.Errorf("%v", p)
	}
	if p := f.search(searchBy("ann", "the date on the clock")); p.GetFastPath() != nil {
		t.Errorf("another task: %v", p.GetFastPath())
	}
}

// Whatever bob asks, ann's private tools change nothing of what he is answered, down to the scores.
func TestPrivateToolsAreFoundByTheirOwnerOnly(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	questions := []string{"notes", "quokka log", "zanzibar", "zanzibar_index", "ann.notes", "ann", "private diary of zanzibar adventures", "index of the diary", "will it rain tomorrow", "日记"}
	ask := func() []*v1.SearchToolsResponse {
		var answers []*v1.SearchToolsResponse
		for _, query := range questions {
			r := searchBy("bob", query)
			r.Explain, r.TopK = true, 50
			p := f.search(r)
			p.Revision = ""
			answers = append(answers, p)
			r.Surface, r.Consistency = on("bob-phone"), &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}}
			p = f.search(r)
			p.Revision = ""
			answers = append(answers, p)
		}
		return answers
	}
	for _, query := range questions {
		f.search(searchBy("ann", query)) // her index is there
	}
	with := ask()
	for i, p := range with {
		if strings.Contains(p.String(), "zanzibar") && !strings.Contains(questions[i/2], "zanzibar") || strings.Contains(p.String(), "ann.") {
			t.Errorf("%q tells bob %v", questions[i/2], p)
		}
	}
	for _, steal := range []*v1.SearchToolsRequest{
		{ChatId: "c", UserId: "bob", Surface: on("ann-phone"), Query: "zanzibar"},
		{ChatId: "ann-chat", UserId: "bob", Surface: web, Query: "zanzibar"},
	} {
		if _, err := f.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "ann-chat", UserId: "ann", Surface: web, RequestId: "r"}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.discovery.SearchTools(ctx, steal); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v: %v", steal, err)
		}
	}
	for _, tool := range []string{"ann.notes", "ann.more"} {
		if _, err := f.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: tool}); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range ask() {
		if !proto.Equal(p, with[i]) {
			t.Errorf("%q: without ann's tools\n%v\nwith them\n%v", questions[i/2], p, with[i])
		}
	}
}

// What is written is searchable with the revision of the write: new tools, changed ones, and those that went.
func TestSearchSeesChangesAtOnce(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	find := func(user, query string) string {
		p := f.search(searchBy(user, query))
		if len(p.GetMatches()) == 0 {
			return ""
		}
		return p.GetMatches()[0].GetToolId()
	}
	if got := find("ann", "xylophone lessons"); got != "" {
		t.Fatalf("found %s before it is there", got)
	}
	update := func(tool *v1.Tool, paths ...string) {
		t.Helper()
		if _, err := f.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: tool, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}}); err != nil {
			t.Fatal(err)
		}
	}
	update(&v1.Tool{ToolId: "f05", Description: "Gives xylophone lessons."}, "description")
	if got := find("ann", "xylophone lessons"); got != "f05" {
		t.Errorf("a changed tool: %q", got)
	}
	update(&v1.Tool{ToolId: "ann.more", Description: "Sells gramophone needles."}, "description")
	if got := find("ann", "sell gramophone needles"); got != "ann.more" {
		t.Errorf("a changed private tool: %q", got)
	}
	update(&v1.Tool{ToolId: "f05", Status: v1.ToolStatus_TOOL_STATUS_RETIRED}, "status")
	if got := find("ann", "xylophone lessons"); got != "" {
		t.Errorf("a retired tool: %q", got)
	}
}

func TestSearchBounds(t *testing.T) {
	f := openLibrary(t, 20)
	ctx := testkit.Context(t)
	long := searchBy("ann", strings.Repeat("rain in the town. ", 3000))
	if p := f.search(long); p.GetMatches()[0].GetToolId() != "weather" {
		t.Errorf("%v", matchIDs(p))
	}
	for name, bad := range map[string]*v1.SearchToolsRequest{
		"top_k": {ChatId: "c", UserId: "ann", Surface: web, TopK: 51}, "query": {ChatId: "c", UserId: "ann", Surface: web, Query: strings.Repeat("x", 65537)},
		"surface": {ChatId: "c", UserId: "ann"}, "user_id": {ChatId: "c", Surface: web},
	} {
		if _, err := f.discovery.SearchTools(ctx, bad); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.discovery.SearchTools(ctx, searchBy("nobody", "rain")); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown user: %v", err)
	}
}
