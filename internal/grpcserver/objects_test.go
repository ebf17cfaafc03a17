package grpcserver_test

import (
	"fmt"
	"math"
	gostrings "strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
)

func TestAnObjectFromCreationToDeletion(t *testing.T) {
	ctx, c := setup(t)
	created, err := c.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: "map", ToolTypeId: "clock", Name: "show.map",
		Title: "Map", RequiredCapabilities: []string{"gps"}, RelatedToolIds: []string{"web_search.pro", "slides"}}})
	if err != nil {
		t.Fatal(err)
	}
	if w := created.GetWarnings(); len(w) != 1 || w[0].GetField() != "tool.name" {
		t.Errorf("a name with a dot deserves a warning: %v", w)
	}
	got, err := c.GetTool(ctx, &v1.GetToolRequest{ToolId: "map",
		Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: created.GetRevision()}}})
	if err != nil || !proto.Equal(got.GetTool(), created.GetTool()) {
		t.Fatalf("got %v, %v; want %v", got, err, created)
	}
	_, err = c.CreateTool(ctx, &v1.CreateToolRequest{Tool: got.GetTool()})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")

	updated, err := c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "map", Title: "Maps", Etag: got.GetTool().GetEtag()},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"title", "required_capabilities"}}})
	if err != nil {
		t.Fatal(err)
	}
	if u := updated.GetTool(); u.GetTitle() != "Maps" || len(u.GetRequiredCapabilities()) != 0 || u.GetName() != "show.map" || u.GetEtag() == got.GetTool().GetEtag() {
		t.Errorf("got %v", u)
	}
	if updated.GetRevision() <= created.GetRevision() {
		t.Errorf("revisions must grow: %s, then %s", created.GetRevision(), updated.GetRevision())
	}
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "map", Title: "Atlas", Etag: got.GetTool().GetEtag()}})
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "tool.etag")
	_, err = c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "map", Etag: got.GetTool().GetEtag()})
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "etag")
	if _, err := c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "map", Etag: updated.GetTool().GetEtag()}); err != nil {
		t.Error(err)
	}
	_, err = c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "map"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	if _, err := c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "map", AllowMissing: true}); err != nil {
		t.Error(err)
	}
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "map"}})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	_, err = c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "map", ToolTypeId: "nothing"}, AllowMissing: true})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.name")
	if _, err := c.UpdateTool(ctx, &v1.UpdateToolRequest{Tool: &v1.Tool{ToolId: "map", ToolTypeId: "clock", Name: "map"}, AllowMissing: true}); err != nil {
		t.Error(err)
	}
}

