package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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
	"google.golang.org/protobuf/proto"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/id"
)

// GatewayOptions is what a Gateway is made of. A zero value stands for its default, if one is named.
type GatewayOptions struct {
	Entitlements toolgrantv1.EntitlementServiceClient
	Calls        toolgrantv1.CallServiceClient
	// Discovery and Chats are for models that search for tools and turn them on; nil: they cannot.
	Discovery toolgrantv1.DiscoveryServiceClient
	Chats     toolgrantv1.ChatServiceClient
	// Approvals has what people decided, so that who calls again goes on with the call that asked for it; nil: each call is
	// another one.
	Approvals toolgrantv1.ApprovalServiceClient
	// ElicitApprovals has users asked for approvals through their clients, where those can ask.
	ElicitApprovals bool
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
	// Sessions is how many sessions and streams of changes clients may have open, and SessionsPerUser how many those of one
	// user. Default 4096 and 64.
	Sessions, SessionsPerUser int
	// SessionTimeout is for how long a session is kept whose client sends nothing. Default 1 h.
	SessionTimeout time.Duration
	Logger         *slog.Logger
}

// Gateway is Toolgrant as an MCP server: a client sees the functions of its effective set, and what it calls is authorized,
// called on the right server, and reported. Besides, it has functions of Toolgrant's own, to search for tools and to turn
// them on.
type Gateway struct {
	GatewayOptions
	// risky tells of functions that were called whether their calls need approvals.
	risky *lru.Cache[functionKey, bool]
	// mayNotDecide are users whose credentials turned out not to decide about approvals.
	mayNotDecide *lru.Cache[string, struct{}]
	open         *sessions
	ctx          context.Context
	stop         context.CancelFunc
}

// NewGateway makes a Gateway.
func NewGateway(o GatewayOptions) *Gateway {
	orDefault(&o.CallTimeout, 2*time.Minute)
	orDefault(&o.ResultBytes, 1<<20)
	orDefault(&o.PageSize, 200)
	orDefault(&o.Sessions, 4096)
	orDefault(&o.SessionsPerUser, 64)
	orDefault(&o.SessionTimeout, time.Hour)
	risky, err := lru.New[functionKey, bool](1 << 16)
	if err != nil {
		panic(err) // the size is right
	}
	mayNotDecide, err := lru.New[string, struct{}](1 << 12)
	if err != nil {
		panic(err) // the size is right
	}
	g := &Gateway{GatewayOptions: o, risky: risky, mayNotDecide: mayNotDecide, open: newSessions(o.Sessions, o.SessionsPerUser)}
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

// modelCapabilities are what the model can do, one by one.
func (c *Conversation) modelCapabilities() []string {
	var all []string
	for _, capability := range strings.Split(c.ModelCapabilities, ",") {
		if capability = strings.TrimSpace(capability); capability != "" {
			all = append(all, capability)
		}
	}
	return all
}

// stateless is the first revision of the protocol without sessions.
const stateless = "2026-07-28"

// tooMany refuses to open what would be too many.
const tooMany = "too many sessions are open: close some, or try again later"

// serverKey is where a request's server stands in its context: the SDK asks for it several times.
type serverKey struct{}

// Handler serves MCP over streamable HTTP, both generations of the protocol: which one a request speaks, its header says.
func (g *Gateway) Handler() http.Handler {
	serverOf := func(r *http.Request) *mcp.Server {
		server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
		return server
	}
	modern := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{Stateless: true, Logger: g.Logger, PropagateRequestCancellation: true})
	older := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{SessionTimeout: g.SessionTimeout, Logger: g.Logger})
	known := mcp.NewServer(implementation, nil) // of requests of sessions, which have servers of their own
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := conversationOf(r.Header)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(g.ctx, cancel)()
		server, handler := known, older
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= stateless:
			server, handler = g.server(who), modern
		case r.Header.Get("Mcp-Session-Id") == "":
			server = g.server(who)
			if !g.open.open(who.User, server, server) {
				http.Error(w, tooMany, http.StatusTooManyRequests)
				return
			}
			defer g.open.settle(who.User, server)
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(ctx, serverKey{}, server)))
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
	server    *mcp.Server
	stateless bool                    // the request is of the protocol without sessions
	revision  atomic.Pointer[string]  // of the newest set that the watch told
	listed    *atomic.Pointer[string] // the session's: the set that was listed last, before there is a watch
}

// asked is the conversation as one of its requests says it.
func (c *conversation) asked(r mcp.Request) (*conversation, error) {
	now := &conversation{Gateway: c.Gateway, Conversation: c.Conversation, server: c.server, listed: c.listed}
	now.revision.Store(c.revision.Load())
	if extra := r.GetExtra(); extra != nil && extra.Header != nil {
		asks, err := conversationOf(extra.Header)
		if err != nil || !asks.same(&c.Conversation) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "this session is another user's, or another chat's"}
		}
		now.Conversation = asks
	}
	if versioned, ok := r.(interface{ ProtocolVersion() string }); ok {
		now.stateless = versioned.ProtocolVersion() >= stateless
	}
	return now, nil
}

func (g *Gateway) server(who Conversation) *mcp.Server {
	c := &conversation{Gateway: g, Conversation: who, listed: &atomic.Pointer[string]{}}
	c.server = mcp.NewServer(implementation, &mcp.ServerOptions{
		Logger:       g.Logger,
		Instructions: g.instructions(),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) { // only in the protocol with sessions
			ctx, cancel := context.WithCancel(g.ctx)
			go func() {
				_ = r.Session.Wait()
				cancel()
			}()
			go c.watch(c.outgoing(ctx), false)
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
			now, err := c.asked(r)
			if err != nil {
				return nil, err
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
				var result *mcp.CallToolResult
				if request, ok := r.(*mcp.CallToolRequest); ok && !g.isOwn(params.Name) {
					result, err = now.call(ctx, request)
				} else {
					result, err = now.callOwn(ctx, params)
				}
				if err != nil {
					return nil, err
				}
				return now.typed(result), nil
			case *mcp.SubscriptionsListenParams:
				if !g.open.open(c.User, params, nil) {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: tooMany}
				}
				defer g.open.close(c.User, params)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go c.watch(ctx, true)
				return next(ctx, method, r)
			}
			return next(ctx, method, r)
		}
	})
	return c.server
}

// watch tells the client whenever its list changes, until ctx ends.
func (c *conversation) watch(ctx context.Context, stateless bool) {
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
			tools := answer.GetTools()
			if stateless {
				tools = lasting(tools)
			}
			set := fingerprint(c.functions(tools))
			if told == nil { // the client may have listed before the watch began, and the set may have changed since
				told = c.listed.Load()
			}
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

// fingerprint is the same for sets of functions that a client is told alike.
func fingerprint(functions []listed) string {
	sum, data := sha256.New(), []byte(nil)
	for _, f := range functions {
		data, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(data[:0], f.function) // it came so
		sum.Write(binary.AppendUvarint(nil, uint64(len(data))))
		sum.Write(data)
	}
	return string(sum.Sum(nil))
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
