package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// loaded is nodes of one database with the world of smallFlags.
func loaded(t *testing.T, url string, nodes int) (addresses []string) {
	t.Helper()
	for range nodes {
		addresses = append(addresses, node.Start(t, url, node.Options{}).Address)
	}
	args := slices.Concat([]string{"load", "--addr", addresses[0], "--database-url", url}, smallFlags())
	if err := run(testkit.Context(t), args, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	return addresses
}

// measure runs a command with the small world and decodes what it prints.
func measure(t *testing.T, into any, args ...string) {
	t.Helper()
	measureAnything(t, into, slices.Concat(args, smallFlags())...)
}

// measureAnything runs a command and decodes what it prints.
func measureAnything(t *testing.T, into any, args ...string) {
	t.Helper()
	out := &bytes.Buffer{}
	if err := run(testkit.Context(t), append(args, "-o", "json"), nil, out, t.Output()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestColdQuestionsBesideTripsToTheDatabase(t *testing.T) {
	url := testkit.Database(t)
	addresses := loaded(t, url, 2)
	got := &report{}
	// Two questions are asked before; the bare server answers the others nevertheless.
	measure(t, got, "resolve", "--cold", "--fully-consistent", "--database-url", url, "--addr", strings.Join(addresses, ","), "--questions=2",
		"--duration=200ms", "--warmup=0s", "--rounds=1", "--concurrency=4", "--connections=2", "--server-pid", strconv.Itoa(os.Getpid()))
	if len(got.Results) != 1 || !got.Cold || !got.FullyConsistent || !strings.Contains(got.Bare, "SELECT 1") {
		t.Fatalf("got %+v", got)
	}
	r := got.Results[0]
	if r.Server.Median.Requests == 0 || r.Bare.Median.Requests == 0 || r.Server.Median.Errors+r.Bare.Median.Errors > 0 || r.P50Ratio <= 0 || r.ResidentBytes < 1<<20 {
		t.Errorf("got %+v", r)
	}
	err := run(t.Context(), slices.Concat([]string{"resolve", "--cold", "--addr", addresses[0], "--database-url=postgres://127.0.0.1:1/none"}, smallFlags()),
		nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "the bare server") {
		t.Errorf("without a database: %v", err)
	}
}

// titleOfTool is a tool's title as it is stored.
func titleOfTool(t *testing.T, address, tool string) string {
	t.Helper()
	response, err := toolgrantv1.NewCatalogServiceClient(dial(t, address)).GetTool(testkit.Context(t), &toolgrantv1.GetToolRequest{ToolId: tool})
	if err != nil {
		t.Fatal(err)
	}
	return response.GetTool().GetTitle()
}

func TestAllWatchersAreToldOfAChange(t *testing.T) {
	address := loaded(t, testkit.Database(t), 1)[0]
	got := &watchReport{}
	measure(t, got, "watch", "--addr", address, "--watchers=50", "--connections=7", "--rounds=3", "--server-pid", strconv.Itoa(os.Getpid()))
	if len(got.Rounds) != 3 || got.Watchers != 50 || got.ResidentBefore == 0 || got.ResidentOpen == 0 || got.ResidentAfter == 0 {
		t.Errorf("got %+v", got)
	}
	for _, r := range append(got.Rounds, got.Median) {
		if r.Acknowledged <= 0 || r.First <= 0 || r.First > r.P50 || r.P50 > r.P99 || r.P99 > r.Last {
			t.Errorf("got %+v", r)
		}
	}
	if w := testWorld(1, small); titleOfTool(t, address, w.toolID(0)) != w.tool(0).GetTitle() {
		t.Error("the world is not as it was")
	}
}

func TestOtherNodesAnswerWithWhatWasWritten(t *testing.T) {
	addresses := loaded(t, testkit.Database(t), 3)
	got := &freshnessReport{}
	// Timing does not decide here: the bound is beyond what the slowest machine takes.
	measure(t, got, "freshness", "--addr", strings.Join(addresses, ","), "--rounds=4", "--pause=20ms", "--bound=1m", "--server-pid", strconv.Itoa(os.Getpid()))
	if got.Nodes != 3 || len(got.Series) != 4 || got.ResidentBytes == 0 {
		t.Fatalf("got %+v", got)
	}
	for _, s := range got.Series {
		if s.Each.Count != 8 || s.All.Count != 4 || s.Acknowledged.Count != 4 || s.All.P50 < s.Each.P50 || s.All.Max != s.Each.Max || s.Answers < 8 {
			t.Errorf("got %+v", s)
		}
		if s.BackInTime+s.BeyondBound+s.BeforeRevision > 0 {
			t.Errorf("a promise was broken: %+v", s)
		}
	}
	w := testWorld(1, small)
	for i := range w.tools {
		if tool := w.tool(i); tool.GetCore() && titleOfTool(t, addresses[0], tool.GetToolId()) != tool.GetTitle() {
			t.Error("the world is not as it was")
		}
	}
}

func TestBrokenPromisesAreToldOf(t *testing.T) {
	r := &freshnessReport{Nodes: 2, BoundSeconds: 1, Series: []*freshnessSeries{{Write: "chat", tally: tally{Answers: 9, BackInTime: 2}}, {Write: "catalogue"}}}
	if err := r.broken(); err == nil || !strings.Contains(err.Error(), "2 went back in time") || strings.Contains(err.Error(), "catalogue") {
		t.Errorf("got %v", err)
	}
	out := &strings.Builder{}
	if err := r.print(out, outputRows); err != nil || strings.Count(out.String(), "\n") != 2 || !strings.HasPrefix(out.String(), "| 2 | chat | nothing | ") {
		t.Errorf("got %v\n%s", err, out)
	}
}
