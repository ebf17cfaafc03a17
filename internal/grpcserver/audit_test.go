package grpcserver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

// audit returns the newest entries, oldest first.
func (c client) audit(ctx context.Context, t *testing.T, r *v1.ListAuditEntriesRequest) []*v1.AuditEntry {
	t.Helper()
	if r.GetPageSize() == 0 {
		r.PageSize = 1000
	}
	page, err := c.ListAuditEntries(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	entries := page.GetEntries()
	slices.Reverse(entries)
	return entries
}

// told words entries in a line.
func told(entries []*v1.AuditEntry) string {
	var words []string
	for _, e := range entries {
		word := strings.ToLower(strings.TrimPrefix(e.GetAction().String(), "AUDIT_ACTION_")) + " " + e.GetKind() + " " + e.GetObjectId()
		if len(e.GetChangedFields()) > 0 {
			word += " (" + strings.Join(e.GetChangedFields(), " ") + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func TestEveryWriteLeavesAnEntryForEachObjectThatItChanges(t *testing.T) {
	ctx, c := setup(t)
	masked := &fieldmaskpb.FieldMask{Paths: []string{"title"}}
	seen := len(c.audit(ctx, t, &v1.ListAuditEntriesRequest{}))
	if seen != 15 {
		t.Errorf("the company has 15 objects and %d entries", seen)
	}
	for _, test := range []struct {
		what, want string
		do         func() error
	}{
		{"a new tool type", "create tool_type x", func() error {
			_, err := c.CreateToolType(ctx, &v1.CreateToolTypeRequest{ToolType: &v1.ToolType{ToolTypeId: "x", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}})
			return err
		}},
		{"a change of it", "update tool_type x (title)", func() error {
			_, err := c.UpdateToolType(ctx, &v1.UpdateToolTypeRequest{ToolType: &v1.ToolType{ToolTypeId: "x", Title: "X"}, UpdateMask: masked})
			return err
		}},
		{"the same again", "", func() error {
			_, err := c.UpdateToolType(ctx, &v1.UpdateToolTypeRequest{ToolType: &v1.ToolType{ToolTypeId: "x", Title: "X"}, UpdateMask: masked})
			return err
		}},
		{"its end", "delete tool_type x", func() error {
			_, err := c.DeleteToolType(ctx, &v1.DeleteToolTypeRequest{ToolTypeId: "x"})
			return err
		}},
		{"its end again", "", func() error {
			_, err := c.DeleteToolType(ctx, &v1.DeleteToolTypeRequest{ToolTypeId: "x", AllowMissing: true})
			return err
		}},
		{"a tool", "create tool x", func() error {
			_, err := c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "x", ToolTypeId: "clock", Name: "x"}, AllowMissing: true})
			return err
		}},
		{"an MCP server", "create mcp_server s", func() error {
			_, err := c.CreateMcpServer(ctx, &v1.CreateMcpServerRequest{McpServer: &v1.McpServer{McpServerId: "s", Endpoint: "https://example.com/mcp"}})
			return err
		}},
		{"a device type", "update device_type phone (title)", func() error {
			_, err := c.UpdateDeviceType(ctx, &v1.UpdateDeviceTypeRequest{DeviceType: &v1.DeviceType{DeviceTypeId: "phone", Title: "Phone"}})
			return err
		}},
		{"a group", "create group g", func() error {
			_, err := c.CreateGroup(ctx, &v1.CreateGroupRequest{Group: &v1.Group{GroupId: "g"}})
			return err
		}},
		{"a user", "create user eve", func() error {
			_, err := c.CreateUser(ctx, &v1.CreateUserRequest{User: &v1.User{UserId: "eve"}})
			return err
		}},
		{"a device", "update user eve (devices)", func() error {
			_, err := c.CreateDevice(ctx, &v1.CreateDeviceRequest{UserId: "eve", Device: &v1.Device{DeviceId: "eve-phone", DeviceTypeId: "phone"}})
			return err
		}},
		{"a membership", "update user eve (memberships)", func() error {
			_, err := c.UpdateMembership(ctx, &v1.UpdateMembershipRequest{UserId: "eve", Membership: &v1.Membership{GroupId: "g"}, AllowMissing: true})
			return err
		}},
		{"the end of the device", "update user eve (devices)", func() error {
			_, err := c.DeleteDevice(ctx, &v1.DeleteDeviceRequest{UserId: "eve", DeviceId: "eve-phone"})
			return err
		}},
		{"an Avatar", "create avatar a", func() error {
			_, err := c.CreateAvatar(ctx, &v1.CreateAvatarRequest{Avatar: &v1.Avatar{AvatarId: "a", ToolIds: []string{"now"}}})
			return err
		}},
		{"a default Avatar", "create default_avatar eve,*", func() error {
			_, err := c.CreateDefaultAvatar(ctx, &v1.CreateDefaultAvatarRequest{DefaultAvatar: &v1.DefaultAvatar{AvatarId: "a", UserId: "eve"}})
			return err
		}},
		{"a dry run", "", func() error {
			_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, `groups: [{group_id: h}]`), DryRun: true})
			return err
		}},
		{"a manifest", "update tool x (title), create avatar b, update default_avatar eve,* (avatar_id), delete avatar a", func() error {
			_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Prune: true, Manifest: parse(t, `
tools:
  - {tool_id: now, tool_type_id: clock, name: now, core: true}
  - {tool_id: web_search.basic, tool_type_id: search, name: web_search, config: {depth: 1}}
  - {tool_id: web_search.pro, tool_type_id: search, name: web_search, precedence: 10, config: {depth: 9}}
  - {tool_id: slides, tool_type_id: slides, name: slides, title: Slides, required_capabilities: [display]}
  - {tool_id: ann.notes, tool_type_id: clock, name: notes, owner_user_id: ann}
  - {tool_id: x, tool_type_id: clock, name: x, title: X}
avatars: [{avatar_id: helper, tool_ids: [web_search.basic, web_search.pro, slides]}, {avatar_id: b}]
default_avatars: [{avatar_id: helper}, {user_id: eve, avatar_id: b}]
`)})
			return err
		}},
		{"the same manifest", "", func() error {
			_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, `tools: [{tool_id: x, tool_type_id: clock, name: x, title: X}]`)})
			return err
		}},
	} {
		if err := test.do(); err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{})
		if got := told(entries[seen:]); got != test.want {
			t.Errorf("%s: the log tells %q, want %q", test.what, got, test.want)
		}
		seen = len(entries)
	}
	// Chats are not administered.
	c.create(ctx, t, "c", "eve")
	// What is refused is not done.
	_, err := c.DeleteUser(ctx, &v1.DeleteUserRequest{UserId: "eve"})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_IN_USE", "stored chat c.user_id", "stored default avatar eve,*.user_id")
	_, err = c.CreateAvatar(ctx, &v1.CreateAvatarRequest{Avatar: &v1.Avatar{AvatarId: "b"}})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")
	_, err = c.UpdateGroup(ctx, &v1.UpdateGroupRequest{Group: &v1.Group{GroupId: "g", Title: "G", Etag: "outdated"}})
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "group.etag")
	_, err = c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, `{groups: [{group_id: h}], avatars: [{avatar_id: c, tool_ids: [zzz]}]}`)})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "avatars[0].tool_ids[0]")
	if entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{}); len(entries) != seen {
		t.Errorf("refused requests left entries: %s", told(entries[seen:]))
	}
}

