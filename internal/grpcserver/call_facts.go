package grpcserver

import (
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/call"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
)

// conversations keeps what was effective in conversations, each answer with what it rests on, as Answers does: most
// calls come in a turn that was asked about before.
type conversations struct {
	cache *otter.Cache[conversationKey, *resolved]
	index atomic.Pointer[callIndex] // of the world asked about last
}

type conversationKey struct {
	user   id.User
	chat   string
	device id.Device
}

// resolved is an answer that nobody has had words of. It is copied before it is used: words are made in place.
type resolved struct {
	basis
	answer *effective.Answer
}

// callIndex is what calls need of one world, compiled.
type callIndex struct {
	world *effective.World
	index *call.Index
	// bindings are answers that have nothing but a binding, as they go on the wire: made when a function is first allowed.
	bindings sync.Map // boundTo to []byte
}

// boundTo is what is called.
type boundTo struct {
	tool     id.Tool
	function string
}

func newConversations(maxBytes uint64) *conversations {
	return &conversations{cache: otter.Must(&otter.Options[conversationKey, *resolved]{
		MaximumWeight: maxBytes,
		Weigher: func(k conversationKey, r *resolved) uint32 {
			const entry, sets = 1024, 12
			return uint32(entry + len(k.user) + len(k.chat) + len(k.device) + sets*r.world.Catalog.Len()/8)
		},
	})}
}

// of returns what is effective in a conversation, for the caller alone.
func (c *conversations) of(f *replica.Facts, q *effective.Question, chat string) *effective.Answer {
	key := conversationKey{q.User.ID, chat, q.Surface.Device}
	held, ok := c.cache.GetIfPresent(key)
	if !ok || !held.holds(f, q) {
		held = &resolved{newBasis(f, q), f.World.Resolve(*q)}
		c.cache.Set(key, held)
	}
	own := *held.answer
	return &own
}

// compiled returns what calls need of a world.
func (c *conversations) compiled(w *effective.World) *callIndex {
	held := c.index.Load()
	if held == nil || held.world != w {
		held = &callIndex{world: w, index: call.Compile(w.Catalog, w.MCPServers)}
		c.index.Store(held)
	}
	return held
}

// bind adds to an answer how a tool's function is called. The part is encoded already, and so goes among the fields that
// the message does not know: whoever reads the answer finds it in its place.
func (x *callIndex) bind(p *toolgrantv1.AuthorizeCallResponse, tool id.Tool, b *call.Binding) error {
	of := boundTo{tool, b.Function}
	encoded, ok := x.bindings.Load(of)
	if !ok {
		binding, err := bindingToProto(b)
		if err != nil {
			return err
		}
		if encoded, err = proto.Marshal(&toolgrantv1.AuthorizeCallResponse{Binding: binding}); err != nil {
			return err
		}
		x.bindings.Store(of, encoded)
	}
	p.ProtoReflect().SetUnknown(encoded.([]byte))
	return nil
}

func bindingToProto(b *call.Binding) (*toolgrantv1.CallBinding, error) {
	var config *structpb.Struct
	if b.Config != nil {
		var err error
		if config, err = structFromJSON(b.Config); err != nil {
			return nil, err
		}
	}
	if b.Native {
		return &toolgrantv1.CallBinding{Kind: &toolgrantv1.CallBinding_Native{
			Native: &toolgrantv1.NativeBinding{ToolClass: b.ToolClass, Config: config}}}, nil
	}
	return &toolgrantv1.CallBinding{Kind: &toolgrantv1.CallBinding_Mcp{
		Mcp: &toolgrantv1.McpBinding{McpServerId: string(b.Server), Function: b.Function, Endpoint: b.Endpoint, Config: config, HeadersFromEnv: b.HeadersFromEnv}}}, nil
}
