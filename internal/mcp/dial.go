package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolgrant/toolgrant/internal/catalog"
)

// ErrStdio is why a server that is a child process is not started.
var ErrStdio = errors.New("starting MCP servers as child processes is not allowed here")

// Dialer connects to external MCP servers.
type Dialer struct {
	// Stdio allows servers that are child processes. Who may write the catalogue may then run any command here.
	Stdio  bool
	Limits Limits
	// Getenv reads the environment, which has the servers' secrets; nil: os.LookupEnv.
	Getenv func(string) (string, bool)
	// ToolsChanged, unless it is nil, is called when a connected server says that its functions changed. It must not
	// block.
	ToolsChanged func()
}

// Conn is a connection to an external MCP server. Its methods may be called at the same time.
type Conn struct {
	session *mcp.ClientSession
	limits  Limits
	said    func() string // what a child process wrote to its standard error last
	close   func() error

	tokens   atomic.Int64 // of progress
	progress sync.Map     // from the token of a call to what is told
}

// implementation is how Toolgrant names itself to servers.
var implementation = &mcp.Implementation{Name: "toolgrant", Version: "0"}

// Dial connects to a server within Limits.Connect, and no longer than ctx lasts. The connection does not end with ctx.
func (d *Dialer) Dial(ctx context.Context, server *catalog.MCPServer) (*Conn, error) {
	limits := d.Limits.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Connect, fmt.Errorf("it did not answer within %v", limits.Connect))
	defer cancel()
	secrets, err := d.secrets(server)
	if err != nil {
		return nil, err
	}
	conn := &Conn{limits: limits, said: func() string { return "" }}
	var transport mcp.Transport
	var stop func()
	switch server.Transport {
	case catalog.TransportStdio:
		if !d.Stdio {
			return nil, ErrStdio
		}
		child, err := start(server, secrets)
		if err != nil {
			return nil, err
		}
		transport = &mcp.IOTransport{Reader: child.stdout, Writer: child.stdin, MaxLineLength: limits.MessageBytes}
		conn.said, stop = child.stderr.String, child.stop
	default:
		client, idle := httpClient(secrets, limits.MessageBytes)
		transport = &mcp.StreamableClientTransport{Endpoint: server.Endpoint, HTTPClient: client, MaxEventSize: limits.MessageBytes,
			MaxRetries: -1, DisableStandaloneSSE: d.ToolsChanged == nil}
		stop = idle
	}
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // it may ask us for nothing
		// What a server wants to know before it answers is for the model's client, not for us.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			conn.progressed(r.Params)
		},
	}
	if d.ToolsChanged != nil {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { d.ToolsChanged() }
	}
	session, err := connect(ctx, mcp.NewClient(implementation, options), transport)
	if err != nil {
		stop()
		return nil, conn.explain(ctx, err)
	}
	conn.session = session
	conn.close = sync.OnceValue(func() error {
		// A child process ends when its input does; if not, it is stopped, so that closing never waits for it.
		done := make(chan error, 1)
		go func() { done <- session.Close() }()
		stop()
		return <-done
	})
	return conn, nil
}

// connect is the SDK's, which does not end in time by itself where the server never reads.
func connect(ctx context.Context, client *mcp.Client, transport mcp.Transport) (*mcp.ClientSession, error) {
	type result struct {
		session *mcp.ClientSession
		err     error
	}
	done := make(chan result, 1)
	go func() {
		session, err := client.Connect(ctx, transport, nil)
		done <- result{session, err}
	}()
	select {
	case r := <-done:
		return r.session, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.session != nil {
				_ = r.session.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// explain adds to an error what ended ctx, and what a child process said last.
func (c *Conn) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if said := c.said(); said != "" {
		return fmt.Errorf("%w (it wrote: %s)", err, said)
	}
	return err
}

// Close ends the connection, and a server that is a child process.
func (c *Conn) Close() error { return c.close() }

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		_ = c.session.Wait()
		close(done)
	}()
	return done
}

// Introduction is what the server calls itself, for people; it may be empty, and it may be anything.
func (c *Conn) Introduction() (name, title, version string) {
	if r := c.session.InitializeResult(); r != nil && r.ServerInfo != nil {
		return r.ServerInfo.Name, r.ServerInfo.Title, r.ServerInfo.Version
	}
	return "", "", ""
}

// secrets reads the values that a server's entry refers to.
func (d *Dialer) secrets(server *catalog.MCPServer) (map[string]string, error) {
	getenv := d.Getenv
	if getenv == nil {
		getenv = os.LookupEnv
	}
	values := make(map[string]string, len(server.HeadersFromEnv))
	for name, variable := range server.HeadersFromEnv {
		value, ok := getenv(variable)
		if !ok {
			return nil, fmt.Errorf("the environment variable %s, from which %s is taken, is not set", variable, name)
		}
		values[name] = value
	}
	return values, nil
}
