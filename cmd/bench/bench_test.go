package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// TestMain is also the bare server's process: resolve starts its own program again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == "bare" || os.Args[1] == "mcp-server") {
		main()
		return
	}
	testkit.Main(m)
}

// listen serves until the test ends.
func listen(t *testing.T, server *grpc.Server) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conns, closeAll, err := connect([]string{address}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeAll)
	return conns[0]
}

func serveToolgrant(t *testing.T) (address string) {
	t.Helper()
	return node.Start(t, testkit.Database(t), node.Options{}).Address
}

func small(s *sizes) {
	*s = sizes{tools: 40, deviceTypes: 4, toolsPerDeviceType: 15, groups: 3, avatars: 5, toolsPerAvatar: 8, users: 20, chats: 25, maxLogEntries: 6}
}

// smallFlags are the flags of small.
func smallFlags() (flags []string) {
	for _, one := range testWorld(1, small).all() {
		flags = append(flags, fmt.Sprintf("--%s=%d", one.flag, *one.value))
	}
	return flags
}

func TestAWorldIsLoadedAndResolved(t *testing.T) {
	ctx := testkit.Context(t)
	address := serveToolgrant(t)
	conn := dial(t, address)
	bench := func(args ...string) (string, error) {
		out := &bytes.Buffer{}
		err := run(ctx, slices.Concat(args, []string{"--addr", address}, smallFlags()), nil, out, io.Discard)
		return out.String(), err
	}

	if _, err := bench("resolve"); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "seed") {
		t.Errorf("without a world: %v", err)
	}
	for range 2 { // a load can be repeated
		if _, err := bench("load"); err != nil {
			t.Fatal(err)
		}
	}
	w := testWorld(1, small)
	want := &toolgrantv1.Manifest{}
	for m := range w.catalogue() {
		proto.Merge(want, m)
	}
	for m := range w.people() {
		proto.Merge(want, m)
	}
	again, err := toolgrantv1.NewAdminServiceClient(conn).ApplyManifest(ctx, &toolgrantv1.ApplyManifestRequest{Manifest: want, Prune: true, DryRun: true})
	if err != nil || len(again.GetChanges()) > 0 {
		t.Errorf("what is stored is not the world: %v %v", again.GetChanges(), err)
	}
	for i := range w.chats {
		c := w.chat(i)
		stored, err := toolgrantv1.NewChatServiceClient(conn).GetChat(ctx, &toolgrantv1.GetChatRequest{ChatId: c.create.GetChatId()})
		if err != nil {
			t.Fatal(err)
		}
		entries := 1 + c.changes()
		if int(stored.GetChat().GetEntryCount()) != entries || stored.GetChat().GetUserId() != c.create.GetUserId() {
			t.Errorf("got %v, want %d entries", stored, entries)
		}
	}

	measure := []string{"resolve", "--duration=300ms", "--warmup=10ms", "--rounds=2", "--concurrency=2,5", "--connections=2", "--questions=30"}
	out, err := bench(slices.Concat(measure, []string{"-o", "json", "--zipf"})...)
	if err != nil {
		t.Fatal(err)
	}
	got := &report{}
	if err := json.Unmarshal([]byte(out), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 2 || got.MeanAnswerBytes == 0 || got.Questions == 0 || got.Questions > 30 {
		t.Fatalf("got %s", out)
	}
	for i, r := range got.Results {
		if r.Concurrency != []int{2, 5}[i] || len(r.Server.Rounds) != 2 || len(r.Bare.Rounds) != 2 || r.ThroughputRatio <= 0 || r.P99Ratio <= 0 {
			t.Errorf("got %+v", r)
		}
		for _, m := range []measured{r.Server.Median, r.Bare.Median} {
			if m.Requests == 0 || m.Errors > 0 || m.PerSecond <= 0 || m.P50 <= 0 || m.P50 > m.P95 || m.P95 > m.P99 {
				t.Errorf("%d concurrent: %+v", r.Concurrency, m)
			}
		}
	}
	out, err = bench(measure...)
	if err != nil || !strings.Contains(out, "toolgrant") || !strings.Contains(out, "bare gRPC") || !strings.Contains(out, "ratio") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// wire is a message as it is on the wire.
func wire(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnswersAreCompared(t *testing.T) {
	ctx := testkit.Context(t)
	question := testWorld(1, small).questions(1)
	serve := func(answer *toolgrantv1.ResolveToolsResponse) target {
		address := listen(t, (&bare{answers: map[string][]byte{string(wire(t, question[0])): wire(t, answer)}}).server())
		return clients([]*grpc.ClientConn{dial(t, address)})
	}
	one := serve(&toolgrantv1.ResolveToolsResponse{ActiveAvatarIds: []string{"a"}, Revision: "1"})
	later := serve(&toolgrantv1.ResolveToolsResponse{ActiveAvatarIds: []string{"a"}, Revision: "2"})
	other := serve(&toolgrantv1.ResolveToolsResponse{ActiveAvatarIds: []string{"b"}, Revision: "1"})
	if err := sameAnswers(ctx, one, later, question); err != nil {
		t.Errorf("another revision only: %v", err)
	}
	if err := sameAnswers(ctx, one, other, question); err == nil {
		t.Error("another answer was not noticed")
	}
}

func TestErrorsAreCounted(t *testing.T) {
	w := testWorld(1, small)
	address := listen(t, (&bare{}).server()) // knows no question
	p := &plan{world: w, questions: w.questions(5), pace: pace{duration: 10 * time.Millisecond}}
	m, err := p.round(testkit.Context(t), p.asking(clients([]*grpc.ClientConn{dial(t, address)})), 2, 0)
	if m.Errors == 0 || m.Requests != 0 || status.Code(err) != codes.NotFound {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestFlagsAreBounded(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"load", "--addr=x", "--tools=0", "--users=-1", "--timeout=0s"}, []string{"--addr", "--tools", "--users", "--timeout"}},
		{[]string{"load", "--tools=10", "--concurrency=0"}, []string{"--tools-per-device-type", "--tools-per-avatar", "--concurrency"}},
		{[]string{"resolve", "--concurrency=16,0", "--duration=0s", "--rounds=0", "--warmup=-1s"}, []string{"--concurrency", "--duration", "--rounds", "--warmup"}},
		{[]string{"resolve", "--connections=0", "--questions=0", "-o=xml", "--concurrency=1" + strings.Repeat(",1", 16)}, []string{"--connections", "--questions", "--output", "--concurrency"}},
		{[]string{"resolve", "--cold", "--zipf", "--addr=", "--min-log-entries=11"}, []string{"--cold", "--addr", "--min-log-entries"}},
		{[]string{"watch", "--addr=x", "--watchers=5", "--connections=6", "--rounds=0", "-o=xml"}, []string{"--addr", "--connections", "--rounds", "--output"}},
		{[]string{"freshness", "--addr=x", "--bound=0s", "--every=-1s"}, []string{"how many servers", "--addr", "--bound", "--every"}},
		{[]string{"quota", "--addr=x", "--users=0", "--rounds=0"}, []string{"--addr", "--users", "--rounds", "--redis-url"}},
		{[]string{"calls", "--addr=x", "--users=0", "--rounds=0"}, []string{"--addr", "--users", "--rounds", "--redis-url"}},
		{[]string{"mcp", "--addr=x", "--url=x", "--rounds=0", "--functions=1"}, []string{"--addr", "--url", "--rounds", "--functions"}},
		{[]string{"quota-memory", "--users=0", "--concurrency=0", "-o=xml"}, []string{"--users", "--concurrency", "--output"}},
		{[]string{"quota-outage", "--addr=x", "--rate=0", "--duration=0s"}, []string{"--addr", "--rate", "--duration", "--redis-port"}},
		{[]string{"bare"}, []string{"not by hand"}},
	} {
		err := run(t.Context(), test.args, strings.NewReader(""), io.Discard, io.Discard)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want+":") {
				t.Errorf("%v: got %v, want %s", test.args, err, want)
			}
		}
	}
}