func TestAChangeAndItsEntryAreOneTransaction(t *testing.T) {
	ctx, c := setup(t)
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, `
ALTER TABLE audit_entries ADD CONSTRAINT untold CHECK (object_id <> 'untold') NOT VALID;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not committed'; END $$;
CREATE CONSTRAINT TRIGGER uncommitted AFTER INSERT ON groups DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.group_id = 'uncommitted') EXECUTE FUNCTION fail()`); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"untold", "uncommitted"} {
		_, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, fmt.Sprintf("groups: [{group_id: first}, {group_id: %s}]", group))})
		expect(t, err, codes.Internal, "ERROR_REASON_INTERNAL")
		_, err = c.GetGroup(ctx, &v1.GetGroupRequest{GroupId: group})
		expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	}
	if entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{Kind: "group"}); told(entries) != "create group premium" {
		t.Errorf("got %s", told(entries))
	}
}

func TestAnEntryTellsBeforeAndAfter(t *testing.T) {
	ctx, c := setup(t)
	c.apply(ctx, t, `users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: speaker}]}]`)
	entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{Kind: "user", ObjectId: "ann"})
	before := fields(t, map[string]any{"user_id": "ann", "devices": []any{
		map[string]any{"device_id": "ann-phone", "device_type_id": "phone"}, map[string]any{"device_id": "ann-speaker", "device_type_id": "speaker"}}})
	after := fields(t, map[string]any{"user_id": "ann", "devices": []any{map[string]any{"device_id": "ann-phone", "device_type_id": "speaker"}}})
	if len(entries) != 2 || entries[0].GetBefore() != nil || !proto.Equal(entries[0].GetAfter().GetFields(), before) {
		t.Fatalf("got %v", entries)
	}
	if e := entries[1]; !proto.Equal(e.GetBefore().GetFields(), before) || !proto.Equal(e.GetAfter().GetFields(), after) || e.GetUserId() != "ann" {
		t.Errorf("got %v", e)
	}
}

