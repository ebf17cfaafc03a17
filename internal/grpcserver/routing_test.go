package grpcserver_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/routing"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// routed is a library with users in groups, at two servers, that record what is asked.
type routed struct {
	*finding
	other  *finding
	shadow *routing.Shadow
}

const routedGroups = `
groups:
  - {group_id: trial, priority: 1}
  - {group_id: staff, priority: 2}
  - {group_id: guests, priority: 2}
avatars: [{avatar_id: all, tool_ids: [weather, pollen, notes, f00, f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13]}]
default_avatars: [{avatar_id: all}]
users:
  - {user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}], memberships: [{group_id: trial}]}
  - {user_id: cat, devices: [{device_id: cat-phone, device_type_id: phone}], memberships: [{group_id: trial}, {group_id: staff}]}
  - {user_id: dan, devices: [{device_id: dan-phone, device_type_id: phone}], memberships: [{group_id: guests}, {group_id: staff}]}
`

func openRouted(t *testing.T) *routed {
	t.Helper()
	r := &routed{shadow: routing.NewShadow(slog.Default())}
	url, redis := testkit.Database(t), testkit.Redis(t)
	open := func(o grpcserver.DiscoveryOptions) *finding {
		n := node.Start(t, url, node.Options{Learning: true, Redis: redis, Discovery: o})
		return &finding{t, clientOf(n.Conn, url), v1.NewDiscoveryServiceClient(n.Conn), n}
	}
	r.finding, r.other = open(grpcserver.DiscoveryOptions{Shadow: r.shadow}), open(grpcserver.DiscoveryOptions{})
	ctx := testkit.Context(t)
	r.apply(ctx, t, libraryOf(20))
	r.apply(ctx, t, routedGroups)
	return r
}

// set sets a mode; an empty one takes it back.
func (r *routed) set(group string, mode routing.Mode) string {
	r.Helper()
	p, err := r.discovery.SetRoutingMode(testkit.Context(r.T), &v1.SetRoutingModeRequest{GroupId: group, Mode: v1.RoutingMode(v1.RoutingMode_value["ROUTING_MODE_"+string(mode)])})
	if err != nil {
		r.Fatal(err)
	}
	return p.GetRevision()
}

const rainy = "get the weather: will it rain"

// asked tells how a user is answered: the mode, whether something is found, and whether a large set is narrowed.
func (f *finding) asked(user, revision string) (mode string, found, narrowed bool) {
	f.Helper()
	fresh := &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: revision}}
	if revision == "" {
		fresh = nil
	}
	search := searchBy(user, rainy)
	search.Consistency = fresh
	s := f.search(search)
	if s.GetFallback() != nil && (s.GetFallback().GetSuggestion() == "" || s.GetFallback().GetSuggestionZh() == "") {
		f.Errorf("no words: %v", s)
	}
	p, err := f.ResolveTools(testkit.Context(f.T), &v1.ResolveToolsRequest{ChatId: "c-" + user, UserId: user, Surface: web, Query: rainy, Consistency: fresh})
	if err != nil {
		f.Fatal(err)
	}
	if len(p.GetTools())+len(p.GetDeferred()) != 18 {
		f.Errorf("%s has %d tools and %d deferred", user, len(p.GetTools()), len(p.GetDeferred()))
	}
	return s.GetRoutingMode().String()[len("ROUTING_MODE_"):], len(s.GetMatches()) > 0, len(p.GetDeferred()) > 0
}

func TestRoutingModesAreSwitchedWhileRunning(t *testing.T) {
	r := openRouted(t)
	wants := func(revision string, modes map[string]routing.Mode) {
		t.Helper()
		for name, server := range map[string]*finding{"the server": r.finding, "another server": r.other} {
			for user, want := range modes {
				mode, found, narrowed := server.asked(user, revision)
				if answers := want == routing.V2; mode != string(want) || found != answers || narrowed != answers {
					t.Errorf("%s answers %s in mode %s, found %v, narrowed %v; want %s", name, user, mode, found, narrowed, want)
				}
			}
		}
	}
	wants("", map[string]routing.Mode{"ann": "V2", "bob": "V2", "cat": "V2"})
	wants(r.set("", "LEGACY"), map[string]routing.Mode{"ann": "LEGACY", "bob": "LEGACY", "cat": "LEGACY", "dan": "LEGACY"})
	r.set("trial", "V2")
	r.set("guests", "V2")
	// cat: the higher priority. dan: of two equal ones the more cautious.
	wants(r.set("staff", "HYBRID"), map[string]routing.Mode{"ann": "V2", "bob": "LEGACY", "cat": "HYBRID", "dan": "HYBRID"})
	wants(r.set("staff", ""), map[string]routing.Mode{"cat": "V2", "dan": "V2"})
	wants(r.set("", ""), map[string]routing.Mode{"bob": "V2"})
}

