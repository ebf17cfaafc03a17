package finder

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/id"
)

// maxOwners is how many users' own indexes are kept. Another is made anew when its user searches.
const maxOwners = 4096

// Shelf keeps the indexes of the catalogue that was asked about last, and makes those of the next one from them.
type Shelf struct {
	weights discovery.Weights
	learned func() Learned
	vectors func() *discovery.Vectors
	private func(id.User) *discovery.Vectors // of his own tools

	making sync.Mutex // held while an index is made
	common atomic.Pointer[common]
	owners *lru.Cache[id.User, *owned]
}

// Learned is what past requests of users are known. Nil: none.
type Learned interface {
	// Common are the levels of all users; Own those that are laid over them for one user.
	Common() []discovery.Level
	Own(id.User, []id.Group) []discovery.Level
	// Private is the user's own level over private tools.
	Private(id.User) []discovery.Level
}

// NewShelf returns an empty shelf. learned tells what is known of past requests; equal answers are the same.
func NewShelf(weights discovery.Weights, learned func() Learned) *Shelf {
	owners, err := lru.New[id.User, *owned](maxOwners)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	if learned == nil {
		learned = func() Learned { return nil }
	}
	return &Shelf{weights: weights, learned: learned, vectors: func() *discovery.Vectors { return nil },
		private: func(id.User) *discovery.Vectors { return nil }, owners: owners}
}

// Compare makes the shelf compare meanings, too. vectors tells what shared tools mean, nil if that is not known; equal
// answers are the same. It must be called before the first search.
func (s *Shelf) Compare(vectors func() *discovery.Vectors) { s.vectors = vectors }

// ComparePrivate makes the shelf compare a user's private tools by meaning, too. vectors tells what they mean, nil if that
// is not known. It must be called before the first search.
func (s *Shelf) ComparePrivate(vectors func(owner id.User) *discovery.Vectors) { s.private = vectors }

// Weights are those of the ranking.
func (s *Shelf) Weights() *discovery.Weights { return &s.weights }

// common is what is searched for all users: the shared tools of one catalogue.
type common struct {
	world   *effective.World
	servers map[id.MCPServer]*catalog.MCPServer
	learned Learned
	vectors *discovery.Vectors
	ranker  *discovery.Ranker
	slots   []int32 // by number of a tool; -1: it is private
	numbers []uint  // by slot
	shared  *catalog.Set
}

// owned is what is searched for one user only.
type owned struct {
	common *common
	groups []id.Group
	tools  []held
	ranker *discovery.Ranker // of the user's private tools; nil: there are none
	shared *discovery.Ranker // of shared tools, with what the user and his groups teach
}

// held is a tool as it was indexed.
type held struct {
	tool     *catalog.Tool
	toolType *catalog.ToolType
	server   string // the title of its MCP server
}

// View is the indexes that one user's questions about one catalogue are answered from.
type View struct {
	*common
	weights *discovery.Weights
	shelf   *discovery.Ranker // of shared tools
	own     *discovery.Ranker // nil: the user has no private tools
}

// Of returns the indexes of a catalogue for a user. A catalogue that is new takes some milliseconds for thousands of
// tools; the first one takes about a second. Whoever comes meanwhile waits, but no longer than ctx.
func (s *Shelf) Of(ctx context.Context, world *effective.World, user id.User, groups ...id.Group) (View, error) {
	learned, vectors := s.learned(), s.vectors()
	c := s.common.Load()
	if c == nil || !c.is(world, learned, vectors) {
		if c = s.make(world, learned, vectors); ctx.Err() != nil {
			return View{}, ctx.Err()
		}
	}
	o := s.of(c, user, groups)
	v := View{common: c, weights: &s.weights, shelf: o.shared, own: o.ranker}
	if v.own != nil {
		if vectors := s.private(user); vectors != nil { // which are not kept here: who has them bounds their memory
			v.own = v.own.WithVectors(vectors)
		}
	}
	return v, nil
}

// is tells whether it is made of these.
func (c *common) is(world *effective.World, learned Learned, vectors *discovery.Vectors) bool {
	return c.world == world && c.learned == learned && c.vectors == vectors
}

// make makes the common part for a catalogue.
func (s *Shelf) make(world *effective.World, learned Learned, vectors *discovery.Vectors) *common {
	s.making.Lock()
	defer s.making.Unlock()
	before := s.common.Load()
	if before != nil && before.is(world, learned, vectors) {
		return before
	}
	c := newCommon(world, learned)
	c.vectors = vectors
	index := c.index(before)
	if before != nil && before.ranker.Index() == index && before.learned == learned {
		c.ranker = before.ranker.WithVectors(vectors)
	} else {
		var levels []discovery.Level
		if learned != nil {
			levels = learned.Common()
		}
		c.ranker = discovery.NewRanker(index, s.weights, levels...).WithVectors(vectors)
	}
	c.number(index)
	s.common.Store(c)
	if before != nil && before.world != world {
		s.owners.Purge() // they keep the catalogue that was, and what erased users had
	}
	return c
}