func TestAnEntryTellsWhoAndWhy(t *testing.T) {
	ctx, c := setup(t)
	for i, test := range []struct{ metadata, actor, reason, requestID string }{
		{"", "peer:127.0.0.1", "", ""},
		{"toolgrant-actor ann/ops|toolgrant-reason too many complaints|x-request-id 7f-1", "claimed:ann/ops", "too many complaints", "7f-1"},
		{"toolgrant-reason-bin 太多投诉|toolgrant-reason not this one|x-request-id not an id", "peer:127.0.0.1", "太多投诉", ""},
	} {
		described := ctx
		for pair := range strings.SplitSeq(test.metadata, "|") {
			if key, value, ok := strings.Cut(pair, " "); ok {
				described = metadata.AppendToOutgoingContext(described, key, value)
			}
		}
		if _, err := c.UpdateGroup(described, &v1.UpdateGroupRequest{Group: &v1.Group{GroupId: "premium", Title: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
		entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{PageSize: 1})
		if e := entries[0]; e.GetActor() != test.actor || e.GetReason() != test.reason || e.GetRequestId() != test.requestID {
			t.Errorf("%s: got %v", test.metadata, e)
		}
	}
	for key, value := range map[string]string{"toolgrant-actor": "no blanks", "toolgrant-reason": strings.Repeat("x", 1025), "toolgrant-reason-bin": "\xff"} {
		described := metadata.AppendToOutgoingContext(ctx, key, value)
		_, err := c.DeleteGroup(described, &v1.DeleteGroupRequest{GroupId: "premium"})
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "metadata."+key)
		_, err = c.CreateDevice(described, &v1.CreateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "a", DeviceTypeId: "phone"}})
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "metadata."+key)
		_, err = c.ApplyManifest(described, &v1.ApplyManifestRequest{Manifest: parse(t, "avatars: [{avatar_id: new}]")})
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "metadata."+key)
	}
}

