package meaning_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/meaning"
)

// A server that starts anew asks for nothing that another one asked for, and has the very same vectors; then for what
// changed only.
func TestARestartAsksForNothing(t *testing.T) {
	w := build(t, many(100)...)
	first := w.serve()
	first.sync()
	w.wantAsked("the first server", 100)
	second := w.serve()
	second.sync()
	w.wantAsked("the second server", 0)
	for tool, vector := range first.Vectors().ByTool {
		if !slices.Equal(second.Vectors().ByTool[tool], vector) {
			t.Fatalf("%s: %v, was %v", tool, second.Vectors().ByTool[tool], vector)
		}
	}
	if stats := second.Stats(); stats.Loaded != 100 || stats.Made != 0 || stats.Vectors != 100 {
		t.Errorf("%+v", stats)
	}
	w.change(append(slices.Clone(w.tools[1:]), tool("t000", "changed"))...)
	second.sync()
	first.sync()
	w.wantAsked("a changed tool, by two servers", 1)
	if first.holds() != 100 || second.holds() != 100 {
		t.Errorf("%d and %d vectors", first.holds(), second.holds())
	}
}

// Servers that start at once share the work: each text is asked about once.
func TestServersShareTheWork(t *testing.T) {
	w := build(t, many(300)...)
	var working sync.WaitGroup
	servers := []*server{w.serve(), w.serve(), w.serve()}
	for _, s := range servers {
		working.Go(func() {
			eventually(t, "all vectors", func() bool { return s.Sync(t.Context()) == nil && s.holds() == 300 })
		})
	}
	working.Wait()
	w.wantAsked("three servers", 300)
	if n := w.count("vector_claims"); n != 0 {
		t.Errorf("%d claims are left", n)
	}
}

// A catalogue that changes while it is worked on is not worked off: what it lacks now comes first.
func TestAChangeInterruptsTheWork(t *testing.T) {
	w := build(t, many(1100)...)
	s := w.serve()
	change := func() { w.change(tool("new", "b")) }
	w.model.before.Store(&change)
	s.sync()
	w.model.before.Store(nil)
	if n := len(w.model.asked()); n >= 1100 {
		t.Errorf("the model was asked about all %d", n)
	}
	s.sync()
	w.wantAsked("what is there now", 1)
	if s.holds() != 1 {
		t.Errorf("%d vectors", s.holds())
	}
}

