package grpcserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/health"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/routing"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// school is two servers of one database that learn.
type school struct {
	*finding
	other *finding
	redis string
}

func openSchool(t *testing.T) *school {
	t.Helper()
	s := &school{redis: testkit.Redis(t)}
	url := testkit.Database(t)
	s.finding = s.open(t, url)
	s.apply(testkit.Context(t), t, libraryOf(20))
	s.other = s.open(t, url)
	return s
}

func (s *school) open(t *testing.T, url string) *finding {
	t.Helper()
	n := node.Start(t, url, node.Options{Learning: true, Redis: s.redis})
	return &finding{t, clientOf(n.Conn, url), v1.NewDiscoveryServiceClient(n.Conn), n}
}

// use searches, turns a tool on, calls it and reports that it went well (or not).
func (f *finding) use(chat, user, query, tool string, outcome v1.CallOutcome) {
	f.Helper()
	ctx := testkit.Context(f.T)
	if _, err := f.CreateChat(ctx, &v1.CreateChatRequest{ChatId: chat, UserId: user, Surface: web, RequestId: "create"}); err != nil {
		f.Fatal(err)
	}
	f.search(&v1.SearchToolsRequest{ChatId: chat, UserId: user, Surface: web, Query: query})
	if err := f.node.Searches.Flush(ctx); err != nil {
		f.Fatal(err)
	}
	p := f.enable(&v1.EnableToolsRequest{ChatId: chat, UserId: user, Surface: web, RequestId: "on", Names: []string{tool}})
	if len(p.GetEnabled()) != 1 {
		f.Fatalf("%v", p)
	}
	calls := v1.NewCallServiceClient(f.conn)
	if a, err := calls.AuthorizeCall(ctx, &v1.AuthorizeCallRequest{CallId: chat, ChatId: chat, UserId: user, Surface: web, Function: p.GetEnabled()[0].GetName()}); err != nil ||
		a.GetDecision() != v1.CallDecision_CALL_DECISION_ALLOW {
		f.Fatalf("%v, %v", a, err)
	}
	if _, err := calls.ReportCall(ctx, &v1.ReportCallRequest{CallId: chat, Outcome: outcome}); err != nil {
		f.Fatal(err)
	}
}

// written waits until so many outcomes are written, and has a server read what there is to learn.
func (f *finding) written(outcomes int) {
	f.Helper()
	ctx := testkit.Context(f.T)
	conn, err := pgx.Connect(ctx, f.url)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for n := -1; n < outcomes; { // outcomes come half a second later; the test's deadline ends this
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM call_outcomes").Scan(&n); err != nil {
			f.Fatal(err)
		}
	}
	f.read()
}

func (f *finding) read() {
	f.Helper()
	if err := f.node.Learning.Read(testkit.Context(f.T)); err != nil {
		f.Fatal(err)
	}
}

func explainedBy(user, query string) *v1.SearchToolsRequest {
	r := searchBy(user, query)
	r.Explain, r.TopK = true, 50
	return r
}

// Two users call the forecast by words that no tool has. Others find it by these words then, at every server and after a
// restart, alike.
func TestLearningFromUse(t *testing.T) {
	s := openSchool(t)
	const words = "umbrella gumboots puddles today"
	if p := s.search(searchBy("bob", words)); len(p.GetMatches()) != 0 {
		t.Fatalf("found before it was learned: %v", p)
	}
	s.use("u1", "ann", words, "get_weather", success)
	s.use("u2", "bob", "gumboots against puddles today", "get_weather", success)
	s.use("u3", "ann", words, "pollen", v1.CallOutcome_CALL_OUTCOME_ERROR)
	s.written(3)
	p := s.search(explainedBy("bob", words))
	if len(p.GetMatches()) == 0 || p.GetMatches()[0].GetToolId() != "weather" || p.GetMatches()[0].GetFeatures().GetSimilar() < 2 {
		t.Fatalf("%v", p)
	}
	if kind := p.GetMatches()[0].GetWhyMatched()[0].GetKind(); kind != v1.MatchReasonKind_MATCH_REASON_KIND_PAST {
		t.Errorf("%v", p.GetMatches()[0].GetWhyMatched())
	}
	s.other.read()
	restarted := s.open(t, s.url)
	for name, server := range map[string]*finding{"another server": s.other, "a server that starts": restarted} {
		for _, user := range []string{"ann", "bob"} {
			want, got := s.search(explainedBy(user, words)), server.search(explainedBy(user, words))
			want.Revision, got.Revision = "", ""
			if !proto.Equal(got, want) {
				t.Errorf("%s answers %s %v\nwant %v", name, user, got, want)
			}
		}
	}
}

