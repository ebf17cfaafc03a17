package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

// embeddings is a model on this machine: all that has to do with fruit means the like. It counts what it is asked of tools.
type embeddings struct {
	*httptest.Server
	mu     sync.Mutex
	tools  map[string]int // by text
	before func()         // before the first answer; nil: nothing
}

func serveEmbeddings(t *testing.T) *embeddings {
	t.Helper()
	e := &embeddings{tools: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		var data []string
		e.mu.Lock()
		defer e.mu.Unlock()
		for i, text := range question.Input {
			if strings.HasPrefix(text, "tool_") {
				e.tools[text]++
			}
			vector := make([]int, 32)
			vector[len(text)%31] = 1
			if strings.Contains(text, "orchard") || strings.Contains(text, "apples") {
				vector[31] = 9
			}
			numbers, _ := json.Marshal(vector)
			data = append(data, fmt.Sprintf(`{"index": %d, "embedding": %s}`, i, numbers))
		}
		if e.before != nil {
			e.before()
			e.before = nil
		}
		fmt.Fprintf(w, `{"data": [%s]}`, strings.Join(data, ","))
	}))
	t.Cleanup(e.Close)
	return e
}

// asked is how many different texts of tools it was asked about, and how often the one that it was asked about most.
func (e *embeddings) asked() (texts, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.tools {
		most = max(most, times)
	}
	return len(e.tools), most
}

// library has more tools than are told without a choice, and a private one of u.
func library() *v1.Manifest {
	m := &v1.Manifest{ToolTypes: []*v1.ToolType{{ToolTypeId: "plain", Source: v1.ToolSource_TOOL_SOURCE_NATIVE}}, Users: []*v1.User{{UserId: "u"}, {UserId: "v"}}}
	for i := range 20 {
		m.Tools = append(m.Tools, &v1.Tool{ToolId: fmt.Sprint("s", i), ToolTypeId: "plain", Name: fmt.Sprint("tool_", i), Description: strings.Repeat("x", 20+i)})
	}
	m.Tools = append(m.Tools, &v1.Tool{ToolId: "u.own", ToolTypeId: "plain", Name: "tool_own", Description: "Plans the orchard", OwnerUserId: "u"})
	return m
}

// finds returns the first tool that a user of a server finds.
func (c *child) finds(user, query string) string {
	c.t.Helper()
	conn, err := grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	p, err := v1.NewDiscoveryServiceClient(conn).SearchTools(testkit.Context(c.t), &v1.SearchToolsRequest{ChatId: "chat-" + user, UserId: user, Surface: web, Query: query})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(p.GetMatches()) == 0 {
		return ""
	}
	return p.GetMatches()[0].GetToolId()
}

// Whatever servers do, start together, die, or start again, a model is asked about each tool once; and after a restart the
// first search finds private tools by what they mean, without it.
func TestAModelIsAskedOnceAboutEachTool(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	e := serveEmbeddings(t)
	settings := []string{"TOOLGRANT_DATABASE_URL=" + testkit.Database(t), "TOOLGRANT_EMBEDDING_URL=" + e.URL, "TOOLGRANT_EMBEDDING_MODEL=m",
		"TOOLGRANT_EMBEDDING_TIMEOUT=10s", "TOOLGRANT_EMBEDDING_PRIVATE_TOOLS=true"}
	servers := []*child{newChild(t, settings...), newChild(t, settings...)}
	for _, s := range servers {
		s.start()
	}
	for _, s := range servers {
		s.awaitReady()
	}
	if _, err := servers[0].connect().ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: library()}); err != nil {
		t.Fatal(err)
	}
	vectors := func(s *child, shared, private float64) {
		t.Helper()
		await(t, "vectors", func() bool {
			m := scrape(t, s.web)
			return m.of("toolgrant_embedding_tools") == shared && m.of("toolgrant_embedding_private_tools") == private
		})
	}
	wantAsked := func(what string, texts int) {
		t.Helper()
		if got, most := e.asked(); got != texts || most != 1 {
			t.Errorf("%s: asked about %d tools, not %d, about one of them %d times", what, got, texts, most)
		}
	}
	vectors(servers[0], 20, 0)
	vectors(servers[1], 20, 0)
	wantAsked("two servers", 20)
	servers[0].finds("u", "where are apples")
	vectors(servers[0], 20, 1)
	wantAsked("u's own tool", 21)
	for _, s := range servers {
		if s.finds("u", "where are apples"); s.finds("v", "where are apples") != "" {
			t.Error("v finds something")
		}
		s.kill()
		s.start()
	}
	for _, s := range servers {
		s.awaitReady()
		vectors(s, 20, 0)
		if got := s.finds("u", "where are apples"); got != "u.own" {
			t.Errorf("after a restart, u finds %q", got)
		}
		if got := s.finds("v", "where are apples"); got != "" {
			t.Errorf("v finds %q", got)
		}
		vectors(s, 20, 1)
	}
	wantAsked("after a restart", 21)
}

// PostgreSQL that is killed while the model is asked loses nothing that the model answered.
func TestVectorsOutliveADeathOfPostgres(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	e := serveEmbeddings(t)
	dir := newDataDir(t)
	server := newChild(t, "TOOLGRANT_DATA_DIR="+dir, "TOOLGRANT_EMBEDDING_URL="+e.URL, "TOOLGRANT_EMBEDDING_MODEL=m")
	server.start()
	server.awaitReady()
	e.mu.Lock()
	e.before = func() { // with those that serve connections, which outlive it for a moment
		pid := postmaster(dir)
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			t.Error(err)
		}
		killPostgres(t, dir, server.process.Process.Pid)
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // or it is gone already
			}
		}
	}
	e.mu.Unlock()
	if _, err := server.connect().ApplyManifest(ctx, &v1.ApplyManifestRequest{Manifest: library()}); err != nil {
		t.Fatal(err)
	}
	await(t, "vectors", func() bool { return scrape(t, server.web).of("toolgrant_embedding_tools") == 20 })
	e.mu.Lock()
	if e.before != nil {
		t.Error("PostgreSQL was not killed: this test shows nothing")
	}
	e.mu.Unlock()
	await(t, "PostgreSQL is back", func() bool { return ready(server.web) == http.StatusOK })
	await(t, "all is stored", func() bool { // at once, or after the failure
		log := server.log.String()
		return strings.Contains(log, "all shared tools have vectors") || strings.Contains(log, "vectors of shared tools can be had again")
	})
	server.stop()
	server.start()
	server.awaitReady()
	await(t, "vectors after a restart", func() bool { return scrape(t, server.web).of("toolgrant_embedding_tools") == 20 })
	if texts, most := e.asked(); texts != 20 || most != 1 {
		t.Errorf("asked about %d tools, about one of them %d times", texts, most)
	}
}