// What another server is asking for is neither asked for nor waited for.
func TestWhatAnotherServerAsksForIsLeftToIt(t *testing.T) {
	w := build(t, many(10)...)
	asked, answer := make(chan struct{}), make(chan struct{})
	hold := func() { close(asked); <-answer }
	w.model.before.Store(&hold)
	first, second := w.serve(), w.serve()
	done := make(chan error)
	go func() { done <- first.Sync(t.Context()) }()
	<-asked
	w.model.before.Store(nil)
	second.sync()
	if n := second.Stats(); n.Waiting != 10 || n.Made != 0 {
		t.Errorf("%+v", n)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	second.sync()
	if second.holds() != 10 {
		t.Errorf("it has %d", second.holds())
	}
	w.wantAsked("both", 10)
}

// A server that died while it asked holds nobody up when its claim is over. Until then it does.
func TestAClaimIsOverSomeTime(t *testing.T) {
	w := build(t, many(3)...)
	s := w.serve()
	s.sync() // to know the fingerprints
	w.exec("INSERT INTO vector_claims SELECT fingerprint, 'who died', now() + interval '1 minute' FROM shared_vectors")
	w.exec("DELETE FROM shared_vectors")
	w.model.asked()
	other := w.serve()
	other.sync()
	w.wantAsked("claimed", 0)
	w.exec("UPDATE vector_claims SET expire_time = now() - interval '1 second'")
	other.sync()
	w.wantAsked("when the claim is over", 3)
	if n := w.count("vector_claims"); n != 0 {
		t.Errorf("%d claims are left", n)
	}
}

// Another model's vectors are asked for anew, stand beside the old ones, and these go when nobody needs them for long.
func TestAnotherModel(t *testing.T) {
	w := build(t, many(5)...)
	w.serve().sync()
	w.wantAsked("the first model", 5)
	of := func(model string) func(*meaning.Options) { return func(o *meaning.Options) { o.Model = model } }
	second := w.serve(of("n"))
	second.sync()
	w.wantAsked("the second model", 5)
	w.serve().sync()
	w.wantAsked("back to the first", 0)
	month := time.Now().AddDate(0, -1, 0)
	prune := func() int {
		t.Helper()
		if err := second.PruneVectors(w.ctx, month); err != nil {
			t.Fatal(err)
		}
		return w.count("shared_vectors WHERE model = 'n'")*100 + w.count("shared_vectors WHERE model = 'm'")
	}
	if left := prune(); left != 505 {
		t.Fatalf("%d are left", left)
	}
	w.exec("UPDATE shared_vectors SET need_time = $1", month.AddDate(0, 0, -1))
	w.exec("INSERT INTO vector_claims SELECT fingerprint, 'who died', now() - interval '2 hours' FROM shared_vectors")
	w.serve(of("n")).sync() // needs them
	if left := prune(); left != 500 || w.count("vector_claims") != 0 {
		t.Errorf("%d are left, and %d claims", left, w.count("vector_claims"))
	}
	w.wantAsked("pruning", 0)
}

// A model without a name goes by its address, and one that is asked for other dimensions is another.
func TestWhatMakesAnotherModel(t *testing.T) {
	w := build(t, many(2)...)
	for i, change := range []func(*meaning.Options){
		func(o *meaning.Options) { o.Model, o.Address = "", "http://one" },
		func(o *meaning.Options) { o.Model, o.Address = "", "http://two" },
		func(o *meaning.Options) { o.Dimensions = 3 },
	} {
		w.serve(change).sync()
		w.wantAsked(fmt.Sprint("first time ", i), 2)
		w.serve(change).sync()
		w.wantAsked(fmt.Sprint("again ", i), 0)
	}
	w.serve(func(o *meaning.Options) { o.Address = "http://three" }).sync()
	w.wantAsked("a model with a name", 2)
	w.serve(func(o *meaning.Options) { o.Address = "http://four" }).sync()
	w.wantAsked("the same at another address", 0)
}

// A model that answers in other dimensions by the same name is noticed by its first answer.
func TestAnotherModelByTheSameName(t *testing.T) {
	w := build(t, many(5)...)
	w.serve().sync()
	w.model.asked()
	w.model.dimensions.Store(4)
	s := w.serve()
	s.sync()
	w.wantAsked("before it is noticed", 0)
	if !s.understands("ann", "aa") {
		t.Fatal("not understood")
	}
	s.sync()
	w.wantAsked("the request and all tools", 6)
	for _, vector := range s.Vectors().ByTool {
		if len(vector) != 4 {
			t.Errorf("%v", vector)
		}
	}
	if s.holds() != 5 || w.count("shared_vectors WHERE dimensions = 4") != 5 || w.count("shared_vectors") != 10 {
		t.Errorf("%d held, %d stored", s.holds(), w.count("shared_vectors"))
	}
}

// What is stored and is no vector is deleted and asked for anew, and nothing else is.
func TestWhatIsBrokenIsAskedForAnew(t *testing.T) {
	w := build(t, many(8)...)
	s := w.serve()
	s.sync()
	w.model.asked()
	rows, err := w.conn.Query(w.ctx, "SELECT fingerprint FROM shared_vectors ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	prints, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	for i, broken := range []string{`\x0000c07f0000000000000000`, `\x0000807f0000000000000000`, `\x000000000000000000000000`, `\x000000400000000000000000`} { // NaN, infinite, no direction, too long
		w.exec("UPDATE shared_vectors SET vector = $2::text::bytea WHERE fingerprint = $1", prints[i], broken)
	}
	w.exec(`UPDATE shared_vectors SET (dimensions, vector) = (2, '\x0000803f00000000') WHERE fingerprint = $1`, prints[4]) // of another model
	again := w.serve()
	again.sync()
	w.wantAsked("broken ones", 5)
	if stats := again.Stats(); stats.Broken != 4 || stats.Loaded != 3 || stats.Vectors != 8 {
		t.Errorf("%+v", stats)
	}
	for tool, vector := range s.Vectors().ByTool {
		if !slices.Equal(again.Vectors().ByTool[tool], vector) {
			t.Errorf("%s: %v, was %v", tool, again.Vectors().ByTool[tool], vector)
		}
	}
	w.serve().sync()
	w.wantAsked("once it is mended", 0)
}

// Whatever a model does wrong, nothing of it is stored, no claim is left, and what there was stays.
func TestNothingWrongIsStored(t *testing.T) {
	w := build(t, many(3)...)
	s := w.serve()
	s.sync()
	w.change(append(w.tools, tool("new", "b"))...)
	w.model.asked()
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, bad := range map[string]http.HandlerFunc{
		"500":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"too many":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"malformed":        say(`{"data": [`),
		"nothing":          say(``),
		"no vectors":       say(`{"data": []}`),
		"other dimensions": say(`{"data": [{"index": 0, "embedding": [1, 2]}]}`),
		"no direction":     say(`{"data": [{"index": 0, "embedding": [0, 0, 0]}]}`),
		"words":            say(`{"data": [{"index": 0, "embedding": ["a", "b", "c"]}]}`),
		"another index":    say(`{"data": [{"index": 1, "embedding": [1, 2, 3]}]}`),
		"redirects":        func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusPermanentRedirect) },
		"closes":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		w.model.misbehave.Store(&bad)
		if err := s.Sync(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if stored, claims := w.count("shared_vectors"), w.count("vector_claims"); s.holds() != 3 || stored != 3 || claims != 0 {
			t.Errorf("%s: %d held, %d stored, %d claims", name, s.holds(), stored, claims)
		}
	}
	w.model.misbehave.Store(nil)
	eventually(t, "the model is asked again", func() bool { return s.Sync(t.Context()) == nil })
	w.wantAsked("when it behaves again", 1)
	if s.holds() != 4 {
		t.Errorf("%d held", s.holds())
	}
}

