package grpcserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"buf.build/go/protoyaml"
	"github.com/jackc/pgx/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const company = `
tool_types:
  - {tool_type_id: clock, source: TOOL_SOURCE_NATIVE}
  - {tool_type_id: search, source: TOOL_SOURCE_NATIVE, config_schema: {type: object, properties: {depth: {type: integer, maximum: 9}}, additionalProperties: false}}
  - {tool_type_id: slides, source: TOOL_SOURCE_NATIVE}
tools:
  - {tool_id: now, tool_type_id: clock, name: now, core: true}
  - {tool_id: web_search.basic, tool_type_id: search, name: web_search, config: {depth: 1}}
  - {tool_id: web_search.pro, tool_type_id: search, name: web_search, precedence: 10, config: {depth: 9}}
  - {tool_id: slides, tool_type_id: slides, name: slides, title: Slides, required_capabilities: [display]}
  - {tool_id: ann.notes, tool_type_id: clock, name: notes, owner_user_id: ann}
device_types:
  - {device_type_id: phone, capabilities: [display], tool_ids: [now, web_search.basic, slides]}
  - {device_type_id: speaker, tool_ids: [now, web_search.basic, slides]}
groups:
  - {group_id: premium, title: Premium, priority: 5, grant_tool_ids: [web_search.pro]}
avatars:
  - {avatar_id: helper, tool_ids: [web_search.basic, web_search.pro, slides]}
default_avatars:
  - {avatar_id: helper}
users:
  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}, {device_id: ann-speaker, device_type_id: speaker}]}
  - {user_id: bob, devices: [{device_id: bob-phone, device_type_id: phone}], memberships: [{group_id: premium}]}
