package grpcserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/inference"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/testkit"
	"github.com/toolgrant/toolgrant/internal/testkit/node"
)

// endpoints are models on this machine: one knows that rain is what falls from clouds, and where cloves come from, the other
// likes f07 best.
type endpoints struct {
	*httptest.Server
	misbehave atomic.Pointer[http.HandlerFunc]
	texts     atomic.Pointer[string] // all that was sent
}

func serveEndpoints(t *testing.T) *endpoints {
	t.Helper()
	e := &endpoints{}
	e.texts.Store(new(string))
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for all := e.texts.Load(); ; all = e.texts.Load() {
			more := *all + string(body)
			if e.texts.CompareAndSwap(all, &more) {
				break
			}
		}
		if bad := e.misbehave.Load(); bad != nil {
			(*bad)(w, r)
			return
		}
		var question struct{ Input, Documents []string }
		if err := json.Unmarshal(body, &question); err != nil {
			t.Error(err)
		}
		var list []string
		for i, text := range question.Input {
			vector := make([]float64, 64)
			vector[i%60] = 1
			if strings.Contains(text, "weather") || strings.Contains(text, "clouds") {
				vector[i%60], vector[63] = 0.1, 1
			}
			if strings.Contains(text, "zanzibar") || strings.Contains(text, "spices") {
				vector[i%60], vector[62] = 0.1, 1
			}
			numbers, _ := json.Marshal(vector)
			list = append(list, fmt.Sprintf(`{"index": %d, "embedding": %s}`, i, numbers))
		}
		for i, text := range question.Documents {
			score := 0.1
			if strings.Contains(text, "sheep") {
				score = 0.8
			}
			list = append(list, fmt.Sprintf(`{"index": %d, "relevance_score": %v}`, i, score))
		}
		fmt.Fprintf(w, `{"%s": [%s]}`, map[bool]string{true: "results", false: "data"}[question.Documents != nil], strings.Join(list, ","))
	}))
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

// keeperOf keeps vectors for a node that is yet to be started.
func keeperOf(t *testing.T, url string, n **node.Node, endpoint string, change func(*meaning.Options)) *meaning.Keeper {
	t.Helper()
	store, err := postgres.Open(testkit.Context(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	o := meaning.Options{Embedder: inference.NewEmbedder(inference.Options{URL: endpoint, Pause: time.Millisecond}, 0), Store: store, Model: "m", Timeout: time.Minute,
		Logger: slog.New(slog.DiscardHandler), Catalogue: func() (any, func() []discovery.Tool) {
			world := (*n).Replica.World()
			return world, func() []discovery.Tool { return finder.Shared(world) }
		}, Private: func(owner id.User) (any, func() []discovery.Tool) {
			world := (*n).Replica.World()
			if world.Catalog.OwnedBy(owner).None() {
				return world, nil
			}
			return world, func() []discovery.Tool { return finder.Private(world, owner) }
		}}
	change(&o)
	return meaning.NewKeeper(o)
}

// Models change what is found while they behave, and nothing when they do not; other users' and private tools are not sent.
func TestSearchWithModels(t *testing.T) {
	e := serveEndpoints(t)
	url := testkit.Database(t)
	const deadline = 200 * time.Millisecond
	var n *node.Node
	keeper := keeperOf(t, url, &n, e.URL, func(o *meaning.Options) { o.Timeout, o.Private = deadline, nil })
	shelf := finder.NewShelf(discovery.DefaultWeights(), nil)
	shelf.Compare(keeper.Vectors)
	reranker := &grpcserver.Reranker{Ask: inference.NewReranker(inference.Options{URL: e.URL, Pause: time.Millisecond}).Rerank, Timeout: deadline, Candidates: 10, Threshold: 0.3}
	n = node.Start(t, url, node.Options{Discovery: grpcserver.DiscoveryOptions{Shelf: shelf, Meaning: keeper, Reranker: reranker}})
	f := &finding{t, clientOf(n.Conn, url), v1.NewDiscoveryServiceClient(n.Conn), n}
	f.apply(testkit.Context(t), t, libraryOf(20))
	const wordless, words = "what comes out of those clouds", "keeps a collection of comets"
	var missed []v1.SearchModel
	find := func(query string) string {
		t.Helper()
		r := searchBy("ann", query)
		r.Explain = true
		p := f.search(r)
		missed = p.GetMissedModels()
		if len(p.GetMatches()) == 0 {
			return ""
		}
		return p.GetMatches()[0].GetToolId()
	}
	if got := find(wordless); got != "" {
		t.Fatalf("found %s by words: this test shows nothing", got)
	}
	if err := keeper.Sync(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if got := find(wordless); got != "weather" {
		t.Errorf("by its meaning, found %q", got)
	}
	if got := find(words); got != "f07" || len(missed) > 0 {
		t.Errorf("the re-ranker's best is f07, found %q; missed %v", got, missed)
	}
	if sent := *e.texts.Load(); strings.Contains(sent, "zanzibar") || !strings.Contains(sent, "sheep") {
		t.Errorf("sent: %s", sent)
	}

	for name, bad := range map[string]http.HandlerFunc{
		"500":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"hangs":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"malformed": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data": [`) },
		"dimensions": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"data": [{"embedding": [1]}]}`)
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusPermanentRedirect) },
		"closes":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		e.misbehave.Store(&bad)
		for i := range 8 { // until it is left alone, and beyond
			if got := find(fmt.Sprintf("%s %s %d", words, name, i)); got != "f05" {
				t.Errorf("%s: found %q", name, got)
			}
			if len(missed) != 2 || missed[0] != v1.SearchModel_SEARCH_MODEL_EMBEDDING || missed[1] != v1.SearchModel_SEARCH_MODEL_RERANKER {
				t.Errorf("%s: missed %v", name, missed)
			}
		}
		if got := find(wordless + " " + name); got != "" {
			t.Errorf("%s: found %q by words", name, got)
		}
	}
	e.misbehave.Store(nil)
	for deadline := time.Now().Add(30 * time.Second); find(words) != "f07"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the models behave again, and are not asked")
		}
	}
}
