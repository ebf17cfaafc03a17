package doorkeeper_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolgrant/toolgrant/internal/doorkeeper"
)

func serve(t *testing.T, l doorkeeper.Limits, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(l.Handler(handle))
	t.Cleanup(s.Close)
	return s
}

func TestASlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	s := serve(t, doorkeeper.Limits{Body: 50 * time.Millisecond, Write: time.Minute, Bytes: 1 << 20}, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nfirst")
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading the rest: %v", err)
	}
}

// An answer may take longer than the request, and the connection serves the next one.
func TestAnAnswerMayTakeItsTime(t *testing.T) {
	t.Parallel()
	s := serve(t, doorkeeper.Limits{Body: 20 * time.Millisecond, Write: time.Minute, Bytes: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(60 * time.Millisecond)
		if r.Context().Err() != nil {
			t.Error("the request was given up")
		}
		_, _ = w.Write(body)
		w.(http.Flusher).Flush()
	})
	for range 2 {
		answer, err := http.Post(s.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(body) != "hello" {
			t.Errorf("%q", body)
		}
	}
}

func TestALargeBodyIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, doorkeeper.Limits{Body: time.Minute, Write: time.Minute, Bytes: 10}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	for body, want := range map[string]int{"0123456789": http.StatusOK, "0123456789a": http.StatusRequestEntityTooLarge} {
		answer, err := http.Post(s.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes: %d", len(body), answer.StatusCode)
		}
	}
}

// Who does not read an answer that does not fit into the buffers between ends it.
func TestAReaderWhoDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	wrote := make(chan error, 1)
	s := serve(t, doorkeeper.Limits{Body: time.Minute, Write: 50 * time.Millisecond, Bytes: 1}, func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				wrote <- err
				return
			}
		}
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing: %v", err)
	}
}
