package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/metadata"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// GatewayOptions is what a Gateway is made of. A zero value stands for its default, if one is named.
type GatewayOptions struct {
	Entitlements toolgrantv1.EntitlementServiceClient
	Calls        toolgrantv1.CallServiceClient
	// Server returns an MCP server of the catalogue.
	Server func(context.Context, id.MCPServer) (*catalog.MCPServer, error)
	// NativeServer is the operator's MCP server that has the functions of native tools, and of those of the built-in MCP server,
	// under the names of their classes. Empty: such tools are not served.
	NativeServer id.MCPServer
	Pool         *Pool
	// CallTimeout is how long a call may take. Default 2 min.
	CallTimeout time.Duration
	// ResultBytes is how large a result may be, as JSON. Default 1 MiB.
	ResultBytes int
	// PageSize is how many functions a page of tools/list has. Default 200.
	PageSize int
	Logger   *slog.Logger
}

// Gateway is Toolgrant as an MCP server: a client sees the functions of its effective set, and what it calls is authorized,
// called on the right server, and reported. Functions of Toolgrant's own, such as for searching tools, are to be listed by
// list before all others and answered by call before it asks anybody.
type Gateway struct {
	GatewayOptions
	// waiting are the ids of calls that wait for an approval, so that who calls again asks about the same call.
	waiting *lru.Cache[waitingKey, string]
	ctx     context.Context
	stop    context.CancelFunc
}

// NewGateway makes a Gateway.
func NewGateway(o GatewayOptions) *Gateway {
	orDefault(&o.CallTimeout, 2*time.Minute)
	orDefault(&o.ResultBytes, 1<<20)
	orDefault(&o.PageSize, 200)
	waiting, err := lru.New[waitingKey, string](1 << 14)
	if err != nil {
		panic(err) // the size is right
	}
	g := &Gateway{GatewayOptions: o, waiting: waiting}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Close ends streams and calls that are under way, so that a server can shut down.
func (g *Gateway) Close() { g.stop() }

// Conversation is who asks, and in which chat.
type Conversation struct {
	User, Chat string
	Device     string // empty: the web
	Turn       *int32 // nil: the chat's
	Provider   string // the model's; empty: not told
	// ModelCapabilities are what the model can do.
	ModelCapabilities string // separated by commas
	// authorization and certificate are what the client proved who it is by, as it was passed.
	authorization, certificate string
}

// Headers of requests that tell who asks, and the keys under which they are passed on. The certificate is set by who
// checked it, and is base64.
const (
	headerAuthorization = "Authorization"
	headerCertificate   = "Toolgrant-Client-Certificate"
	certificateKey      = "toolgrant-client-certificate-bin"
)

// outgoing returns a context for calls on behalf of the client.
func (c *Conversation) outgoing(ctx context.Context) context.Context {
	if c.authorization != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", c.authorization)
	}
	if der, err := base64.StdEncoding.DecodeString(c.certificate); err == nil && len(der) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, certificateKey, string(der))
	}
	return ctx
}

// Headers of requests that say who asks, and in which chat.
const (
	headerUser         = "Toolgrant-User"
	headerChat         = "Toolgrant-Chat"
	headerDevice       = "Toolgrant-Device"
	headerTurn         = "Toolgrant-Turn"
	headerProvider     = "Toolgrant-Provider"
	headerCapabilities = "Toolgrant-Model-Capabilities"
)

// conversationOf reads a request's headers.
func conversationOf(h http.Header) (Conversation, error) {
	c := Conversation{User: h.Get(headerUser), Chat: h.Get(headerChat), Device: h.Get(headerDevice), Provider: h.Get(headerProvider),
		ModelCapabilities: h.Get(headerCapabilities), authorization: h.Get(headerAuthorization), certificate: h.Get(headerCertificate)}
	var faults []error
	for name, value := range map[string]string{headerUser: c.User, headerChat: c.Chat} {
		if !id.Valid(value) {
			faults = append(faults, fmt.Errorf("the header %s must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ / -", name))
		}
	}
	if c.Device != "" && !id.Valid(c.Device) {
		faults = append(faults, fmt.Errorf("the header %s must be a device's id, or left out for the web", headerDevice))
	}
	if text := h.Get(headerTurn); text != "" {
		turn, err := strconv.ParseInt(text, 10, 32)
		if err != nil || turn < 0 {
			faults = append(faults, fmt.Errorf("the header %s must be a number from 0 on", headerTurn))
		}
		number := int32(turn)
		c.Turn = &number
	}
	return c, errors.Join(faults...)
}

// same tells whether two are of one user in one chat on one surface.
func (c *Conversation) same(other *Conversation) bool {
	return c.User == other.User && c.Chat == other.Chat && c.Device == other.Device
}