// Two steps are searched for, both tools are turned on, and then called: each is learned with its own search.
func TestLearningOfSeveralSteps(t *testing.T) {
	s := openSchool(t)
	d := openDiary(t, s.url, time.Now().Add(-time.Hour))
	d.write("INSERT INTO chats (chat_id, user_id, create_time) VALUES ('c', 'bob', now())")
	const search = "INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time) VALUES ('c', 'bob', '{}', $1, $2, now() - $3::interval)"
	d.write(search, []int64{1}, []string{"weather"}, "5 minutes")
	d.write(search, []int64{2}, []string{"pollen"}, "4 minutes")
	for i, tool := range []string{"weather", "pollen"} {
		d.write("INSERT INTO chat_tool_log (chat_id, sequence_number, tool_id, action, turn, request_id, create_time) VALUES ('c', $1, $2, 'ENABLE', 0, 'r', now() - interval '3 minutes')", i+1, tool)
	}
	d.write(search, []int64{3}, []string{}, "2 minutes") // nothing was found, and nothing came of it
	d.write(search, []int64{4}, []string{"notes"}, "61 minutes")
	var outcomes []call.Outcome
	for _, tool := range []string{"weather", "pollen", "notes"} {
		outcomes = append(outcomes, call.Outcome{Call: id.Call(tool), Chat: "c", User: "bob", Tool: id.Tool(tool), Outcome: health.Success, Time: time.Now()})
	}
	if err := s.node.Store.AddOutcomes(d.ctx, outcomes); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := d.conn.QueryRow(d.ctx, "SELECT string_agg(tool_id || features::text, ' ' ORDER BY tool_id) FROM search_uses").Scan(&got); err != nil || got != "pollen{2} weather{1}" {
		t.Errorf("learned %q, %v", got, err)
	}
}

// What is learned of private tools stays with their owner.
func TestLearningOfPrivateTools(t *testing.T) {
	s := openSchool(t)
	const words = "umbrella gumboots puddles today"
	before := s.search(explainedBy("bob", words))
	for i := range 3 {
		s.use(fmt.Sprint("u", i), "ann", words, "zanzibar_index", success)
	}
	s.written(3)
	if p := s.search(explainedBy("ann", words)); len(p.GetMatches()) == 0 || p.GetMatches()[0].GetToolId() != "ann.more" {
		t.Errorf("ann finds %v", p)
	}
	after := s.search(explainedBy("bob", words))
	before.Revision, after.Revision = "", ""
	if !proto.Equal(after, before) {
		t.Errorf("bob finds %v\nbefore %v", after, before)
	}
}

// The words of searches are not kept.
func TestWordsAreNotKept(t *testing.T) {
	s := openSchool(t)
	ctx := testkit.Context(t)
	s.search(searchBy("bob", "umbrella"))
	if err := s.node.Searches.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var searches, kept int
	if err := conn.QueryRow(ctx, "SELECT count(*), count(query) FROM searches WHERE cardinality(features) = 1").Scan(&searches, &kept); err != nil || searches != 1 || kept != 0 {
		t.Errorf("%d searches, %d with words, %v", searches, kept, err)
	}
}

// They are, if the operator says so; those of messages are not even then.
func TestWordsAreKeptIfTheOperatorSaysSo(t *testing.T) {
	s := openSchool(t)
	log := learning.NewLog(s.node.Store, true, slog.Default())
	log.Record(learning.Search{Kind: learning.KindSearch, Mode: routing.V2, Chat: "c", User: "bob", Features: discovery.FeaturesOf("umbrella today"), Time: time.Now()}, "umbrella today")
	log.Record(learning.Search{Kind: learning.KindNarrowing, Mode: routing.V2, Chat: "c", User: "bob", Time: time.Now()}, "umbrella today")
	d := openDiary(t, s.url, time.Now())
	if err := log.Close(d.ctx); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := d.conn.QueryRow(d.ctx, "SELECT string_agg(kind || ' ' || coalesce(query, '-') || ' ' || cardinality(features), ', ' ORDER BY kind) FROM searches").Scan(&got); err != nil ||
		got != "NARROWING - 0, SEARCH umbrella today 2" {
		t.Errorf("kept %q, %v", got, err)
	}
}

// What is older than the operator keeps is forgotten: searches, and what was learned from them.
func TestSearchesAreForgotten(t *testing.T) {
	s := openSchool(t)
	d := openDiary(t, s.url, time.Now().Add(-2*time.Hour))
	d.happen("old", "0 search V2 a")
	d.happen("new", "100 search V2 a")
	for call, age := range map[string]string{"1": "2 hours", "2": "1 minute"} {
		d.write("INSERT INTO search_uses (call_id, search_id, user_id, group_ids, tool_id, private, features, report_time) VALUES ($1, 7, 'u', '{}', 'weather', false, '{1}', now() - $2::interval)", call, age)
	}
	if err := s.node.Store.PruneSearches(d.ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := d.conn.QueryRow(d.ctx, "SELECT (SELECT string_agg(chat_id, ',') FROM searches) || ' ' || (SELECT string_agg(call_id, ',') FROM search_uses)").Scan(&got); err != nil || got != "new 2" {
		t.Errorf("left: %q, %v", got, err)
	}
}
