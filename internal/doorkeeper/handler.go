package doorkeeper

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Limits are what a request over HTTP may take.
type Limits struct {
	// Body is how long it may take until all of a request has come, which is otherwise cut off.
	Body time.Duration
	// Write is how long the other side may take to read what is written to it at a time.
	Write time.Duration
	// Bytes is how large a request may be.
	Bytes int64
}

// Handler limits requests. Answers may take as long as they like, as those of watchers do, as long as they are read.
func (l Limits) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			body := &hurried{ReadCloser: http.MaxBytesReader(w, r.Body, l.Bytes)}
			// A deadline that were set now would also end an answer that takes longer: it is only set when it is over.
			body.timer = time.AfterFunc(l.Body, func() { body.over(control) })
			defer body.done()
			r.Body = body
		}
		next.ServeHTTP(&impatient{ResponseWriter: w, control: control, patience: l.Write}, r)
	})
}

// hurried is a request's body that must have been read by a time.
type hurried struct {
	io.ReadCloser
	timer *time.Timer
	mu    sync.Mutex
	whole bool
}

// Read implements io.Reader.
func (b *hurried) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *hurried) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = true
	b.timer.Stop()
}

func (b *hurried) over(control *http.ResponseController) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		_ = control.SetReadDeadline(time.Unix(1, 0)) // whoever reads fails now
	}
}

// impatient is a writer of an answer that fails when the other side does not read.
type impatient struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// Write implements http.ResponseWriter.
func (w *impatient) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience)) // in tests without a connection there is none
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *impatient) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *impatient) FlushError() error {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *impatient) Unwrap() http.ResponseWriter { return w.ResponseWriter }
