package grpcserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/learning"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

const (
	legacy = v1.RoutingMode_ROUTING_MODE_LEGACY
	hybrid = v1.RoutingMode_ROUTING_MODE_HYBRID
	v2     = v1.RoutingMode_ROUTING_MODE_V2
)

// diary writes what happened straight into the database, to the minute.
type diary struct {
	*testing.T
	ctx   context.Context
	conn  *pgx.Conn
	begin time.Time
	wrote int
}

func openDiary(t *testing.T, url string, begin time.Time) *diary {
	t.Helper()
	ctx := testkit.Context(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	return &diary{T: t, ctx: ctx, conn: conn, begin: begin}
}

func (d *diary) write(sql string, args ...any) {
	d.Helper()
	if _, err := d.conn.Exec(d.ctx, sql, args...); err != nil {
		d.Fatal(err)
	}
	d.wrote++
}

// happen writes the lines of a chat: "MINUTE search MODE TOOLS FOUND", "MINUTE narrow MODE EFFECTIVE FOUND KEPT",
// "MINUTE enable TOOL", "MINUTE call TOOL OUTCOME MODE TURN". Lists have commas, and - is none.
func (d *diary) happen(chat string, lines ...string) {
	d.Helper()
	list := func(text string) []string {
		if text == "-" {
			return []string{}
		}
		return strings.Split(text, ",")
	}
	d.write(`INSERT INTO chats (chat_id, user_id, create_time) VALUES ($1, 'ann', $2)`, chat, d.begin)
	for _, line := range lines {
		words := strings.Fields(line)
		minute, err := time.ParseDuration(words[0] + "m")
		if err != nil {
			d.Fatal(err)
		}
		at := d.begin.Add(minute)
		switch words[1] {
		case "search":
			d.write(`INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time, routing_mode) VALUES ($1, 'ann', '{}', '{1}', $2, $3, $4)`,
				chat, list(words[3]), at, words[2])
		case "narrow":
			d.write(`INSERT INTO searches (chat_id, user_id, group_ids, features, found_tool_ids, create_time, routing_mode, kind, effective_count, kept_tool_ids)
				VALUES ($1, 'ann', '{}', '{}', $2, $3, $4, 'NARROWING', $5, $6)`, chat, list(words[4]), at, words[2], words[3], list(words[5]))
		case "enable":
			d.write(`INSERT INTO chat_tool_log (chat_id, sequence_number, tool_id, action, turn, request_id, create_time, ttl_turns, actor)
				VALUES ($1, $2, $3, 'ENABLE', 0, 'r', $4, 3, 'MODEL')`, chat, d.wrote+1, words[2], at)
		case "call":
			var mode, turn any = words[4], words[5]
			if words[4] == "-" {
				mode, turn = nil, nil
			}
			d.write(`INSERT INTO call_outcomes (call_id, chat_id, user_id, tool_id, function, outcome, latency_ms, tokens, report_time, routing_mode, turn)
				VALUES ($1, $2, 'ann', $3, 'f', $4, 1, 0, $5, $6, $7)`, fmt.Sprint(chat, "-", d.wrote), chat, words[2], words[3], at, mode, turn)
		default:
			d.Fatalf("%q", line)
		}
	}
}

func (f *finding) report(r *v1.GetDiscoveryReportRequest) []*v1.DiscoveryReport {
	f.Helper()
	p, err := f.discovery.GetDiscoveryReport(testkit.Context(f.T), r)
	if err != nil {
		f.Fatal(err)
	}
	return p.GetReports()
}

func (f *finding) reports(r *v1.GetDiscoveryReportRequest, wants ...*v1.DiscoveryReport) {
	f.Helper()
	got := f.report(r)
	for i := range max(len(got), len(wants)) {
		if i >= len(got) || i >= len(wants) || !proto.Equal(got[i], wants[i]) {
			f.Fatalf("reported\n%v\nwant\n%v", got, wants)
		}
	}
}

// What each figure of the report counts, story by story.
func TestDiscoveryReport(t *testing.T) {
	f := openLibrary(t, 0)
	now := time.Now()
	stories := 0
	tell := func(what string, want *v1.DiscoveryReport, lines ...string) {
		t.Helper()
		stories++
		start := now.Add(-time.Duration(stories) * 100 * time.Hour) // each story in a span of its own
		d := openDiary(t, f.url, start)
		d.happen(fmt.Sprint("story-", stories), lines...)
		got := f.report(&v1.GetDiscoveryReportRequest{StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(10 * time.Hour))})
		if len(got) != 1 {
			t.Errorf("%s: %v", what, got)
			return
		}
		// What a story does not say of routed calls and retries is nothing; of the rest only what it says is compared.
		want.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			if have := got[0].ProtoReflect().Get(field); !have.Equal(value) {
				t.Errorf("%s: %s is %v, want %v", what, field.Name(), have, value)
			}
			return true
		})
		if g := got[0]; g.GetRoutedCalls() != want.GetRoutedCalls() || g.GetSearchRetryCount() != want.GetSearchRetryCount() || g.GetMissedCalls() != want.GetMissedCalls() ||
			g.GetEnabledUnused() != want.GetEnabledUnused() || want.GetRoutedCalls() == 0 && g.RouteTop1Hit != nil || g.GetTop1Hits() > g.GetTop3Hits() {
			t.Errorf("%s: %v", what, g)
		}
	}
	one, none := proto.Float64(1), proto.Float64(0)
	tell("the first tool found is called", &v1.DiscoveryReport{Mode: v2, Searches: 1, RoutedCalls: 1, Top1Hits: 1, Top3Hits: 1, RouteTop1Hit: one, RouteTop3Hit: one},
		"0 search V2 a,b,c,d", "1 call a SUCCESS V2 1")
	tell("the third is called, twice", &v1.DiscoveryReport{RoutedCalls: 1, Top3Hits: 1, RouteTop1Hit: none, RouteTop3Hit: one},
		"0 search V2 a,b,c,d", "1 call c SUCCESS V2 1", "2 call c SUCCESS V2 1")
	tell("the fourth is called", &v1.DiscoveryReport{RoutedCalls: 1, RouteTop1Hit: none, RouteTop3Hit: none}, "0 search V2 a,b,c,d", "1 call d SUCCESS V2 1")
	tell("a tool is turned on that was not found", &v1.DiscoveryReport{RoutedCalls: 1, RouteTop3Hit: none}, "0 search V2 a", "1 enable z", "2 call z SUCCESS V2 1")
	tell("a tool is called that the search has nothing to do with", &v1.DiscoveryReport{Searches: 1, Calls: 1}, "0 search V2 a", "2 call z SUCCESS V2 1")
	tell("a call that failed is no hit", &v1.DiscoveryReport{Searches: 1, Calls: 1, FailedCalls: 1, ToolCallErrorRate: one}, "0 search V2 a", "2 call a ERROR V2 1")
	tell("an hour later it is another matter", &v1.DiscoveryReport{Searches: 1, Calls: 1}, "0 search V2 a", "61 call a SUCCESS V2 1")
	tell("the last search that found it counts", &v1.DiscoveryReport{RoutedCalls: 1, Top1Hits: 1, RouteTop1Hit: one}, "0 search V2 b,a", "1 search V2 a,b", "2 search V2 c", "3 call a SUCCESS V2 1")

	tell("a search that finds nothing is tried again", &v1.DiscoveryReport{Searches: 2, SearchesWithoutMatches: 1, SearchRetryCount: 1, RoutedCalls: 1}, "0 search V2 -", "1 search V2 a", "2 call a SUCCESS V2 1")
	tell("what is found is not what is needed", &v1.DiscoveryReport{Searches: 3, SearchRetryCount: 2, RoutedCalls: 1}, "0 search V2 b", "1 search V2 c", "2 search V2 a", "3 call a SUCCESS V2 1")
	tell("a search for another step is no retry", &v1.DiscoveryReport{Searches: 2, RoutedCalls: 2, RouteTop1Hit: one}, "0 search V2 a", "1 search V2 b", "2 enable a", "3 enable b", "4 call a SUCCESS V2 1", "4 call b SUCCESS V2 1")
	tell("nor is one some time later", &v1.DiscoveryReport{Searches: 2}, "0 search V2 a", "5 search V2 b")

	tell("what is turned on is called", &v1.DiscoveryReport{Enabled: 1, EnableUnusedRate: none}, "0 search V2 a,b", "1 enable a", "2 call a ERROR V2 1")
	tell("or is not", &v1.DiscoveryReport{Enabled: 2, EnabledUnused: 1, EnableUnusedRate: proto.Float64(.5), RoutedCalls: 1}, "0 search V2 a,b", "1 enable a", "1 enable b", "2 call a SUCCESS V2 1")
	tell("what no search found is not counted", &v1.DiscoveryReport{Searches: 1}, "0 search V2 a,b", "1 enable c")

	tell("a narrowing keeps the tool", &v1.DiscoveryReport{Mode: v2, Narrowings: 1, RoutedCalls: 1, Top1Hits: 1, RouteTop1Hit: one, MissedRate: none}, "0 narrow V2 10 a,b a,b,core", "1 call a SUCCESS V2 1")
	tell("or leaves it out", &v1.DiscoveryReport{Mode: v2, RoutedCalls: 1, RouteTop3Hit: none, MissedCalls: 1, MissedRate: one}, "0 narrow V2 10 a,b a,b,core", "1 call z SUCCESS V2 1")
	tell("what it keeps anyway tells nothing", &v1.DiscoveryReport{Narrowings: 1, Calls: 1}, "0 narrow V2 10 a,b a,b,core", "1 call core SUCCESS V2 1")
	tell("what was off could not be kept", &v1.DiscoveryReport{Narrowings: 1, Calls: 1}, "0 narrow V2 10 a,b a,b,core", "1 enable z", "2 call z SUCCESS V2 1")
	tell("what is left out may be searched for", &v1.DiscoveryReport{RoutedCalls: 1, RouteTop1Hit: one, MissedRate: none}, "0 narrow V2 10 a a", "1 search V2 z", "2 call z SUCCESS V2 1")

	tell("the shadow", &v1.DiscoveryReport{Mode: hybrid, Narrowings: 2, ShadowDifference: proto.Float64(.625), RoutedCalls: 2, Top1Hits: 1, Top3Hits: 1, MissedCalls: 1,
		RouteTop1Hit: proto.Float64(.5), RouteTop3Hit: proto.Float64(.5), MissedRate: proto.Float64(.5), Calls: 2},
		"0 narrow HYBRID 20 a a,b,c,d,e", "1 call a SUCCESS HYBRID 1", "2 narrow HYBRID 10 a a,b,c,d,e", "3 call z SUCCESS HYBRID 2")
	tell("where nothing is searched there are calls to compare with", &v1.DiscoveryReport{Mode: legacy, Searches: 1, SearchesWithoutMatches: 1, Calls: 3, Turns: 2,
		AverageToolSteps: proto.Float64(1.5), ToolCallErrorRate: none}, "0 search LEGACY -", "1 call a SUCCESS LEGACY 1", "2 call b SUCCESS LEGACY 1", "3 call c SUCCESS LEGACY 2")
	tell("calls that fail", &v1.DiscoveryReport{Calls: 5, FailedCalls: 4, ToolCallErrorRate: proto.Float64(.8), Turns: 1, AverageToolSteps: proto.Float64(5)},
		"0 call a SUCCESS V2 1", "1 call a ERROR V2 1", "2 call a TIMEOUT V2 1", "3 call a UNREACHABLE V2 1", "4 call a BAD_ARGUMENTS V2 1", "5 call a CANCELLED V2 2")
	tell("calls from before modes were kept", &v1.DiscoveryReport{Calls: 2, Turns: 1}, "0 call a SUCCESS - -", "1 call a SUCCESS - -")
}