`

type client struct {
	v1.EntitlementServiceClient
	v1.ChatServiceClient
	v1.AdminServiceClient
	v1.CatalogServiceClient
	v1.AvailabilityServiceClient
	v1.AvatarServiceClient
	v1.AuditServiceClient
	conn *grpc.ClientConn
	url  string
}

// setup serves a fresh database, with the company in it, over a real connection.
func setup(t *testing.T) (context.Context, client) {
	t.Helper()
	ctx, c := serve(t, time.Now)
	c.apply(ctx, t, company)
	return ctx, c
}

// serve serves a fresh database, with nothing in it, over a real connection.
func serve(t *testing.T, now func() time.Time) (context.Context, client) {
	t.Helper()
	ctx := testkit.Context(t)
	url := testkit.Database(t)
	return ctx, clientOf(node.Start(t, url, node.Options{Now: now}).Conn, url)
}

func clientOf(conn *grpc.ClientConn, url string) client {
	return client{v1.NewEntitlementServiceClient(conn), v1.NewChatServiceClient(conn), v1.NewAdminServiceClient(conn),
		v1.NewCatalogServiceClient(conn), v1.NewAvailabilityServiceClient(conn), v1.NewAvatarServiceClient(conn), v1.NewAuditServiceClient(conn), conn, url}
}

func (c client) apply(ctx context.Context, t *testing.T, manifest string) *v1.ApplyManifestResponse {
	t.Helper()
	response, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, manifest)})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return response
}

func parse(t *testing.T, manifest string) *v1.Manifest {
	t.Helper()
	m := &v1.Manifest{}
	if err := protoyaml.Unmarshal([]byte(manifest), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func on(device string) *v1.Surface {
	return &v1.Surface{Kind: &v1.Surface_DeviceId{DeviceId: device}}
}

var web = &v1.Surface{Kind: &v1.Surface_Web{Web: &v1.Web{}}}

// summary is an answer in a line: tools, then withheld tools with their reasons.
func summary(r interface {
	GetTools() []*v1.EffectiveTool
	GetWithheld() []*v1.WithheldTool
}) string {
	var words []string
	for _, tool := range r.GetTools() {
		words = append(words, tool.GetToolId())
	}
	for _, w := range r.GetWithheld() {
		words = append(words, "-"+w.GetToolId()+":"+strings.TrimPrefix(w.GetReason().String(), "WITHHELD_REASON_"))
	}
	return strings.Join(words, " ")
}

func TestEachSurfaceSeesItsOwnEffectiveSet(t *testing.T) {
	ctx, c := setup(t)
	for _, test := range []struct {
		user    string
		surface *v1.Surface
		want    string
	}{
		{"ann", on("ann-phone"), "now slides web_search.basic -web_search.pro:NOT_OFFERED"},
		{"ann", on("ann-speaker"), "now web_search.basic -slides:MISSING_CAPABILITY -web_search.pro:NOT_OFFERED"},
		{"ann", web, "now slides web_search.basic -web_search.pro:NOT_OFFERED"},
		{"bob", on("bob-phone"), "now slides web_search.pro -web_search.basic:SHADOWED"},
	} {
		r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "new", UserId: test.user, Surface: test.surface})
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(r); got != test.want || !r.GetNewChat() {
			t.Errorf("%s on %v: got %q, want %q", test.user, test.surface, got, test.want)
		}
	}
}

func TestAChatTurnsToolsOnForSomeTurns(t *testing.T) {
	ctx, c := setup(t)
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "ann", Surface: web, RequestId: "r1"}); err != nil {
		t.Fatal(err)
	}
	set, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c", RequestId: "r2", Turn: proto.Int32(3), Changes: []*v1.ToolChange{
		{ToolId: "ann.notes", Action: v1.ChatAction_CHAT_ACTION_ENABLE, TtlTurns: proto.Int32(2)},
		{ToolId: "slides", Action: v1.ChatAction_CHAT_ACTION_DISABLE},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for turn, want := range map[int32]string{
		4: "now ann.notes web_search.basic -web_search.pro:NOT_OFFERED",
	} {
		r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Turn: proto.Int32(turn),
			Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: set.GetRevision()}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(r); got != want || r.GetTools()[1].GetExpiresAfterTurns() != 1 {
			t.Errorf("turn %d: got %q %v, want %q", turn, got, r.GetTools()[1], want)
		}
	}
	// The turn was stored, since an enabling with a TTL depended on it: the chat is past it now.
	for _, turn := range []*int32{proto.Int32(5), nil} {
		r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "c", UserId: "ann", Surface: web, Turn: turn})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := summary(r), "now web_search.basic -web_search.pro:NOT_OFFERED"; got != want {
			t.Errorf("turn %v: got %q, want %q", turn, got, want)
		}
	}
}

func TestARepeatedRequestReturnsItsFirstResult(t *testing.T) {
	ctx, c := setup(t)
	create := &v1.CreateChatRequest{ChatId: "c", UserId: "ann", Surface: web, RequestId: "r1"}
	first, err := c.CreateChat(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	c.apply(ctx, t, `avatars: [{avatar_id: other}]`)
	if _, err := c.SetChatAvatars(ctx, &v1.SetChatAvatarsRequest{ChatId: "c", RequestId: "r0", Turn: proto.Int32(4),
		Changes: []*v1.AvatarChange{{AvatarId: "other", Action: v1.ChatAction_CHAT_ACTION_ENABLE}}}); err != nil {
		t.Fatal(err)
	}
	again, err := c.CreateChat(ctx, create)
	if err != nil || !proto.Equal(first, again) {
		t.Errorf("got %v %v, want %v", again, err, first)
	}
	_, err = c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "ann", Surface: web, RequestId: "r2"})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")
	_, err = c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "bob", Surface: web, RequestId: "r1"})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_REQUEST_ID_REUSED")
}

func TestConcurrentWritersNumberALogWithoutGaps(t *testing.T) {
	ctx, c := setup(t)
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "ann", Surface: web, RequestId: "r"}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			// Every request is made twice at once: it must count once.
			for range 2 {
				_, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c", RequestId: fmt.Sprint("w", i/2), Changes: []*v1.ToolChange{
					{ToolId: "slides", Action: v1.ChatAction_CHAT_ACTION_ENABLE}, {ToolId: "slides", Action: v1.ChatAction_CHAT_ACTION_DISABLE}}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var token string
	var numbers []int32
	for {
		page, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: "c", PageSize: 7, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.GetEntries() {
			numbers = append(numbers, e.GetSequenceNumber())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if len(numbers) != 21 {
		t.Errorf("got %d entries, want 21", len(numbers))
	}
	for i, n := range numbers {
		if n != int32(i+1) {
			t.Fatalf("entry %d has number %d", i+1, n)
		}
	}
}

func TestChatLogsRefuseToBeChanged(t *testing.T) {
	ctx, c := setup(t)
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "ann", Surface: web, RequestId: "r"}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, table := range []string{"chat_tool_log", "chat_avatar_log", "chat_requests", "chat_tool_log_0", "chat_avatar_log_7"} {
		for _, statement := range []string{"UPDATE %s SET request_id = 'x'", "DELETE FROM %s", "TRUNCATE %s"} {
			_, err := conn.Exec(ctx, fmt.Sprintf(statement, table))
			if err == nil || !strings.Contains(err.Error(), "TG001") {
				t.Errorf("%s: %v", fmt.Sprintf(statement, table), err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	ctx, c := setup(t)
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "bob", Surface: web, RequestId: "r"}); err != nil {
		t.Fatal(err)
	}
	resolve := func(chat, user string, surface *v1.Surface) error {
		_, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: chat, UserId: user, Surface: surface})
		return err
	}
	set := func(changes ...*v1.ToolChange) error {
		_, err := c.SetChatTools(ctx, &v1.SetChatToolsRequest{ChatId: "c", RequestId: "x", Changes: changes})
		return err
	}
	const enable, disable = v1.ChatAction_CHAT_ACTION_ENABLE, v1.ChatAction_CHAT_ACTION_DISABLE
	expect(t, resolve("c", "nobody", web), codes.NotFound, "ERROR_REASON_NOT_FOUND")
	expect(t, resolve("c", "bob", on("nothing")), codes.NotFound, "ERROR_REASON_NOT_FOUND")
	expect(t, resolve("c", "bob", on("ann-phone")), codes.PermissionDenied, "ERROR_REASON_DEVICE_OF_ANOTHER_USER")
	expect(t, resolve("c", "ann", web), codes.PermissionDenied, "ERROR_REASON_CHAT_OF_ANOTHER_USER")
	expect(t, resolve("", "ann", nil), codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "chat_id", "surface")
	expect(t, set(&v1.ToolChange{ToolId: "ann.notes", Action: enable}), codes.NotFound, "ERROR_REASON_NOT_FOUND", "changes[0].tool_id")
	expect(t, set(&v1.ToolChange{ToolId: "slides", Action: enable}, &v1.ToolChange{ToolId: "now", Action: disable}),
		codes.FailedPrecondition, "ERROR_REASON_CORE_TOOL", "changes[1].tool_id")
	expect(t, set(&v1.ToolChange{ToolId: "slides", Action: enable, TtlTurns: proto.Int32(-1)}),
		codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "changes[0].ttl_turns")
	many := make([]*v1.ToolChange, 100_000)
	for i := range many {
		many[i] = &v1.ToolChange{ToolId: "slides", Action: enable}
	}
	expect(t, set(many...), codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "changes")
	log, err := c.ListChatLog(ctx, &v1.ListChatLogRequest{ChatId: "c"})
	if err != nil || len(log.GetEntries()) != 1 {
		t.Errorf("a refused request wrote: %v %v", log, err)
	}
	if _, err := c.EndChat(ctx, &v1.EndChatRequest{ChatId: "c", RequestId: "end"}); err != nil {
		t.Fatal(err)
	}
	expect(t, resolve("c", "bob", web), codes.FailedPrecondition, "ERROR_REASON_CHAT_ENDED")
	expect(t, set(&v1.ToolChange{ToolId: "slides", Action: enable}), codes.FailedPrecondition, "ERROR_REASON_CHAT_ENDED")
}

func TestAManifestReportsEveryFaultAtOnce(t *testing.T) {
	ctx, c := setup(t)
	faulty := parse(t, `