func TestTheAuditLogRefusesToBeChanged(t *testing.T) {
	ctx, c := setup(t)
	before := c.audit(ctx, t, &v1.ListAuditEntriesRequest{})
	conn, err := pgx.Connect(ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, session := range []string{"origin", "replica"} {
		if _, err := conn.Exec(ctx, "SET session_replication_role = "+session); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"UPDATE audit_entries SET actor = 'nobody'",
			"DELETE FROM audit_entries",
			"DELETE FROM audit_entries WHERE false",
			"TRUNCATE audit_entries",
			"TRUNCATE audit_entries, chats CASCADE",
			"MERGE INTO audit_entries e USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE",
			"MERGE INTO audit_entries e USING (SELECT 1) AS s ON true WHEN MATCHED THEN UPDATE SET reason = 'x'",
			`INSERT INTO audit_entries OVERRIDING SYSTEM VALUE SELECT * FROM audit_entries
			    ON CONFLICT (create_time, sequence_number) DO UPDATE SET actor = 'nobody'`,
			"WITH gone AS (DELETE FROM audit_entries RETURNING *) SELECT count(*) FROM gone",
		} {
			if _, err := conn.Exec(ctx, statement); err == nil || !strings.Contains(err.Error(), "TG001") {
				t.Errorf("%s: %s: %v", session, statement, err)
			}
		}
	}
	after := c.audit(ctx, t, &v1.ListAuditEntriesRequest{})
	if told(before) != told(after) {
		t.Errorf("it tells %s, and told %s", told(after), told(before))
	}
}