// What was turned on a moment ago may yet be called.
func TestDiscoveryReportWaitsForTheFirstCall(t *testing.T) {
	f := openLibrary(t, 0)
	d := openDiary(t, f.url, time.Now().Add(-20*time.Minute))
	d.happen("c", "0 search V2 a,b", "1 enable a", "17 enable b")
	f.reports(nil, &v1.DiscoveryReport{Mode: v2, Searches: 1, Enabled: 1, EnabledUnused: 1, EnableUnusedRate: proto.Float64(1)})
}

func TestDiscoveryReportOfASpanAndAMode(t *testing.T) {
	f := openLibrary(t, 0)
	now := time.Now()
	d := openDiary(t, f.url, now.Add(-30*time.Hour))
	d.happen("a", "0 search V2 a", "0 search LEGACY -", "0 narrow HYBRID 4 - a", "0 call a ERROR - -")
	d.happen("b", "1200 search V2 a")
	counts := func(r *v1.GetDiscoveryReportRequest) string {
		var text []string
		for _, p := range f.report(r) {
			text = append(text, fmt.Sprint(strings.TrimPrefix(p.GetMode().String(), "ROUTING_MODE_"), p.GetSearches(), p.GetNarrowings(), p.GetCalls()))
		}
		return strings.Join(text, " ")
	}
	at := func(hours int) *timestamppb.Timestamp {
		return timestamppb.New(now.Add(-time.Duration(hours) * time.Hour))
	}
	for want, r := range map[string]*v1.GetDiscoveryReportRequest{
		"V21 0 0": {},
		"LEGACY1 0 0 HYBRID0 1 0 V22 0 0 UNSPECIFIED0 0 1": {StartTime: at(40)},
		"LEGACY1 0 0 HYBRID0 1 0 V21 0 0 UNSPECIFIED0 0 1": {StartTime: at(40), EndTime: at(20)},
		"HYBRID0 1 0": {StartTime: at(40), Mode: hybrid},
		"":            {StartTime: at(9), Mode: hybrid},
	} {
		if got := counts(r); got != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
	for _, bad := range []*v1.GetDiscoveryReportRequest{{StartTime: at(1), EndTime: at(2)}, {StartTime: at(-1)}, {EndTime: &timestamppb.Timestamp{Seconds: -1 << 62}}} {
		if _, err := f.discovery.GetDiscoveryReport(testkit.Context(t), bad); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "_time") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// From what callers did to what is reported, through the API.
func TestDiscoveryReportOfUse(t *testing.T) {
	r := openRouted(t)
	r.apply(testkit.Context(t), t, "avatars: [{avatar_id: all, tool_ids: []}]")
	r.set("trial", "HYBRID")
	r.use("u1", "bob", rainy, "get_weather", success)
	r.use("u2", "bob", rainy, "pollen", v1.CallOutcome_CALL_OUTCOME_ERROR)
	r.use("u3", "ann", rainy, "get_weather", success)
	idle := make(chan struct{})
	r.shadow.Do(func() error { close(idle); return nil })
	<-idle
	if err := r.node.Searches.Flush(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	r.written(3)
	one, half := proto.Float64(1), proto.Float64(.5)
	r.reports(nil,
		&v1.DiscoveryReport{Mode: hybrid, Searches: 1, RoutedCalls: 1, Top1Hits: 1, Top3Hits: 1, RouteTop1Hit: one, RouteTop3Hit: one,
			Calls: 1, ToolCallErrorRate: proto.Float64(0), Turns: 1, AverageToolSteps: one, MissedRate: proto.Float64(0)},
		&v1.DiscoveryReport{Mode: v2, Searches: 2, RoutedCalls: 1, Top1Hits: 1, Top3Hits: 1, RouteTop1Hit: one, RouteTop3Hit: one,
			Calls: 2, FailedCalls: 1, ToolCallErrorRate: half, Turns: 2, AverageToolSteps: one, MissedRate: proto.Float64(0)})
}

// What metrics tell of the last hour is the report of it.
func TestReporterTellsOfTheLastHour(t *testing.T) {
	f := openLibrary(t, 0)
	d := openDiary(t, f.url, time.Now().Add(-90*time.Minute))
	d.happen("c", "0 search V2 a", "60 search V2 -", "61 call a SUCCESS V2 1")
	reporter := learning.NewReporter(f.node.Store, slog.Default())
	ctx, stop := context.WithCancel(testkit.Context(t))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		reporter.Run(ctx)
	}()
	for reporter.Latest() == nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	<-stopped
	if got := reporter.Latest(); len(got) != 1 || got[0] != (learning.Report{Mode: "V2", Searches: 1, WithoutMatches: 1, Calls: 1, Turns: 1}) {
		t.Errorf("%+v", got)
	}
}