tool_types: [{tool_type_id: bad id}, {tool_type_id: x, source: TOOL_SOURCE_EXTERNAL_MCP}, {tool_type_id: x, source: TOOL_SOURCE_NATIVE, config_schema: {type: 7}}]
tools:
  - {tool_id: t1, tool_type_id: none, name: t1}
  - {tool_id: t2, tool_type_id: search, name: t2, config: {depth: 10, colour: red}}
  - {tool_id: t3, tool_type_id: clock, name: "", owner_user_id: stranger, core: true, related_tool_ids: [t3, zzz]}
device_types: [{device_type_id: d, tool_ids: [ann.notes, zzz]}]
groups: [{group_id: g, grant_tool_ids: [ann.notes]}]
avatars: [{avatar_id: a, tool_ids: [zzz]}]
default_avatars: [{avatar_id: zzz, user_id: zzz, device_type_id: zzz}]
users: [{user_id: u, devices: [{device_id: ann-phone, device_type_id: zzz}], memberships: [{group_id: zzz}]}]
`)
	_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: faulty})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST",
		"tool_types[0].tool_type_id", "tool_types[0].source", "tool_types[1].mcp_server_id", "tool_types[2].tool_type_id",
		"tool_types[2].config_schema", "tools[0].tool_type_id", "tools[1].config.depth", "tools[1].config", "tools[2].name",
		"tools[2].owner_user_id", "tools[2].core", "tools[2].related_tool_ids[0]", "tools[2].related_tool_ids[1]",
		"device_types[0].tool_ids[0]", "device_types[0].tool_ids[1]", "groups[0].grant_tool_ids[0]", "avatars[0].tool_ids[0]",
		"default_avatars[0].avatar_id", "default_avatars[0].user_id", "default_avatars[0].device_type_id",
		"users[0].devices[0].device_type_id", "users[0].devices[0].device_id", "users[0].memberships[0].group_id")
}

func TestApplyingWhatWasExportedChangesNothing(t *testing.T) {
	ctx, c := setup(t)
	exported, err := c.ExportManifest(ctx, &v1.ExportManifestRequest{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: exported.GetManifest(), Prune: true})
	if err != nil || len(again.GetChanges()) > 0 {
		t.Errorf("it changed %v: %v", again, err)
	}
	if repeated := c.apply(ctx, t, company); len(repeated.GetChanges()) > 0 {
		t.Errorf("the same manifest changed %v", repeated)
	}
}

func TestPruneDeletesWhatTheManifestDoesNotName(t *testing.T) {
	ctx, c := setup(t)
	smaller := parse(t, `avatars: [{avatar_id: helper, tool_ids: [web_search.basic, web_search.pro]}]
