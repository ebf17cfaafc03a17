// Package effective decides what a model is given in a conversation: what is available and enabled, one tool
// of each name; and says why the rest of what is enabled is withheld. All of it are pure functions of a
// World, the facts of one user and one chat, and an instant.
package effective

import (
	"cmp"
	"time"

	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/catalog"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/routing"
)

// World is the compiled rules of all users. It never changes.
type World struct {
	Catalog      *catalog.Snapshot
	Availability *availability.Snapshot
	Enable       *enable.Snapshot
	// MCPServers are those that tool types name.
	MCPServers []catalog.MCPServer
	// Routing tells by which strategy requests in words are answered.
	Routing routing.Table

	quoted []words // the tools' titles, by number
}

// Definitions is what a World is compiled from.
type Definitions struct {
	ToolTypes      []catalog.ToolType
	Tools          []catalog.Tool
	DeviceTypes    []availability.DeviceType
	Groups         []availability.Group
	Avatars        []enable.Avatar
	DefaultAvatars []enable.DefaultAvatar
	MCPServers     []catalog.MCPServer
	Routing        []routing.Set
}

// Compile compiles definitions. It fails only on what storage prevents: see catalog.Compile.
func Compile(d Definitions) (*World, error) {
	tools, err := catalog.Compile(d.ToolTypes, d.Tools)
	if err != nil {
		return nil, err
	}
	return &World{
		Catalog:      tools,
		Availability: availability.Compile(tools, d.DeviceTypes, d.Groups),
		Enable:       enable.Compile(tools, d.Avatars, d.DefaultAvatars),
		MCPServers:   d.MCPServers,
		Routing:      routing.Compile(d.Routing, priorities(d.Groups)),
		quoted:       quote(tools),
	}, nil
}

func priorities(groups []availability.Group) map[id.Group]int32 {
	all := make(map[id.Group]int32, len(groups))
	for i := range groups {
		all[groups[i].ID] = groups[i].Priority
	}
	return all
}

// Question is a conversation at an instant. The surface must be the web or a device of the user.
type Question struct {
	User    *availability.User
	Surface availability.Surface
	Chat    enable.State
	Turn    int32
	Now     time.Time
}

// Answer is what the model is given, and the parts that it was made of.
type Answer struct {
	Effective    *catalog.Set
	Availability availability.Decision
	Enable       enable.Decision

	world    *World
	question Question
	shadowed map[uint]uint // by which

	// Made when it is asked for, and then used again: many tools are withheld alike.
	elsewhere []availability.Elsewhere
	surfaces  []worded[availability.Surface]
	groups    []worded[id.Group]
}

// Resolve answers a question.
func (w *World) Resolve(q Question) *Answer {
	var deviceType id.DeviceType
	if device, ok := q.User.Device(q.Surface.Device); ok {
		deviceType = device.Type
	}
	a := &Answer{
		Availability: w.Availability.Decide(q.User, q.Surface, q.Now),
		Enable:       w.Enable.Decide(q.Chat, q.Turn, q.User.ID, deviceType),
		world:        w,
		question:     q,
	}
	a.Effective = a.Availability.Available.Intersection(a.Enable.Enabled)
	a.shadowed = w.shadowed(a.Effective.Intersection(w.Catalog.Namesakes()))
	for n := range a.shadowed {
		a.Effective.Clear(n)
	}
	return a
}

// shadowed tells which tools of a set give way to another one of the set, and to which.
func (w *World) shadowed(set *catalog.Set) map[uint]uint {
	if set.None() {
		return nil
	}
	best := map[string]uint{}
	for n := range set.EachSet() {
		name := w.Catalog.Tool(n).Name
		if other, taken := best[name]; !taken || Beats(w.Catalog, n, other) {
			best[name] = n
		}
	}
	shadowed := map[uint]uint{}
	for n := range set.EachSet() {
		if by := best[w.Catalog.Tool(n).Name]; by != n {
			shadowed[n] = by
		}
	}
	return shadowed
}

// Beats tells which of two available tools of one name the model is given: the user's own before a shared
// one, then the higher precedence, then MCP before native, then the smaller id.
func Beats(tools *catalog.Snapshot, a, b uint) bool {
	x, y := tools.Tool(a), tools.Tool(b)
	return cmp.Or(
		compareBool(x.Owner != "", y.Owner != ""),
		cmp.Compare(x.Precedence, y.Precedence),
		compareBool(tools.Type(a).Source.MCP(), tools.Type(b).Source.MCP()),
		cmp.Compare(y.ID, x.ID),
	) > 0
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