// refuse has the database refuse all, or let all in again.
func (w *town) refuse(refused bool) {
	w.t.Helper()
	config := w.conn.Config()
	name := pgx.Identifier{config.Database}.Sanitize()
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(w.ctx, config)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	if _, err := conn.Exec(w.ctx, fmt.Sprintf("ALTER DATABASE %s WITH ALLOW_CONNECTIONS %v", name, !refused)); err != nil {
		w.t.Fatal(err)
	}
	if refused {
		if _, err := conn.Exec(w.ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", w.conn.Config().Database); err != nil {
			w.t.Fatal(err)
		}
	} else {
		w.conn = w.connect()
	}
}

// Without the database, what is held goes on, and the model is not asked for what nobody could store.
func TestSearchesGoOnWithoutTheDatabase(t *testing.T) {
	w := build(t, many(10)...)
	s := w.serve()
	s.sync()
	w.refuse(true)
	w.change(append(w.tools, tool("new", "b"))...)
	w.model.asked()
	if err := s.Sync(t.Context()); err == nil || s.Stats().StoreFailures == 0 {
		t.Fatalf("%v, %+v", err, s.Stats())
	}
	if s.holds() != 10 || !s.understands("ann", "aa") {
		t.Error("what there was does not go on")
	}
	w.wantAsked("the request only", 1)
	w.refuse(false)
	s.sync()
	w.wantAsked("the new tool", 1)
	if s.holds() != 11 || w.count("shared_vectors") != 11 {
		t.Errorf("%d held, %d stored", s.holds(), w.count("shared_vectors"))
	}
}

// A database that goes while the model is asked loses nothing: vectors are used at once and stored later.
func TestWhatWasAskedForIsStoredLater(t *testing.T) {
	w := build(t, many(10)...)
	s := w.serve(w.private)
	w.own("ann", tool("ann.x", "aab"))
	away := func() { w.refuse(true) }
	for what, one := range map[string]struct {
		sync   func() error
		held   func() int
		stored string
		texts  int
	}{
		"shared":  {func() error { return s.Sync(t.Context()) }, s.holds, "shared_vectors", 10},
		"private": {func() error { return s.SyncOwn(t.Context(), "ann") }, func() int { return s.Stats().Private }, "private_vectors", 1},
	} {
		w.model.before.Store(&away)
		if err := one.sync(); err == nil {
			t.Errorf("%s: the database is away, and there is no error", what)
		}
		w.model.before.Store(nil)
		if one.held() != one.texts {
			t.Errorf("%s: %d held", what, one.held())
		}
		if err := one.sync(); err == nil {
			t.Errorf("%s: the database is still away, and there is no error", what)
		}
		w.refuse(false)
		if err := one.sync(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.wantAsked(what, one.texts)
		if n := w.count(one.stored); n != one.texts || w.count("vector_claims") != 0 {
			t.Errorf("%s: %d stored, %d claims", what, n, w.count("vector_claims"))
		}
	}
	again := w.serve(w.private)
	again.sync()
	again.syncOwn("ann")
	w.wantAsked("a restart", 0)
	if again.holds() != 10 || again.Own(id.User("ann")) == nil {
		t.Errorf("%+v", again.Stats())
	}
}
