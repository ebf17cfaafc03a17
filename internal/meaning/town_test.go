package meaning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/inference"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const patience = 30 * time.Second

// model is an endpoint on this machine whose vectors tell how many letters a and b a text has.
type model struct {
	*httptest.Server
	mu         sync.Mutex
	texts      []string
	fails      atomic.Bool
	hangs      atomic.Bool
	dimensions atomic.Int64 // 3 at least
	// before is called before an answer; misbehave answers instead. Nil: neither.
	before    atomic.Pointer[func()]
	misbehave atomic.Pointer[http.HandlerFunc]
}

func serveModel(t testing.TB) *model {
	t.Helper()
	m := &model{}
	m.dimensions.Store(3)
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
		if bad := m.misbehave.Load(); bad != nil {
			(*bad)(w, r)
			return
		}
		m.mu.Lock()
		m.texts = append(m.texts, question.Input...)
		m.mu.Unlock()
		if before := m.before.Load(); before != nil {
			(*before)()
		}
		var data []string
		for i, text := range question.Input {
			data = append(data, fmt.Sprintf(`{"index": %d, "embedding": [%d, %d, 1%s]}`, i, strings.Count(text, "a"), strings.Count(text, "b"),
				strings.Repeat(", 0", int(m.dimensions.Load())-3)))
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

// town is a catalogue, a database and a model, and servers of these.
type town struct {
	t     testing.TB
	ctx   context.Context
	url   string
	conn  *pgx.Conn
	model *model
	mu    sync.Mutex
	tell  int // the catalogue's version
	tools []discovery.Tool
	owned map[id.User][]discovery.Tool
}

func build(t testing.TB, tools ...discovery.Tool) *town {
	t.Helper()
	w := &town{t: t, ctx: testkit.Context(t), url: testkit.Database(t), model: serveModel(t), tools: tools, owned: map[id.User][]discovery.Tool{}}
	w.conn = w.connect()
	return w
}

func (w *town) connect() *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(w.ctx)) })
	return conn
}

func (w *town) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(w.ctx, sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.conn.QueryRow(w.ctx, "SELECT count(*) FROM "+sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// change changes the shared tools.
func (w *town) change(tools ...discovery.Tool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell, w.tools = w.tell+1, tools
}

// own gives a user private tools, and takes away those that he had.
func (w *town) own(user id.User, tools ...discovery.Tool) {
	w.t.Helper()
	w.exec("INSERT INTO users (user_id) VALUES ($1) ON CONFLICT DO NOTHING", user)
	w.exec("INSERT INTO tool_types (tool_type_id, title, source, tool_class, disabled) VALUES ('plain', '', 'NATIVE', '', false) ON CONFLICT DO NOTHING")
	names := make([]string, len(tools))
	for i, one := range tools {
		names[i] = string(one.ID)
		w.exec(`INSERT INTO tools (tool_id, tool_type_id, name, title, description, prompt, category, config, status, core, precedence, risk,
			required_capabilities, owner_user_id, keywords, aliases, examples, localized) VALUES ($1, 'plain', 'n', '', '', '', '', '{}', 'ACTIVE', false, 0, 'LOW',
			'{}', $2, '{}', '{}', '{}', '{}') ON CONFLICT DO NOTHING`, one.ID, user)
	}
	w.exec("DELETE FROM tools WHERE owner_user_id = $1 AND tool_id <> ALL ($2)", user, names)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell, w.owned[user] = w.tell+1, tools
}

// server is one of the servers of a town.
type server struct {
	*meaning.Keeper
	*postgres.Store
	t testing.TB
}

func (w *town) serve(change ...func(*meaning.Options)) *server {
	w.t.Helper()
	store, err := postgres.Open(w.ctx, w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(store.Close)
	o := meaning.Options{Embedder: inference.NewEmbedder(inference.Options{URL: w.model.URL, Pause: time.Millisecond}, 0), Store: store, Model: "m", Timeout: patience,
		Logger: slog.New(slog.DiscardHandler), Catalogue: func() (any, func() []discovery.Tool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			tools := slices.Clone(w.tools)
			return w.tell, func() []discovery.Tool { return tools }
		}}
	for _, do := range change {
		do(&o)
	}
	return &server{meaning.NewKeeper(o), store, w.t}
}

// private has a server embed private tools, too.
func (w *town) private(o *meaning.Options) {
	o.Private = func(user id.User) (any, func() []discovery.Tool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if tools := slices.Clone(w.owned[user]); len(tools) > 0 {
			return w.tell, func() []discovery.Tool { return tools }
		}
		return w.tell, nil
	}
}

// sync synchronizes, which must go well.
func (s *server) sync() {
	s.t.Helper()
	if err := s.Sync(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) syncOwn(user id.User) {
	s.t.Helper()
	if err := s.SyncOwn(s.t.Context(), user); err != nil {
		s.t.Fatal(err)
	}
}

// understands tells whether a text gets a vector.
func (s *server) understands(user id.User, text string) bool {
	read := discovery.Read(text)
	understood, missed := s.Understand(s.t.Context(), user, read, text)
	return understood != read && !missed
}

// holds is how many shared tools have a vector.
func (s *server) holds() int { return s.Stats().Vectors }

// wantAsked fails the test unless the model was asked about just so many texts since.
func (w *town) wantAsked(what string, want int) {
	w.t.Helper()
	if texts := w.model.asked(); len(texts) != want {
		w.t.Errorf("%s: the model was asked about %d texts, not %d: %.20q", what, len(texts), want, texts[:min(len(texts), 5)])
	}
}

func tool(name, description string) discovery.Tool {
	return discovery.Tool{ID: id.Tool(name), Name: name, Descriptions: []string{description}}
}

// many are so many tools of different texts.
func many(n int) []discovery.Tool {
	tools := make([]discovery.Tool, n)
	for i := range tools {
		tools[i] = tool(fmt.Sprintf("t%03d", i), strings.Repeat("a", i))
	}
	return tools
}

// eventually waits for what others do.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came: " + what)
		}
	}
}