func TestAuditFilters(t *testing.T) {
	ctx, c := setup(t)
	ann := metadata.AppendToOutgoingContext(ctx, "toolgrant-actor", "ann")
	if _, err := c.UpdateAvatar(ann, &v1.UpdateAvatarRequest{Avatar: &v1.Avatar{AvatarId: "helper", Title: "Helper"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateDefaultAvatar(ctx, &v1.CreateDefaultAvatarRequest{DefaultAvatar: &v1.DefaultAvatar{AvatarId: "helper", UserId: "ann"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteTool(ann, &v1.DeleteToolRequest{ToolId: "ann.notes"}); err != nil {
		t.Fatal(err)
	}
	all := c.audit(ctx, t, &v1.ListAuditEntriesRequest{})
	last := func(n int) *timestamppb.Timestamp { return all[len(all)-n].GetCreateTime() }
	for _, test := range []struct {
		filter *v1.ListAuditEntriesRequest
		want   string
	}{
		{&v1.ListAuditEntriesRequest{Action: v1.AuditAction_AUDIT_ACTION_UPDATE}, "update avatar helper (title)"},
		{&v1.ListAuditEntriesRequest{Kind: "avatar"}, "create avatar helper, update avatar helper (title)"},
		{&v1.ListAuditEntriesRequest{ObjectId: "slides"}, "create tool_type slides, create tool slides"},
		{&v1.ListAuditEntriesRequest{ObjectId: "slides", Kind: "tool"}, "create tool slides"},
		{&v1.ListAuditEntriesRequest{Actor: "claimed:ann"}, "update avatar helper (title), delete tool ann.notes"},
		{&v1.ListAuditEntriesRequest{Actor: "claimed:ann", Action: v1.AuditAction_AUDIT_ACTION_DELETE}, "delete tool ann.notes"},
		{&v1.ListAuditEntriesRequest{UserId: "ann"}, "create user ann, create tool ann.notes, create default_avatar ann,*, delete tool ann.notes"},
		{&v1.ListAuditEntriesRequest{StartTime: last(2)}, "create default_avatar ann,*, delete tool ann.notes"},
		{&v1.ListAuditEntriesRequest{StartTime: last(3), EndTime: last(1)}, "update avatar helper (title), create default_avatar ann,*"},
		{&v1.ListAuditEntriesRequest{StartTime: last(3), EndTime: last(1), Actor: "peer:127.0.0.1"}, "create default_avatar ann,*"},
		{&v1.ListAuditEntriesRequest{Kind: "star"}, ""},
		{&v1.ListAuditEntriesRequest{ObjectId: "'; DROP TABLE audit_entries; --"}, ""},
	} {
		if got := told(c.audit(ctx, t, test.filter)); got != test.want {
			t.Errorf("%v: got %s, want %s", test.filter, got, test.want)
		}
	}
	refused := func(field string, r *v1.ListAuditEntriesRequest) {
		t.Helper()
		_, err := c.ListAuditEntries(ctx, r)
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", field)
	}
	refused("action", &v1.ListAuditEntriesRequest{Action: 99})
	refused("kind", &v1.ListAuditEntriesRequest{Kind: "\x00"})
	refused("", &v1.ListAuditEntriesRequest{StartTime: last(1), EndTime: last(2)})
	refused("start_time", &v1.ListAuditEntriesRequest{StartTime: &timestamppb.Timestamp{Seconds: 1 << 60}})
	refused("end_time", &v1.ListAuditEntriesRequest{EndTime: &timestamppb.Timestamp{Seconds: -1}})
}

func TestTheAuditLogIsPaged(t *testing.T) {
	ctx, c := setup(t)
	all := c.audit(ctx, t, &v1.ListAuditEntriesRequest{Action: v1.AuditAction_AUDIT_ACTION_CREATE})
	request := &v1.ListAuditEntriesRequest{PageSize: 4, Action: v1.AuditAction_AUDIT_ACTION_CREATE}
	var paged []*v1.AuditEntry
	var sizes []int
	for {
		page, err := c.ListAuditEntries(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		paged, sizes = append(paged, page.GetEntries()...), append(sizes, len(page.GetEntries()))
		if len(sizes) == 1 {
			c.apply(ctx, t, "groups: [{group_id: later}]") // which moves no page
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	slices.Reverse(paged)
	if told(paged) != told(all) || fmt.Sprint(sizes) != "[4 4 4 3]" {
		t.Errorf("pages of %v hold %s, want %s", sizes, told(paged), told(all))
	}
	first, err := c.ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{PageSize: 1, Kind: "tool"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{PageSize: 1, Kind: "avatar", PageToken: first.GetNextPageToken()})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_token")
	_, err = c.ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{PageSize: 1001})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_size")
}

func TestAPageOfLargeEntriesHoldsFewer(t *testing.T) {
	ctx, c := setup(t)
	const tools = 100
	manifest := &v1.Manifest{}
	for i := range tools {
		manifest.Tools = append(manifest.Tools, &v1.Tool{ToolId: fmt.Sprintf("large-%02d", i), ToolTypeId: "clock", Name: "large", Prompt: strings.Repeat("x", 60_000)})
	}
	if _, err := c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: manifest}); err != nil {
		t.Fatal(err)
	}
	request := &v1.ListAuditEntriesRequest{PageSize: 1000, Kind: "tool"}
	var names []string
	pages := 0
	for ; request.PageToken != "" || pages == 0; pages++ {
		page, err := c.ListAuditEntries(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if size := proto.Size(page); size > 4<<20 {
			t.Errorf("a page has %d bytes", size)
		}
		for _, e := range page.GetEntries() {
			names = append(names, e.GetObjectId())
		}
		request.PageToken = page.GetNextPageToken()
	}
	if pages < 3 || pages > 5 || len(names) != tools+5 || !slices.IsSortedFunc(names[:tools], func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d pages hold %v", pages, names)
	}
}

func TestConcurrentChangesOfAnObjectAreToldInTheirOrder(t *testing.T) {
	ctx, c := setup(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 5 {
				if _, err := c.UpdateGroup(ctx, &v1.UpdateGroupRequest{Group: &v1.Group{GroupId: "premium", Title: fmt.Sprint(i, j)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	entries := c.audit(ctx, t, &v1.ListAuditEntriesRequest{Kind: "group", ObjectId: "premium"})
	if len(entries) != 41 {
		t.Fatalf("got %d entries", len(entries))
	}
	for i := range entries[1:] {
		earlier, later := entries[i], entries[i+1]
		if !proto.Equal(earlier.GetAfter(), later.GetBefore()) || earlier.GetSequenceNumber() >= later.GetSequenceNumber() {
			t.Errorf("%v is followed by %v", earlier, later)
		}
	}
}