func TestRoutingModesAreAdministered(t *testing.T) {
	r := openRouted(t)
	ctx := testkit.Context(t)
	r.set("", "HYBRID")
	first := r.set("trial", "LEGACY")
	r.set("trial", "LEGACY") // changes nothing, and tells nothing
	r.set("trial", "V2")
	r.set("staff", "LEGACY")
	r.set("staff", "")
	list := func(size int32, token string) *v1.ListRoutingModesResponse {
		p, err := r.discovery.ListRoutingModes(ctx, &v1.ListRoutingModesRequest{PageSize: size, PageToken: token,
			Consistency: &v1.Consistency{Requirement: &v1.Consistency_AtLeastAsFresh{AtLeastAsFresh: first}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var modes []string
	for p := list(1, ""); ; p = list(1, p.GetNextPageToken()) {
		for _, m := range p.GetModes() {
			modes = append(modes, m.GetGroupId()+" "+m.GetMode().String())
		}
		if p.GetNextPageToken() == "" {
			break
		}
	}
	if want := []string{" ROUTING_MODE_HYBRID", "trial ROUTING_MODE_V2"}; !slices.Equal(modes, want) {
		t.Errorf("%v, want %v", modes, want)
	}
	entries, err := v1.NewAuditServiceClient(r.conn).ListAuditEntries(ctx, &v1.ListAuditEntriesRequest{Kind: "routing_mode"})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range slices.Backward(entries.GetEntries()) {
		told = append(told, e.GetAction().String()[len("AUDIT_ACTION_"):]+" "+e.GetObjectId()+" "+e.GetBefore().GetFields().GetFields()["mode"].GetStringValue()+">"+
			e.GetAfter().GetFields().GetFields()["mode"].GetStringValue())
	}
	if want := []string{"CREATE * >HYBRID", "CREATE trial >LEGACY", "UPDATE trial LEGACY>V2", "CREATE staff >LEGACY", "DELETE staff LEGACY>"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	for want, bad := range map[codes.Code]*v1.SetRoutingModeRequest{
		codes.NotFound:        {GroupId: "nobody", Mode: v1.RoutingMode_ROUTING_MODE_LEGACY},
		codes.InvalidArgument: {GroupId: "no group", Mode: v1.RoutingMode_ROUTING_MODE_LEGACY},
	} {
		if _, err := r.discovery.SetRoutingMode(ctx, bad); status.Code(err) != want {
			t.Errorf("%v: %v, want %v", bad, err, want)
		}
	}
	if _, err := r.discovery.SetRoutingMode(ctx, &v1.SetRoutingModeRequest{Mode: 17}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an unknown mode: %v", err)
	}
	// With a group go its modes; another group of its name has none.
	r.apply(ctx, t, "users: [{user_id: ann, devices: [{device_id: ann-phone, device_type_id: phone}]}, {user_id: cat}]")
	if _, err := r.DeleteGroup(ctx, &v1.DeleteGroupRequest{GroupId: "trial"}); err != nil {
		t.Fatal(err)
	}
	r.apply(ctx, t, routedGroups)
	if mode, _, _ := r.asked("ann", ""); mode != "HYBRID" {
		t.Errorf("ann is answered in mode %s", mode)
	}
	if modes := list(100, "").GetModes(); len(modes) != 1 {
		t.Errorf("%v", modes)
	}
}

// What V2 would have answered is recorded, and so is what it answers.
func TestTheShadowIsRecorded(t *testing.T) {
	r := openRouted(t)
	ctx := testkit.Context(t)
	r.set("trial", "HYBRID")
	r.set("staff", "LEGACY")
	for _, user := range []string{"ann", "bob", "cat"} { // HYBRID, V2, LEGACY
		r.asked(user, "")
	}
	idle := make(chan struct{})
	r.shadow.Do(func() error { close(idle); return nil })
	<-idle
	if err := r.node.Searches.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT kind || ' ' || routing_mode || ' ' || user_id || ' ' || coalesce(found_tool_ids[1], '') || ' ' ||
		(cardinality(features) > 0)::text || ' ' || coalesce(effective_count::text, '') || ' ' || coalesce(kept_tool_ids::text, '') FROM searches ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NARROWING HYBRID ann weather false 18 {now,weather}", "NARROWING V2 bob weather false 18 {now,weather}",
		"SEARCH HYBRID ann weather true  ", "SEARCH LEGACY cat  false  ", "SEARCH V2 bob weather true  "}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%q\nwant\n%q", got, want)
	}
	if s := r.shadow.Stats(); s.Failed != 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// While the shadow is busy, answers of HYBRID come all the same, and what it has no room for is counted.
func TestTheShadowDelaysNoAnswer(t *testing.T) {
	r := openRouted(t)
	r.set("", "HYBRID")
	began, release := make(chan struct{}), make(chan struct{})
	r.shadow.Do(func() error { close(began); <-release; return nil })
	defer close(release)
	<-began
	before := r.shadow.Stats()
	r.asked("bob", "")
	if now := r.shadow.Stats(); now.Waiting != before.Waiting+2 {
		t.Errorf("%+v, before %+v", now, before)
	}
	for r.shadow.Stats().Dropped == 0 {
		r.shadow.Do(func() error { return nil })
	}
	full := r.shadow.Stats()
	r.asked("bob", "")
	if now := r.shadow.Stats(); now.Dropped != full.Dropped+2 || now.Waiting != full.Waiting || now.Done != full.Done {
		t.Errorf("%+v, full %+v", now, full)
	}
}
