package meaning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/inference"
	"github.com/toolgrant/toolgrant/internal/meaning"
)

// model is an endpoint on this machine whose vectors tell how many letters a and b a text has.
type model struct {
	*httptest.Server
	mu    sync.Mutex
	texts []string
	fails atomic.Bool
	hangs atomic.Bool
}

func serveModel(t *testing.T) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Input []string }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &question); err != nil {
			t.Error(err)
		}
		if m.hangs.Load() {
			<-r.Context().Done()
			return
		}
		if m.fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		m.mu.Lock()
		m.texts = append(m.texts, question.Input...)
		m.mu.Unlock()
		var data []string
		for i, text := range question.Input {
			data = append(data, fmt.Sprintf(`{"index": %d, "embedding": [%d, %d, 1]}`, i, strings.Count(text, "a"), strings.Count(text, "b")))
		}
		fmt.Fprintf(w, `{"data": [%s]}`, strings.Join(data, ","))
	}))
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// asked returns the texts that the model was asked about since it was last called.
func (m *model) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts := m.texts
	m.texts = nil
	return texts
}

type shop struct {
	*meaning.Keeper
	model *model
	tools []discovery.Tool
	tell  int // the catalogue's version
}

func open(t *testing.T, timeout time.Duration, tools ...discovery.Tool) *shop {
	t.Helper()
	s := &shop{model: serveModel(t), tools: tools}
	s.Keeper = meaning.NewKeeper(meaning.Options{Embedder: inference.NewEmbedder(inference.Options{URL: s.model.URL, Pause: time.Millisecond}, 0), Model: "m", Timeout: timeout,
		Logger: slog.New(slog.DiscardHandler), Catalogue: func() (any, func() []discovery.Tool) {
			return s.tell, func() []discovery.Tool { return append([]discovery.Tool(nil), s.tools...) }
		}})
	return s
}

func tool(name, description string) discovery.Tool {
	return discovery.Tool{ID: id.Tool(name), Name: name, Descriptions: []string{description}}
}

const patience = 30 * time.Second

// Only what changed is asked for, and equal texts once.
func TestSyncAsksForDifferences(t *testing.T) {
	s := open(t, patience, tool("x", "aaa"), tool("y", "bbb"))
	step := func(what string, asked, vectors int) *discovery.Vectors {
		t.Helper()
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if texts := s.model.asked(); len(texts) != asked {
			t.Errorf("%s: asked for %q", what, texts)
		}
		if v := s.Vectors(); len(v.ByTool) != vectors {
			t.Errorf("%s: %d vectors, want %d", what, len(v.ByTool), vectors)
		}
		return s.Vectors()
	}
	first := step("all", 2, 2)
	if step("again", 0, 2) != first {
		t.Error("the same catalogue has other vectors")
	}
	s.tell++
	if step("a catalogue with the same tools", 0, 2) != first {
		t.Error("the same tools have other vectors")
	}
	s.tell, s.tools[1] = s.tell+1, tool("y", "bbba")
	step("a changed tool", 1, 2)
	same := tool("y", "bbba")
	same.ID = "z"
	s.tell, s.tools = s.tell+1, append(s.tools, same)
	step("a tool of the same words", 0, 3)
	s.tell, s.tools = s.tell+1, s.tools[1:]
	step("a tool that went", 0, 2)
	s.tell, s.tools = s.tell+1, append(s.tools, tool("x", "aaa"))
	step("a tool that came back", 1, 3)
	if stats := s.Stats(); stats.Vectors != 3 || stats.Waiting != 0 {
		t.Errorf("%+v", stats)
	}
}

// What came before a failure stays and is not asked for again.
func TestSyncGoesOnWhereItFailed(t *testing.T) {
	s := open(t, patience)
	for i := range 100 { // two questions
		s.tools = append(s.tools, tool(fmt.Sprintf("t%03d", i), strings.Repeat("a", i)))
	}
	s.model.fails.Store(true)
	if err := s.Sync(t.Context()); err == nil || s.Vectors() != nil || s.Stats().Waiting != 100 {
		t.Fatalf("%v, %+v", err, s.Stats())
	}
	s.model.fails.Store(false)
	if err := s.Sync(t.Context()); err != nil || len(s.Vectors().ByTool) != 100 {
		t.Fatalf("%v, %+v", err, s.Stats())
	}
	if got := len(s.model.asked()); got != 100 {
		t.Errorf("asked for %d texts", got)
	}
	s.model.fails.Store(true)
	s.tell, s.tools = s.tell+1, append(s.tools, tool("new", "b"))
	if err := s.Sync(t.Context()); err == nil || len(s.Vectors().ByTool) != 100 {
		t.Errorf("%v: what there was went", err)
	}
}

func TestUnderstand(t *testing.T) {
	s := open(t, patience, tool("x", "aaa"), tool("y", "bbb"))
	ask := func(text string) bool {
		read := discovery.Read(text)
		return s.Understand(t.Context(), read, text) != read
	}
	if ask("aa") {
		t.Error("a vector that there is nothing to compare with was asked for")
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.model.asked()
	first := ask("aa")
	if again := ask("aa"); !first || !again || len(s.model.asked()) != 1 {
		t.Error("a request that was asked about is asked about again, or not at all")
	}
	if ask(" \n") || len(s.model.asked()) != 0 {
		t.Error("nothing was asked about")
	}
	if !ask(strings.Repeat("é", 5000)+"\xff") || len(s.model.asked()[0]) > 4096 {
		t.Error("a long request is sent whole")
	}
	s.model.fails.Store(true)
	if ask("bb") {
		t.Error("a failure gives a vector")
	}
	if stats := s.Stats(); stats.Asked != 3 || stats.Remembered != 1 || stats.Failed != 1 {
		t.Errorf("%+v", stats)
	}
}

// A model that hangs costs a search its deadline and no more.
func TestUnderstandGivesUpAtItsDeadline(t *testing.T) {
	s := open(t, 20*time.Millisecond, tool("x", "aaa"))
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.model.hangs.Store(true)
	done := make(chan bool)
	go func() {
		read := discovery.Read("a")
		done <- s.Understand(context.Background(), read, "a") == read
	}()
	select {
	case same := <-done:
		if !same {
			t.Error("a vector came from nowhere")
		}
	case <-time.After(patience):
		t.Fatal("it waits for ever")
	}
}

func TestRun(t *testing.T) {
	s := open(t, patience, tool("x", "aaa"))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { s.Run(ctx); close(stopped) }()
	for deadline := time.Now().Add(patience); s.Vectors() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no vectors")
		}
	}
	cancel()
	<-stopped
}