func TestAnUpdateReplacesAllOrWhatIsPopulated(t *testing.T) {
	ctx, c := setup(t)
	update := func(avatar *v1.Avatar, paths ...string) *v1.Avatar {
		t.Helper()
		r, err := c.UpdateAvatar(ctx, &v1.UpdateAvatarRequest{Avatar: avatar, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetAvatar()
	}
	if a := update(&v1.Avatar{AvatarId: "helper", Title: "Helper"}); a.GetTitle() != "Helper" || len(a.GetToolIds()) != 3 {
		t.Errorf("without a mask: %v", a)
	}
	if a := update(&v1.Avatar{AvatarId: "helper", ToolIds: []string{"slides"}}, "*"); a.GetTitle() != "" || len(a.GetToolIds()) != 1 {
		t.Errorf("with *: %v", a)
	}
	_, err := c.UpdateAvatar(ctx, &v1.UpdateAvatarRequest{Avatar: &v1.Avatar{AvatarId: "helper"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"title", "colour"}}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "update_mask.paths[1]")
}

func TestAnUpdateSaysWhatItUpdates(t *testing.T) {
	ctx, c := setup(t)
	refused := func(field string, err error) {
		t.Helper()
		expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", field)
	}
	_, err := c.UpdateAvatar(ctx, &v1.UpdateAvatarRequest{})
	refused("avatar", err)
	_, err = c.UpdateAvatar(ctx, &v1.UpdateAvatarRequest{Avatar: &v1.Avatar{Title: "Helper"}})
	refused("avatar.avatar_id", err)
	_, err = c.UpdateUser(ctx, &v1.UpdateUserRequest{AllowMissing: true})
	refused("user", err)
	_, err = c.UpdateDevice(ctx, &v1.UpdateDeviceRequest{UserId: "ann"})
	refused("device", err)
	_, err = c.UpdateDevice(ctx, &v1.UpdateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceTypeId: "phone"}, AllowMissing: true})
	refused("device.device_id", err)
	_, err = c.UpdateMembership(ctx, &v1.UpdateMembershipRequest{UserId: "bob"})
	refused("membership", err)
	_, err = c.UpdateMembership(ctx, &v1.UpdateMembershipRequest{UserId: "bob", Membership: &v1.Membership{}})
	refused("membership.group_id", err)
	_, err = c.UpdateDefaultAvatar(ctx, &v1.UpdateDefaultAvatarRequest{UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"*"}}})
	refused("default_avatar", err)
	// Without a user and a device type it is the default for all of them.
	if _, err := c.UpdateDefaultAvatar(ctx, &v1.UpdateDefaultAvatarRequest{DefaultAvatar: &v1.DefaultAvatar{AvatarId: "helper"}}); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfAnObjectAreNamedInItsRequest(t *testing.T) {
	ctx, c := setup(t)
	_, err := c.UpdateDeviceType(ctx, &v1.UpdateDeviceTypeRequest{DeviceType: &v1.DeviceType{DeviceTypeId: "phone", ToolIds: []string{"zzz", "now", "ann.notes"}}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "device_type.tool_ids[0]", "device_type.tool_ids[2]")
	_, err = c.CreateTool(ctx, &v1.CreateToolRequest{Tool: &v1.Tool{ToolId: "x", ToolTypeId: "search", Name: "x", Config: fields(t, map[string]any{"depth": 77})}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool.config.depth")
	_, err = c.CreateDevice(ctx, &v1.CreateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "a", DeviceTypeId: "zzz"}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "device.device_type_id")
	_, err = c.CreateDevice(ctx, &v1.CreateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "bob-phone", DeviceTypeId: "phone"}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "device.device_id")
	now := timestamppb.Now()
	_, err = c.UpdateMembership(ctx, &v1.UpdateMembershipRequest{UserId: "bob", Membership: &v1.Membership{GroupId: "premium", StartTime: now, ExpireTime: now}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "membership.")
}

func TestWhatOthersReferToCannotGo(t *testing.T) {
	ctx, c := setup(t)
	inUse := func(err error, fields ...string) {
		t.Helper()
		expect(t, err, codes.FailedPrecondition, "ERROR_REASON_IN_USE", fields...)
	}
	_, err := c.DeleteToolType(ctx, &v1.DeleteToolTypeRequest{ToolTypeId: "slides"})
	inUse(err, "stored tool slides.tool_type_id")
	_, err = c.DeleteTool(ctx, &v1.DeleteToolRequest{ToolId: "web_search.pro"})
	inUse(err, "stored group premium.grant_tool_ids[0]", "stored avatar helper.tool_ids[2]")
	_, err = c.DeleteDeviceType(ctx, &v1.DeleteDeviceTypeRequest{DeviceTypeId: "speaker"})
	inUse(err, "stored user ann.devices")
	_, err = c.DeleteGroup(ctx, &v1.DeleteGroupRequest{GroupId: "premium"})
	inUse(err, "stored user bob.memberships")
	_, err = c.DeleteAvatar(ctx, &v1.DeleteAvatarRequest{AvatarId: "helper"})
	inUse(err, "stored default avatar *,*.avatar_id")
	_, err = c.DeleteUser(ctx, &v1.DeleteUserRequest{UserId: "ann"})
	inUse(err, "stored tool ann.notes.owner_user_id")
	if _, err := c.CreateChat(ctx, &v1.CreateChatRequest{ChatId: "c", UserId: "bob", Surface: web, RequestId: "r"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.DeleteUser(ctx, &v1.DeleteUserRequest{UserId: "bob"})
	inUse(err, "stored chat c.user_id")
	if _, err = c.DeleteDefaultAvatar(ctx, &v1.DeleteDefaultAvatarRequest{}); err != nil {
		t.Error(err)
	}
	if _, err = c.DeleteAvatar(ctx, &v1.DeleteAvatarRequest{AvatarId: "helper"}); err != nil {
		t.Error(err)
	}
}

func TestADryRunFindsWhoIsInTheWayOfPruning(t *testing.T) {
	ctx, c := setup(t)
	c.create(ctx, t, "c", "bob")
	both := func(manifest string) (err error) {
		t.Helper()
		var dry error
		_, dry = c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, manifest), Prune: true, DryRun: true})
		_, err = c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: parse(t, manifest), Prune: true})
		if !proto.Equal(status.Convert(dry).Proto(), status.Convert(err).Proto()) {
			t.Errorf("the dry run answers %v, the write %v", dry, err)
		}
		return err
	}
	const inUse = "ERROR_REASON_IN_USE"
	expect(t, both("groups: [{group_id: other}]"), codes.FailedPrecondition, inUse, "stored user bob.memberships")
	expect(t, both("device_types: [{device_type_id: phone}]"), codes.FailedPrecondition, inUse, "stored user ann.devices")
	expect(t, both("users: [{user_id: ann}]"), codes.FailedPrecondition, inUse, "stored chat c.user_id")
	expect(t, both("{groups: [{group_id: other}], avatars: [{avatar_id: helper, tool_ids: [zzz]}]}"), codes.InvalidArgument,
		"ERROR_REASON_INVALID_REQUEST", "stored user bob.memberships", "avatars[0].tool_ids[0]")
	// Who leaves in the same edit is not in the way.
	if err := both("{groups: [{group_id: other}], device_types: [{device_type_id: phone}], users: [{user_id: ann}, {user_id: bob}]}"); err != nil {
		t.Error(err)
	}
}

func TestWhatADryRunPassesIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		prune    bool
	}{
		"a tool becomes private and leaves what is shared": {manifest: `
tools: [{tool_id: slides, tool_type_id: slides, name: slides, owner_user_id: ann}]
device_types: [{device_type_id: phone, tool_ids: [now]}, {device_type_id: speaker, tool_ids: [now]}]
groups: [{group_id: premium}]
`},
		"tools that relate to each other go": {prune: true, manifest: `
tools: [{tool_id: now, tool_type_id: clock, name: now, core: true}]
device_types: [{device_type_id: phone, tool_ids: [now]}, {device_type_id: speaker, tool_ids: [now]}]
groups: [{group_id: premium}]
avatars: [{avatar_id: helper}]
`},
		"devices change hands": {manifest: `
users:
  - {user_id: ann, devices: [{device_id: bob-phone, device_type_id: phone}]}
  - {user_id: bob, devices: [{device_id: ann-phone, device_type_id: phone}, {device_id: ann-speaker, device_type_id: speaker}]}
`},
		"users go, and what they have": {prune: true, manifest: `
tools: [{tool_id: now, tool_type_id: clock, name: now, core: true}]
device_types: [{device_type_id: new, tool_ids: [now]}]
groups: [{group_id: new}]
avatars: [{avatar_id: new}]
default_avatars: [{avatar_id: new}]
users: [{user_id: eve, devices: [{device_id: bob-phone, device_type_id: new}], memberships: [{group_id: new}]}]
`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, c := setup(t)
			c.apply(ctx, t, `tools:
  - {tool_id: a, tool_type_id: clock, name: a, related_tool_ids: [b]}
  - {tool_id: b, tool_type_id: clock, name: b, related_tool_ids: [a]}
`)
			request := &v1.ApplyManifestRequest{Manifest: parse(t, test.manifest), Prune: test.prune, DryRun: true}
			dry, err := c.ApplyManifest(ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			request.DryRun = false
			written, err := c.ApplyManifest(ctx, request)
			if err != nil || len(written.GetChanges()) != len(dry.GetChanges()) {
				t.Errorf("the dry run told %v; the write %v, %v", dry.GetChanges(), written.GetChanges(), err)
			}
		})
	}
}