func (c *Conversation) surface() *toolgrantv1.Surface {
	if c.Device == "" {
		return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_Web{Web: &toolgrantv1.Web{}}}
	}
	return &toolgrantv1.Surface{Kind: &toolgrantv1.Surface_DeviceId{DeviceId: c.Device}}
}

// stateless is the first revision of the protocol without sessions.
const stateless = "2026-07-28"

// sessionTimeout is how long a session of the older protocol is kept whose client sends nothing.
const sessionTimeout = time.Hour

// Handler serves MCP over streamable HTTP, both generations of the protocol: which one a request speaks, its header says.
func (g *Gateway) Handler() http.Handler {
	serverOf := func(r *http.Request) *mcp.Server {
		c, err := conversationOf(r.Header)
		if err != nil {
			return nil // it was refused before
		}
		return g.server(c)
	}
	modern := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{Stateless: true, Logger: g.Logger, PropagateRequestCancellation: true})
	older := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout, Logger: g.Logger})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := conversationOf(r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(g.ctx, cancel)()
		if r.Header.Get("Mcp-Protocol-Version") >= stateless {
			modern.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		older.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// Serve serves one conversation on a transport until its client goes, or ctx ends.
func (g *Gateway) Serve(ctx context.Context, c Conversation, transport mcp.Transport) error {
	return g.server(c).Run(ctx, transport)
}

// conversation is one client's session, or, in the protocol without sessions, one request.
type conversation struct {
	*Gateway
	Conversation
	server   *mcp.Server
	revision atomic.Pointer[string] // of the newest set that the watch told
}

func (g *Gateway) server(who Conversation) *mcp.Server {
	c := &conversation{Gateway: g, Conversation: who}
	c.server = mcp.NewServer(implementation, &mcp.ServerOptions{
		Logger:       g.Logger,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) { // only in the protocol with sessions
			ctx, cancel := context.WithCancel(g.ctx)
			go func() {
				_ = r.Session.Wait()
				cancel()
			}()
			go c.watch(c.outgoing(ctx))
		},
	})
	c.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
			defer func() { // it would end the process: the SDK's goroutines have nobody who recovers
				if what := recover(); what != nil {
					g.Logger.ErrorContext(ctx, "a request of an MCP client panicked", "method", method, "panic", what, "stack", string(debug.Stack()))
					result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
				}
			}()
			now := c
			if extra := r.GetExtra(); extra != nil && extra.Header != nil {
				asks, err := conversationOf(extra.Header)
				if err != nil || !asks.same(&c.Conversation) {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "this session is another user's, or another chat's"}
				}
				now = &conversation{Gateway: g, Conversation: asks, server: c.server}
				now.revision.Store(c.revision.Load())
			}
			ctx = now.outgoing(ctx)
			switch params := r.GetParams().(type) {
			case *mcp.ListToolsParams:
				cursor := ""
				if params != nil {
					cursor = params.Cursor
				}
				return now.list(ctx, cursor)
			case *mcp.CallToolParamsRaw:
				session, _ := r.GetSession().(*mcp.ServerSession)
				return now.call(ctx, session, params)
			case *mcp.SubscriptionsListenParams:
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go c.watch(ctx)
				return next(ctx, method, r)
			}
			return next(ctx, method, r)
		}
	})
	return c.server
}

// watch tells the client whenever the effective set changes, until ctx ends.
func (c *conversation) watch(ctx context.Context) {
	var told *string // the set that the client knows; nil: none yet
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 10*time.Second) {
		stream, err := c.Entitlements.WatchTools(ctx, &toolgrantv1.WatchToolsRequest{ChatId: c.Chat, UserId: c.User, Surface: c.surface(),
			View: toolgrantv1.ToolView_TOOL_VIEW_FULL})
		for err == nil {
			var answer *toolgrantv1.WatchToolsResponse
			if answer, err = stream.Recv(); err != nil || answer.GetCheckpoint() {
				continue
			}
			wait = 100 * time.Millisecond
			revision := answer.GetRevision()
			c.revision.Store(&revision)
			var names strings.Builder
			for _, f := range c.functions(answer.GetTools()) {
				fmt.Fprintf(&names, "%s %v\n", f.function.GetName(), f.function)
			}
			set := names.String()
			if told != nil && *told != set {
				c.listChanged()
			}
			told = &set
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// listChanged tells the client to list anew. The SDK tells it when tools are added or removed; lists are answered without
// those that it knows.
func (c *conversation) listChanged() {
	const sign = "changed"
	c.server.AddTool(&mcp.Tool{Name: sign, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("nobody can call it")
	})
	c.server.RemoveTools(sign)
}
