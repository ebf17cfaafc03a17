package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// PoolOptions is what a Pool is made of. A zero value stands for its default.
type PoolOptions struct {
	Dialer Dialer
	// Concurrent is how many calls a server gets at a time; others wait. Default 32.
	Concurrent int
	// Idle is for how long a connection is kept that nobody uses. Default 5 min.
	Idle time.Duration
	// Backoff is for how long a server is left alone that could not be reached, at first; then ever longer, up to 64 times as
	// long. Default 500 ms.
	Backoff time.Duration
	// Changed, unless it is nil, is called when a server says that its functions changed. It must not block.
	Changed func(id.MCPServer)
}

// Pool has connections to external MCP servers, one to each and to each set of headers with which it is called, opened when
// it is first needed. Servers don't wait for one another.
type Pool struct {
	PoolOptions

	mu      sync.Mutex
	servers map[poolKey]*pooled
	slots   map[id.MCPServer]chan struct{}
	closed  bool
}

// poolKey is a server, and the headers with which it is called.
type poolKey struct {
	server  id.MCPServer
	headers string
}

func keyOf(server *catalog.MCPServer) poolKey {
	headers, _ := json.Marshal(server.HeadersFromEnv) // its keys are sorted
	return poolKey{server.ID, string(headers)}
}

// pooled is what the pool has of one server.
type pooled struct {
	slots chan struct{} // the server's, whatever the headers

	mu       sync.Mutex
	server   catalog.MCPServer
	opening  chan struct{} // closed when conn or err is there; nil: nobody opens
	conn     *Conn
	err      error
	failures int
	retry    time.Time
	users    int
	used     time.Time
}

// UnreachableError says that a server could not be reached, so that a call was not made, or that the connection broke.
type UnreachableError struct{ Err error }

// Error implements error.
func (e *UnreachableError) Error() string {
	return "the MCP server cannot be reached: " + e.Err.Error()
}

// Unwrap returns why.
func (e *UnreachableError) Unwrap() error { return e.Err }

// codeRejected is of errors that the SDK makes where a message could not be sent: no server says so.
const codeRejected = -32005

// NewPool returns a pool without connections.
func NewPool(o PoolOptions) *Pool {
	orDefault(&o.Concurrent, 32)
	orDefault(&o.Idle, 5*time.Minute)
	orDefault(&o.Backoff, 500*time.Millisecond)
	return &Pool{PoolOptions: o, servers: map[poolKey]*pooled{}, slots: map[id.MCPServer]chan struct{}{}}
}

// Call calls a function of a server: see Conn.Call. A call is never made twice. Its error is an *UnreachableError where the
// server could not be reached, a *jsonrpc.Error where it refused, or ctx's.
func (p *Pool) Call(ctx context.Context, server *catalog.MCPServer, function string, arguments json.RawMessage, meta mcp.Meta,
	progress func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error) {
	entry, err := p.entry(server)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	select {
	case entry.slots <- struct{}{}:
		defer func() { <-entry.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := p.take(ctx, entry, server)
	if err != nil {
		return nil, err
	}
	defer entry.give(conn)
	result, err := conn.Call(ctx, function, arguments, meta, progress)
	if err == nil {
		return result, nil
	}
	refused := (*jsonrpc.Error)(nil)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &refused) && refused.Code != codeRejected:
		return nil, err
	}
	entry.drop(conn)
	return nil, &UnreachableError{err}
}

func (p *Pool) entry(server *catalog.MCPServer) (*pooled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("shutting down")
	}
	key := keyOf(server)
	entry := p.servers[key]
	if entry == nil {
		if p.slots[server.ID] == nil {
			p.slots[server.ID] = make(chan struct{}, p.Concurrent)
		}
		entry = &pooled{slots: p.slots[server.ID]}
		p.servers[key] = entry
	}
	return entry, nil
}

// take returns the connection, which it opens if there is none. Many who need one wait for the same.
func (p *Pool) take(ctx context.Context, e *pooled, server *catalog.MCPServer) (*Conn, error) {
	for {
		e.mu.Lock()
		if e.conn != nil && !reflect.DeepEqual(e.server, *server) { // it is another one now
			stale := e.conn
			e.conn, e.failures, e.retry = nil, 0, time.Time{}
			if e.users == 0 {
				go func() { _ = stale.Close() }()
			}
		}
		switch {
		case e.conn != nil:
			e.users++
			e.used = time.Now()
			conn := e.conn
			e.mu.Unlock()
			return conn, nil
		case e.opening == nil && time.Now().Before(e.retry) && reflect.DeepEqual(e.server, *server):
			err := fmt.Errorf("it is left alone for %v: %w", time.Until(e.retry).Round(time.Millisecond), e.err)
			e.mu.Unlock()
			return nil, &UnreachableError{err}
		case e.opening == nil:
			opening := make(chan struct{})
			e.opening, e.server = opening, *server
			go p.open(outward{context.WithoutCancel(ctx)}, e, *server, opening)
		}
		opening := e.opening
		e.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		e.mu.Lock()
		err := e.err
		e.mu.Unlock()
		if err != nil {
			return nil, &UnreachableError{err}
		}
	}
}

func (p *Pool) open(ctx context.Context, e *pooled, server catalog.MCPServer, opening chan struct{}) {
	dialer := p.Dialer
	if p.Changed != nil {
		dialer.ToolsChanged = func() { p.Changed(server.ID) }
	}
	conn, err := dialer.Dial(ctx, &server)
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if err == nil && closed {
		_ = conn.Close()
		conn, err = nil, errors.New("shutting down")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn, e.err, e.opening, e.used = conn, err, nil, time.Now()
	if err != nil {
		e.retry = time.Now().Add(p.Backoff << min(e.failures, 6))
		e.failures++
	} else {
		e.failures = 0
		go func() {
			<-conn.Done()
			e.drop(conn)
		}()
	}
	close(opening)
}

// give returns a connection that was taken. One that was replaced meanwhile is closed by its last user.
func (e *pooled) give(conn *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	e.used = time.Now()
	if e.users == 0 && e.conn != conn {
		go func() { _ = conn.Close() }()
	}
}

// drop forgets a broken connection.
func (e *pooled) drop(conn *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == conn {
		e.conn = nil
		go func() { _ = conn.Close() }()
	}
}

// Run closes idle connections until ctx ends, and then all.
func (p *Pool) Run(ctx context.Context) {
	ticker := time.NewTicker(max(p.Idle/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			p.mu.Lock()
			p.closed = true
			p.mu.Unlock()
			p.sweep(func(*pooled) bool { return true })
			return
		case now := <-ticker.C:
			p.sweep(func(e *pooled) bool { return e.users == 0 && now.Sub(e.used) >= p.Idle })
		}
	}
}

// sweep closes the connections for which is is true, and waits for it.
func (p *Pool) sweep(is func(*pooled) bool) {
	p.mu.Lock()
	entries := make([]*pooled, 0, len(p.servers))
	for _, e := range p.servers {
		entries = append(entries, e)
	}
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, e := range entries {
		e.mu.Lock()
		if conn := e.conn; conn != nil && is(e) {
			e.conn = nil
			closing.Go(func() { _ = conn.Close() })
		}
		e.mu.Unlock()
	}
	closing.Wait()
}