device_types:
  - {device_type_id: phone, capabilities: [display], tool_ids: [now, web_search.basic]}
  - {device_type_id: speaker, tool_ids: [now, web_search.basic]}
tools:
  - {tool_id: now, tool_type_id: clock, name: now, core: true}
  - {tool_id: web_search.basic, tool_type_id: search, name: web_search, config: {depth: 1}}
  - {tool_id: web_search.pro, tool_type_id: search, name: web_search, precedence: 10, config: {depth: 9}}
`)
	dry, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: smaller, Prune: true, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: smaller, Prune: true})
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, change := range applied.GetChanges() {
		if change.GetAction() == v1.ChangeAction_CHANGE_ACTION_DELETE {
			deleted = append(deleted, change.GetId())
		}
	}
	if got := strings.Join(deleted, " "); got != "slides ann.notes" || len(dry.GetChanges()) != len(applied.GetChanges()) {
		t.Errorf("deleted %q; dry run told %v", got, dry.GetChanges())
	}
	if applied.GetRevision() <= dry.GetRevision() {
		t.Errorf("the revision did not grow: %s, then %s", dry.GetRevision(), applied.GetRevision())
	}
}

func TestExplainTriesEveryRuleInOrder(t *testing.T) {
	ctx, c := setup(t)
	r, err := c.ExplainTool(ctx, &v1.ExplainToolRequest{ChatId: "new", UserId: "ann", Surface: on("ann-speaker"), ToolId: "slides"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.GetSteps()) != 11 || r.GetReason() != v1.WithheldReason_WITHHELD_REASON_MISSING_CAPABILITY {
		t.Fatalf("got %v", r)
	}
	for i, step := range r.GetSteps() {
		if int(step.GetRule()) != i+1 || step.GetOutcome() == 0 || step.GetMessage() == "" {
			t.Errorf("step %d is %v", i, step)
		}
	}
	c.apply(ctx, t, `users: [{user_id: bob, memberships: [{group_id: premium, start_time: "2020-01-01T08:00:00+08:00", expire_time: "2021-01-01T00:00:00.5Z"}]}]`)
	r, err = c.ExplainTool(ctx, &v1.ExplainToolRequest{ChatId: "new", UserId: "bob", Surface: web, ToolId: "web_search.pro"})
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.ExplainRow{Kind: "membership", Id: "premium", Detail: "not active now, from 2020-01-01T00:00:00Z, until 2021-01-01T00:00:00.5Z"}
	if rows := r.GetSteps()[1].GetRows(); len(rows) != 2 || !proto.Equal(rows[1], want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	_, err = c.CheckTool(ctx, &v1.CheckToolRequest{ChatId: "new", UserId: "bob", Surface: web, ToolId: "ann.notes"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
}

// expect checks a refusal: its code, its reason and the fields that it names, no more and no less.
func expect(t *testing.T, err error, code codes.Code, reason string, fields ...string) {
	t.Helper()
	st := status.Convert(err)
	var got string
	named := map[string]bool{}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			got = d.GetReason()
			if _, known := v1.ErrorReason_value[got]; !known || d.GetDomain() != "toolgrant" {
				t.Errorf("undocumented reason: %v", d)
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				named[v.GetField()] = true
			}
		}
	}
	if st.Code() != code || got != reason {
		t.Errorf("got %v %s: %s; want %v %s", st.Code(), got, st.Message(), code, reason)
	}
	for _, field := range fields {
		if !named[field] {
			t.Errorf("%s is not named in: %s", field, st.Message())
		}
		delete(named, field)
	}
	if len(named) > 0 {
		t.Errorf("also named: %v in: %s", named, st.Message())
	}
}
