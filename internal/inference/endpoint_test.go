package inference_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/inference"
)

// serve starts an endpoint on a port of this machine. It reads the whole question first: only then does a server notice
// that whoever asked has gone.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(question))
		handler(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// says is an endpoint that always gives one answer.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// patience is how long a question may take. No test waits for it to end unless it is about that.
const patience = 30 * time.Second

func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestEmbed(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Model      string
			Input      []string
			Dimensions int
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || question.Model != "small" || question.Dimensions != 2 || r.Header.Get("Authorization") != "Bearer sk-1" {
			t.Errorf("%+v, %v, %v", question, err, r.Header)
		}
		// Not in order, not of length 1, and with more than was asked for.
		fmt.Fprintf(w, `{"object": "list", "data": [{"index": 1, "embedding": [0, %d]}, {"index": 0, "embedding": [3, 4]}], "usage": {}}`, len(question.Input[1]))
	})
	vectors, err := inference.NewEmbedder(inference.Options{URL: url, Model: "small", Key: "sk-1"}, 2).Embed(within(t, patience), []string{"a", "bb"})
	if err != nil || len(vectors) != 2 || vectors[0][0] != 0.6 || vectors[0][1] != 0.8 || vectors[1][0] != 0 || vectors[1][1] != 1 {
		t.Errorf("%v, %v", vectors, err)
	}
}

// Whatever an endpoint answers that is not a vector of each text is an error.
func TestEmbedRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "<html>", "half": `{"data": [{"index": 0, "embedding": [1,`, "null": "null", "another shape": `[]`, "no data": `{}`,
		"too few": `{"data": [{"index": 0, "embedding": [1, 0]}]}`, "too many": `{"data": [{"embedding": [1]}, {"embedding": [1]}, {"embedding": [1]}]}`,
		"the same index twice": `{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}`,
		"an index beyond":      `{"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]}`,
		"an index below":       `{"data": [{"index": 0, "embedding": [1]}, {"index": -1, "embedding": [1]}]}`,
		"two dimensions":       `{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1]}]}`,
		"no dimension":         `{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}`,
		"no direction":         `{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [1, 0]}]}`,
		"NaN":                  `{"data": [{"index": 0, "embedding": [NaN, 0]}, {"index": 1, "embedding": [1, 0]}]}`,
		"too large":            `{"data": [{"index": 0, "embedding": [1e999, 0]}, {"index": 1, "embedding": [1, 0]}]}`,
		"infinite together":    `{"data": [{"index": 0, "embedding": [1e200, 1e200]}, {"index": 1, "embedding": [1, 0]}]}`,
		"text":                 `{"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}`,
		"an error with 200":    `{"error": {"message": "no such model"}}`,
	} {
		if vectors, err := inference.NewEmbedder(inference.Options{URL: serve(t, says(body))}, 0).Embed(within(t, patience), []string{"a", "b"}); err == nil || vectors != nil {
			t.Errorf("%s: %v, %v", name, vectors, err)
		}
	}
}

// The dimension of the first answer is that of all: vectors of another could not be compared.
func TestEmbedKeepsItsDimension(t *testing.T) {
	var answers atomic.Int32
	e := inference.NewEmbedder(inference.Options{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, map[int32]string{1: `{"data": [{"embedding": [1, 0]}]}`, 2: `{"data": [{"embedding": [1, 0, 0]}]}`}[answers.Add(1)])
	})}, 0)
	if _, err := e.Embed(within(t, patience), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(within(t, patience), []string{"a"}); err == nil || !strings.Contains(err.Error(), "3 dimensions, want 2") {
		t.Errorf("%v", err)
	}
}

func TestRerank(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Query     string
			Documents []string
			TopN      int `json:"top_n"`
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || question.Query != "q" || question.TopN != 3 || question.Documents[2] != "c" {
			t.Errorf("%+v, %v", question, err)
		}
		_, _ = io.WriteString(w, `{"results": [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": 0}]}`)
	})
	scores, err := inference.NewReranker(inference.Options{URL: url}).Rerank(within(t, patience), "q", []string{"a", "b", "c"})
	if err != nil || fmt.Sprint(scores) != "[0.5 0 0.9]" {
		t.Errorf("%v, %v", scores, err)
	}
}

func TestRerankRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "oops", "null": "null", "no results": `{}`, "too few": `{"results": [{"index": 0, "relevance_score": 0.5}]}`,
		"the same index twice": `{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.5}]}`,
		"no index":             `{"results": [{"relevance_score": 0.5}, {"relevance_score": 0.5}]}`,
		"an index beyond":      `{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 7, "relevance_score": 0.5}]}`,
		"no score":             `{"results": [{"index": 0}, {"index": 1}]}`,
		"above 1":              `{"results": [{"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": 8.2}]}`,
		"below 0":              `{"results": [{"index": 0, "relevance_score": -3.5}, {"index": 1, "relevance_score": 0.5}]}`,
		"NaN":                  `{"results": [{"index": 0, "relevance_score": NaN}, {"index": 1, "relevance_score": 0.5}]}`,
	} {
		if scores, err := inference.NewReranker(inference.Options{URL: serve(t, says(body))}).Rerank(within(t, patience), "q", []string{"a", "b"}); err == nil || scores != nil {
			t.Errorf("%s: %v, %v", name, scores, err)
		}
	}
}

