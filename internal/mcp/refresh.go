package mcp

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/pin"
)

// RefreshOptions is what a Refresher is made of.
type RefreshOptions struct {
	Dialer Dialer
	// World returns the catalogue as it is now.
	World func() *effective.World
	// Observe writes down what a server lists for a tool type, and returns what is observed anew.
	Observe func(context.Context, id.MCPServer, id.ToolType, []catalog.Function) ([]catalog.Observation, error)
	// Interval is how often each server is asked. One that fails is asked after a tenth of it, and then ever later, up to
	// four times as late.
	Interval time.Duration
	// AtOnce is how many servers are asked at a time. Default 4.
	AtOnce int
	Logger *slog.Logger
}

// Refresher asks external MCP servers what functions they have, now and then, and has it written down where that differs
// from what is pinned. Nobody waits for it.
type Refresher struct {
	RefreshOptions
	slots chan struct{}
	wake  chan struct{}

	mu      sync.Mutex
	servers map[id.MCPServer]*refreshed
}

// refreshed is what is known of a server.
type refreshed struct {
	due      time.Time
	asking   bool
	failures int
	stdio    bool // it is not asked, because it is a child process, which was told
}

// NewRefresher makes a Refresher. It does nothing until Run.
func NewRefresher(o RefreshOptions) *Refresher {
	orDefault(&o.AtOnce, 4)
	return &Refresher{RefreshOptions: o, slots: make(chan struct{}, o.AtOnce), wake: make(chan struct{}, 1), servers: map[id.MCPServer]*refreshed{}}
}

// Changed says that a server's functions changed: it is asked soon.
func (r *Refresher) Changed(server id.MCPServer) {
	r.mu.Lock()
	if s := r.servers[server]; s != nil && s.failures == 0 {
		s.due = time.Time{}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run asks servers until ctx ends, and returns when no question is under way.
func (r *Refresher) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	ticker := time.NewTicker(min(time.Second, r.Interval))
	defer ticker.Stop()
	for {
		world := r.World()
		for server, types := range external(world) {
			if r.begin(server.ID, time.Now()) {
				asking.Go(func() {
					select {
					case r.slots <- struct{}{}:
						r.end(server.ID, r.ask(ctx, &server, types))
						<-r.slots
					case <-ctx.Done():
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.wake:
		}
	}
}

// external yields the servers that tool types of external MCP servers name, each with its types.
func external(w *effective.World) iter.Seq2[catalog.MCPServer, []*catalog.ToolType] {
	types := map[id.MCPServer][]*catalog.ToolType{}
	for n := range uint(w.Catalog.Len()) {
		t := w.Catalog.Type(n)
		if t.Source == catalog.SourceExternalMCP && !slices.Contains(types[t.MCPServer], t) {
			types[t.MCPServer] = append(types[t.MCPServer], t)
		}
	}
	return func(yield func(catalog.MCPServer, []*catalog.ToolType) bool) {
		for i := range w.MCPServers {
			if list := types[w.MCPServers[i].ID]; len(list) > 0 && !yield(w.MCPServers[i], list) {
				return
			}
		}
	}
}

// begin tells whether a server is to be asked now.
func (r *Refresher) begin(server id.MCPServer, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.servers[server]
	if s == nil { // spread, for all servers of a process that starts, and all processes
		s = &refreshed{due: now.Add(rand.N(r.Interval/10 + 1))}
		r.servers[server] = s
	}
	if s.asking || now.Before(s.due) {
		return false
	}
	s.asking = true
	return true
}

// end notes how asking a server went.
func (r *Refresher) end(server id.MCPServer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.servers[server]
	s.asking = false
	wait := r.Interval
	switch {
	case errors.Is(err, ErrStdio):
		if !s.stdio {
			r.Logger.Warn("an MCP server is not asked for its functions: "+err.Error(), "mcp_server_id", string(server))
		}
		s.stdio = true
	case err != nil:
		wait = min(r.Interval/10<<min(s.failures, 10), 4*r.Interval)
		s.failures++
		r.Logger.Warn("an MCP server could not be asked for its functions; what is pinned stays", "mcp_server_id", string(server),
			"error", err, "failures", s.failures, "again_in", wait)
	default:
		s.failures, s.stdio = 0, false
	}
	s.due = time.Now().Add(wait + rand.N(wait/10+1))
}

// ask compares what a server lists with what is pinned. It uses a connection of its own: on one that is older, a server may
// have its answers taken from memory.
func (r *Refresher) ask(ctx context.Context, server *catalog.MCPServer, types []*catalog.ToolType) error {
	conn, err := r.Dialer.Dial(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close()
	listing, err := conn.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		if put, drop := pin.Compare(t, listing.Functions, time.Now()); len(put)+len(drop) == 0 {
			continue
		}
		news, err := r.Observe(ctx, server.ID, t.ID, listing.Functions)
		if err != nil {
			return err
		}
		for i := range news {
			difference := t.Difference(&news[i])
			message := "an MCP server changed a function: nobody can use it until it is approved (toolctl mcp approve)"
			if difference == catalog.DifferenceRemoved {
				message = "an MCP server has a function no longer"
			}
			r.Logger.Warn(message, "mcp_server_id", string(server.ID), "tool_type_id", string(t.ID), "function", news[i].Name, "difference", string(difference))
		}
	}
	return nil
}
