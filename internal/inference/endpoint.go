// Package inference asks small models over HTTP: one that makes vectors of texts (the “embeddings” of OpenAI's API, which
// many servers have), and one that says how well texts answer a request (“rerank” of Cohere's and Jina's API). Both only
// ever make the ranking of tools better; so whatever goes wrong with them is an error here, soon, and nothing worse: an
// answer is read up to a bound and checked in full before any of it is used, redirects are not followed, since they would
// carry texts and key elsewhere, and an endpoint that keeps failing is left alone for a while.
package inference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// failures in a row, after which an endpoint is left alone.
	failures = 5
	// pause is for how long; then one request finds out whether it is back.
	pause = 10 * time.Second
	// maxError bounds what is told of an answer that is an error.
	maxError = 200
)

// ErrLeftAlone is that an endpoint is not asked, because it kept failing.
var ErrLeftAlone = errors.New("the endpoint kept failing and is left alone for some seconds")

// Options are those of an endpoint.
type Options struct {
	// URL is the whole address that is posted to.
	URL string
	// Model is the model's name there; empty: none is sent.
	Model string
	// Key is sent as a bearer token; empty: none is.
	Key string
	// Pause is how long an endpoint that kept failing is left alone. Default: 10 s.
	Pause time.Duration
}

// Stats are counts since the start.
type Stats struct {
	Requests, Failures uint64
	// LeftAlone counts questions that were not asked, because the endpoint kept failing.
	LeftAlone uint64
	// Seconds is how long requests took together.
	Seconds float64
	// Open tells that it is left alone now.
	Open bool
}

// endpoint is an address that JSON is posted to.
type endpoint struct {
	o       Options
	client  *http.Client
	breaker *gobreaker.CircuitBreaker[[]byte]

	requests, failed, leftAlone atomic.Uint64
	nanoseconds                 atomic.Int64
}

func newEndpoint(o Options) *endpoint {
	if o.Pause == 0 {
		o.Pause = pause
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	transport.MaxResponseHeaderBytes = 64 << 10
	return &endpoint{o: o,
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		breaker: gobreaker.NewCircuitBreaker[[]byte](gobreaker.Settings{Timeout: o.Pause, MaxRequests: 1,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
			// Whoever asked gave up for reasons of his own: that tells nothing of the endpoint. A deadline does.
			IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) }})}
}

// ask posts a question and hands the answer, of so many bytes at most, to read, which checks it. It returns when ctx ends.
func (e *endpoint) ask(ctx context.Context, question any, maxBytes int64, read func(answer []byte) error) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	_, err = e.breaker.Execute(func() ([]byte, error) {
		began := time.Now()
		e.requests.Add(1)
		answer, err := e.post(ctx, body, maxBytes)
		if err == nil {
			err = read(answer)
		}
		e.nanoseconds.Add(int64(time.Since(began)))
		if err != nil {
			e.failed.Add(1)
		}
		return nil, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		e.leftAlone.Add(1)
		return ErrLeftAlone
	}
	return err
}

func (e *endpoint) post(ctx context.Context, body []byte, maxBytes int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if e.o.Key != "" {
		r.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	response, err := e.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		told, _ := io.ReadAll(io.LimitReader(response.Body, maxError))
		return nil, fmt.Errorf("status %d: %q", response.StatusCode, told)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(answer)) > maxBytes {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxBytes)
	}
	return answer, nil
}

// Stats returns the counts.
func (e *endpoint) Stats() Stats {
	return Stats{Requests: e.requests.Load(), Failures: e.failed.Load(), LeftAlone: e.leftAlone.Load(),
		Seconds: time.Duration(e.nanoseconds.Load()).Seconds(), Open: e.breaker.State() == gobreaker.StateOpen}
}

// Close lets go of idle connections.
func (e *endpoint) Close() { e.client.CloseIdleConnections() }