// Endpoints that misbehave below JSON. None is waited for longer than the deadline, and none makes memory grow.
func TestEndpointsThatMisbehave(t *testing.T) {
	hang := func(r *http.Request) { <-r.Context().Done() }
	var stolen atomic.Int32
	thief := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		stolen.Add(1)
		_, _ = io.WriteString(w, `{"data": [{"embedding": [1]}]}`)
	})
	for name, one := range map[string]struct {
		handler http.HandlerFunc
		late    bool // it is given up at the deadline
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, true},
		"hangs after its headers": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, true},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		}, true},
		"500":       {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, strings.Repeat("x", 1<<20), 500) }, false},
		"429":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, false},
		"204":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, false},
		"redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief, http.StatusTemporaryRedirect) }, false},
		"closes":    {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, false},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"data"`)
		}, false},
		"is no server": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, "\x00\x01SSH-2.0\r\n")
			conn.Close()
		}, false},
		"says too much": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}, false},
		"unpacks to too much": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for r.Context().Err() == nil {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, false},
		"says too much in its headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			limit := patience
			if one.late {
				limit = 100 * time.Millisecond
			}
			e := inference.NewEmbedder(inference.Options{URL: serve(t, one.handler), Key: "sk-1"}, 0)
			vectors, err := e.Embed(within(t, limit), []string{"a"})
			if err == nil || vectors != nil {
				t.Errorf("%v, %v", vectors, err)
			}
			if one.late != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if len(err.Error()) > 2000 || strings.Contains(err.Error(), "sk-1") {
				t.Errorf("the error is %q", err)
			}
			if s := e.Stats(); s.Requests != 1 || s.Failures != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
	if stolen.Load() > 0 {
		t.Error("a redirect was followed")
	}
	t.Run("nobody listens", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_ = listener.Close()
		if _, err := inference.NewReranker(inference.Options{URL: "http://" + address}).Rerank(within(t, patience), "q", []string{"a"}); err == nil {
			t.Error("no error")
		}
	})
}

// An endpoint that keeps failing is left alone, then asked once; when it is back, all is as before.
func TestAnEndpointThatKeepsFailingIsLeftAlone(t *testing.T) {
	var asked atomic.Int32
	var well atomic.Bool
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if !well.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, `{"data": [{"embedding": [1]}]}`)
	})
	e := inference.NewEmbedder(inference.Options{URL: url, Pause: 50 * time.Millisecond}, 0)
	left := 0
	for range 20 {
		if _, err := e.Embed(within(t, patience), []string{"a"}); errors.Is(err, inference.ErrLeftAlone) {
			left++
		}
	}
	if left == 0 || asked.Load() > 15 {
		t.Errorf("asked %d times of 20, left alone %d times", asked.Load(), left)
	}
	if s := e.Stats(); s.LeftAlone != uint64(left) || s.Failures != uint64(asked.Load()) {
		t.Errorf("%+v, asked %d times", s, asked.Load())
	}
	well.Store(true)
	for deadline := time.Now().Add(patience); ; {
		if _, err := e.Embed(within(t, patience), []string{"a"}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("never asked again")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if s := e.Stats(); s.Open {
		t.Errorf("%+v", s)
	}
}

// A caller who gives up tells nothing of the endpoint.
func TestCallersWhoGiveUpDoNotCount(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	e := inference.NewEmbedder(inference.Options{URL: url, Pause: time.Hour}, 0)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := e.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if e.Stats().Open {
		t.Error("left alone")
	}
}

func FuzzAnswers(f *testing.F) {
	for _, answer := range []string{"", "null", "{}", `{"data": [{"index": 0, "embedding": [1]}]}`, `{"results": [{"index": 0, "relevance_score": 0.5}]}`, `{"data": [{"index": 1e9}]}`, strings.Repeat("[", 20000)} {
		f.Add(answer)
	}
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body.Load().(string)) }))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, answer string) {
		body.Store(answer)
		if vectors, err := inference.NewEmbedder(inference.Options{URL: server.URL}, 0).Embed(t.Context(), []string{"a"}); err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
			t.Errorf("%v", vectors)
		}
		if scores, err := inference.NewReranker(inference.Options{URL: server.URL}).Rerank(t.Context(), "q", []string{"a"}); err == nil && !(scores[0] >= 0 && scores[0] <= 1) {
			t.Errorf("%v", scores)
		}
	})
}