func TestOfManyReferrersTheFirstAreNamedAndAllAreCounted(t *testing.T) {
	ctx, c := setup(t)
	manifest := "groups: [{group_id: crowd}]\nusers:\n"
	for i := range 12 {
		manifest += fmt.Sprintf("  - {user_id: member-%02d, memberships: [{group_id: crowd}]}\n", i)
	}
	c.apply(ctx, t, manifest)
	_, err := c.DeleteGroup(ctx, &v1.DeleteGroupRequest{GroupId: "crowd"})
	expect(t, err, codes.FailedPrecondition, "ERROR_REASON_IN_USE", "stored user member-00.memberships", "stored user member-01.memberships",
		"stored user member-02.memberships", "stored user member-03.memberships", "stored user member-04.memberships")
	if message := status.Convert(err).Message(); !gostrings.Contains(message, "one of 12") {
		t.Errorf("it does not say how many they are: %s", message)
	}
}

func TestDevicesAndMembershipsAreChangedOneByOne(t *testing.T) {
	ctx, c := setup(t)
	if _, err := c.CreateDevice(ctx, &v1.CreateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "a", DeviceTypeId: "phone"}}); err != nil {
		t.Fatal(err)
	}
	_, err := c.CreateDevice(ctx, &v1.CreateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "a", DeviceTypeId: "phone"}})
	expect(t, err, codes.AlreadyExists, "ERROR_REASON_ALREADY_EXISTS")
	if _, err := c.UpdateDevice(ctx, &v1.UpdateDeviceRequest{UserId: "ann", Device: &v1.Device{DeviceId: "a", DeviceTypeId: "speaker"}}); err != nil {
		t.Fatal(err)
	}
	d, err := c.GetDevice(ctx, &v1.GetDeviceRequest{UserId: "ann", DeviceId: "a"})
	if err != nil || d.GetDevice().GetDeviceTypeId() != "speaker" {
		t.Errorf("got %v, %v", d, err)
	}
	_, err = c.GetDevice(ctx, &v1.GetDeviceRequest{UserId: "bob", DeviceId: "a"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
	end := timestamppb.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if _, err := c.CreateMembership(ctx, &v1.CreateMembershipRequest{UserId: "ann", Membership: &v1.Membership{GroupId: "premium", ExpireTime: end}}); err != nil {
		t.Fatal(err)
	}
	r, err := c.ResolveTools(ctx, &v1.ResolveToolsRequest{ChatId: "new", UserId: "ann", Surface: on("a")})
	if err != nil || summary(r) != "now web_search.pro -slides:MISSING_CAPABILITY -web_search.basic:SHADOWED" {
		t.Errorf("got %s, %v", summary(r), err)
	}
	if _, err := c.DeleteMembership(ctx, &v1.DeleteMembershipRequest{UserId: "ann", GroupId: "premium"}); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteDevice(ctx, &v1.DeleteDeviceRequest{UserId: "ann", DeviceId: "a"}); err != nil {
		t.Error(err)
	}
	left, err := c.ListDevices(ctx, &v1.ListDevicesRequest{UserId: "ann"})
	if err != nil || len(left.GetDevices()) != 2 {
		t.Errorf("got %v, %v", left, err)
	}
	_, err = c.ListMemberships(ctx, &v1.ListMembershipsRequest{UserId: "nobody"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
}

func TestListsArePaged(t *testing.T) {
	ctx, c := setup(t)
	var names []string
	var token string
	for {
		r, err := c.ListTools(ctx, &v1.ListToolsRequest{PageSize: 2, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range r.GetTools() {
			names = append(names, tool.GetToolId())
		}
		if token = r.GetNextPageToken(); token == "" {
			break
		}
	}
	if got := gostrings.Join(names, " "); got != "ann.notes now slides web_search.basic web_search.pro" {
		t.Errorf("got %s", got)
	}
	first, err := c.ListUsers(ctx, &v1.ListUsersRequest{PageSize: 1})
	if err != nil || first.GetUsers()[0].GetUserId() != "ann" {
		t.Fatalf("got %v, %v", first, err)
	}
	second, err := c.ListUsers(ctx, &v1.ListUsersRequest{PageSize: 1, PageToken: first.GetNextPageToken()})
	if err != nil || second.GetUsers()[0].GetUserId() != "bob" || second.GetNextPageToken() != "" {
		t.Errorf("got %v, %v", second, err)
	}
	_, err = c.ListTools(ctx, &v1.ListToolsRequest{PageToken: first.GetNextPageToken()})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_token")
	_, err = c.ListTools(ctx, &v1.ListToolsRequest{PageSize: -1})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "page_size")
}

func TestAManifestWithAnOutdatedEtagChangesNothing(t *testing.T) {
	ctx, c := setup(t)
	r, err := c.GetAvatar(ctx, &v1.GetAvatarRequest{AvatarId: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	read := r.GetAvatar()
	c.apply(ctx, t, `avatars: [{avatar_id: helper, title: Somebody else's}]`)
	read.Title = "Mine"
	_, err = c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{Avatars: []*v1.Avatar{{AvatarId: "new"}, read}}})
	expect(t, err, codes.Aborted, "ERROR_REASON_ETAG_MISMATCH", "avatars[1].etag")
	_, err = c.GetAvatar(ctx, &v1.GetAvatarRequest{AvatarId: "new"})
	expect(t, err, codes.NotFound, "ERROR_REASON_NOT_FOUND")
}

func TestWhatCannotBeStoredIsRefused(t *testing.T) {
	ctx, c := setup(t)
	_, err := c.CreateToolType(ctx, &v1.CreateToolTypeRequest{ToolType: &v1.ToolType{ToolTypeId: "x", Source: v1.ToolSource_TOOL_SOURCE_NATIVE,
		ConfigSchema: fields(t, map[string]any{"enum": []any{"a\x00b", map[string]any{"\x00": 1}}, "description": gostrings.Repeat("x", 70_000)})}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool_type.config_schema",
		"tool_type.config_schema.enum[0]", `tool_type.config_schema.enum[1].\x00`)
	config := &structpb.Struct{Fields: map[string]*structpb.Value{"depth": structpb.NewNumberValue(math.NaN())}}
	_, err = c.ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: &v1.Manifest{Tools: []*v1.Tool{{ToolId: "x", ToolTypeId: "search", Name: "x", Config: config}}}})
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tools[0].config.depth")
}

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func TestInvalidUTF8IsNamed(t *testing.T) {
	ctx, c := setup(t)
	raw := grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2(encodingproto.Name)})
	text := func(number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	// A tool's localized text: tools[1].localized["zh"].title in a manifest.
	localized := text(19, string(text(1, "zh"))+string(text(2, string(text(1, "\xff")))))
	config := text(8, string(text(1, string(text(1, "depth"))+string(text(2, string(text(3, "\xfe")))))))
	manifest := text(1, string(text(2, string(text(1, "ok"))))+string(text(2, string(text(4, "a\xc3"))+string(localized)+string(config))))
	err := c.conn.Invoke(ctx, v1.AdminService_ApplyManifest_FullMethodName, manifest, &v1.ApplyManifestResponse{}, raw)
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "manifest.tools[1].title", `manifest.tools[1].localized["zh"].title`,
		"manifest.tools[1].config.depth")
	err = c.conn.Invoke(ctx, v1.CatalogService_GetTool_FullMethodName, text(1, "\xff"), &v1.GetToolResponse{}, raw)
	expect(t, err, codes.InvalidArgument, "ERROR_REASON_INVALID_REQUEST", "tool_id")
	// A field that a newer client knows is no fault.
	if err := c.conn.Invoke(ctx, v1.CatalogService_GetTool_FullMethodName, append(text(1, "now"), text(999, "\xff")...), &v1.GetToolResponse{}, raw); err != nil {
		t.Error(err)
	}
}

func fields(t *testing.T, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