func newCommon(world *effective.World, learned Learned) *common {
	c := &common{world: world, learned: learned, servers: make(map[id.MCPServer]*catalog.MCPServer, len(world.MCPServers))}
	for i := range world.MCPServers {
		c.servers[world.MCPServers[i].ID] = &world.MCPServers[i]
	}
	return c
}

// index is that of the shared tools, made from the one before.
func (c *common) index(before *common) *discovery.Index {
	if before != nil && before.world == c.world {
		return before.ranker.Index()
	}
	tools := c.world.Catalog
	var put []discovery.Tool
	var remove []id.Tool
	for n := range uint(tools.Len()) {
		if t := tools.Tool(n); t.Owner == "" && (before == nil || !before.has(t, c.held(n))) {
			put = append(put, describe(t, tools.Type(n), c.servers))
		}
	}
	if before == nil {
		return discovery.NewIndex(put)
	}
	for n := range uint(before.world.Catalog.Len()) {
		t := before.world.Catalog.Tool(n)
		if now, ok := tools.Number(t.ID); t.Owner == "" && (!ok || tools.Tool(now).Owner != "") {
			remove = append(remove, t.ID)
		}
	}
	if len(put) == 0 && len(remove) == 0 {
		return before.ranker.Index()
	}
	return before.ranker.Index().With(put, remove)
}

// has tells whether a tool is indexed as it is now.
func (c *common) has(t *catalog.Tool, now held) bool {
	n, ok := c.world.Catalog.Number(t.ID)
	return ok && c.world.Catalog.Tool(n).Owner == "" && c.held(n).alike(now)
}

func (c *common) held(n uint) held {
	h := held{tool: c.world.Catalog.Tool(n), toolType: c.world.Catalog.Type(n)}
	if server := c.servers[h.toolType.MCPServer]; server != nil {
		h.server = server.Title
	}
	return h
}

func (h held) alike(other held) bool {
	return h.server == other.server && alike(h.tool, other.tool, h.toolType, other.toolType)
}

// number finds the slots of the catalogue's tools.
func (c *common) number(index *discovery.Index) {
	tools := c.world.Catalog
	c.slots, c.numbers, c.shared = make([]int32, tools.Len()), make([]uint, index.Slots()), tools.NewSet()
	for n := range c.slots {
		c.slots[n] = -1
		if tools.Tool(uint(n)).Owner != "" {
			continue
		}
		if slot, ok := index.Slot(tools.Tool(uint(n)).ID); ok {
			c.slots[n], c.numbers[slot] = int32(slot), uint(n)
			c.shared.Set(uint(n))
		}
	}
}

// of returns what is searched for one user only.
func (s *Shelf) of(c *common, user id.User, groups []id.Group) *owned {
	private := c.world.Catalog.OwnedBy(user)
	if private.None() && c.learned == nil {
		return &owned{shared: c.ranker}
	}
	before, ok := s.owners.Get(user)
	if ok && before.common == c && slices.Equal(before.groups, groups) {
		return before
	}
	o := &owned{common: c, groups: groups, shared: c.ranker}
	if c.learned != nil {
		if levels := c.learned.Own(user, groups); len(levels) > 0 {
			o.shared = c.ranker.Over(levels...)
		}
	}
	if !private.None() {
		for n := range private.EachSet() {
			o.tools = append(o.tools, c.held(n))
		}
		var levels []discovery.Level
		if c.learned != nil {
			levels = c.learned.Private(user)
		}
		o.ranker = discovery.NewRanker(o.index(before), s.weights, levels...)
	}
	s.owners.Add(user, o)
	return o
}

// index is that of the user's private tools; before is nil, or what there was before.
func (o *owned) index(before *owned) *discovery.Index {
	if before != nil && before.ranker != nil && before.common.ranker.Index() == o.common.ranker.Index() && sameTools(before.tools, o.tools) {
		return before.ranker.Index()
	}
	described := make([]discovery.Tool, len(o.tools))
	for i, h := range o.tools {
		described[i] = describe(h.tool, h.toolType, o.common.servers)
	}
	return o.common.ranker.Index().Beside(described)
}

func sameTools(a, b []held) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].tool.ID != b[i].tool.ID || !a[i].alike(b[i]) {
			return false
		}
	}
	return true
}
