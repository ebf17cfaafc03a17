package mcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// httpClient returns a client that sends headers with every request, follows no redirects, which could carry the
// headers elsewhere, and reads bounded answers; and what closes its idle connections.
func httpClient(headers map[string]string, maxBytes int) (client *http.Client, idle func()) {
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{
		Transport: &roundTripper{base: base, headers: headers, maxBytes: int64(maxBytes)},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s: set that as its endpoint, if it is right", r.URL.Redacted())
		},
	}, base.CloseIdleConnections
}

type roundTripper struct {
	base     http.RoundTripper
	headers  map[string]string
	maxBytes int64
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if len(t.headers) > 0 {
		request = request.Clone(request.Context())
		for name, value := range t.headers {
			request.Header.Set(name, value)
		}
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// The events of a stream are bounded one by one, where they are read.
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		response.Body = &boundedBody{ReadCloser: response.Body, left: t.maxBytes}
	}
	return response, nil
}

var errTooLarge = errors.New("the answer is too large")

// boundedBody fails where a body is longer than it may be.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
