package grpcserver

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"
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
	world   *effective.World
	index   *call.Index
	configs []atomic.Pointer[structpb.Struct] // of tools, by number, converted when they are first needed
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
		held = &callIndex{world: w, index: call.Compile(w.Catalog, w.MCPServers), configs: make([]atomic.Pointer[structpb.Struct], w.Catalog.Len())}
		c.index.Store(held)
	}
	return held
}

// binding tells how a tool's function is called.
func (x *callIndex) binding(tool id.Tool, b *call.Binding) (*toolgrantv1.CallBinding, error) {
	n, _ := x.world.Catalog.Number(tool)
	config := x.configs[n].Load()
	if config == nil && b.Config != nil {
		var err error
		if config, err = structFromJSON(b.Config); err != nil {
			return nil, err
		}
		x.configs[n].Store(config)
	}
	if b.Native {
		return &toolgrantv1.CallBinding{Kind: &toolgrantv1.CallBinding_Native{
			Native: &toolgrantv1.NativeBinding{ToolClass: b.ToolClass, Config: config}}}, nil
	}
	return &toolgrantv1.CallBinding{Kind: &toolgrantv1.CallBinding_Mcp{
		Mcp: &toolgrantv1.McpBinding{McpServerId: string(b.Server), Function: b.Function, Endpoint: b.Endpoint, Config: config, HeadersFromEnv: b.HeadersFromEnv}}}, nil
}
