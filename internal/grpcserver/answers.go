package grpcserver

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"google.golang.org/grpc/mem"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/availability"
	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/enable"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/span"
)

// Answers keeps answers of ResolveTools, encoded, each with what it rests on: an answer holds as long as that
// is what the replica has. So nobody has to find and drop answers when something changes.
type Answers struct {
	cache *otter.Cache[answerKey, *answer]
	stats *stats.Counter
	tools atomic.Pointer[encodedTools] // of the world asked about last
}

type answerKey struct {
	user   id.User
	chat   string
	device id.Device
	view   toolgrantv1.ToolView
}

// answer is an answer but for its revision.
type answer struct {
	basis
	body    mem.SliceBuffer
	limited []limitedTool // view FULL: the tools that have rules of quotas
}

// basis is what an answer rests on.
type basis struct {
	world       *effective.World
	user        *availability.User
	chat        *enable.Chat
	turn        int32
	needsTurn   bool // whether another turn could make another answer
	from, until time.Time
}

func newBasis(f *replica.Facts, q *effective.Question) basis {
	b := basis{world: f.World, user: f.User, chat: f.Chat, turn: q.Turn, needsTurn: q.Chat.HasTTL(), from: q.Now}
	b.until = q.User.NextChange(q.Now)
	return b
}

// holds tells whether a question has the same answer.
func (b *basis) holds(f *replica.Facts, q *effective.Question) bool {
	return b.world == f.World && b.user == f.User && b.chat == f.Chat && (b.turn == q.Turn || !b.needsTurn) &&
		!q.Now.Before(b.from) && (b.until.IsZero() || q.Now.Before(b.until))
}

// NewAnswers returns a cache of at most so many bytes, as estimated.
func NewAnswers(maxBytes uint64) *Answers {
	counter := stats.NewCounter()
	return &Answers{stats: counter, cache: otter.Must(&otter.Options[answerKey, *answer]{
		StatsRecorder: counter,
		MaximumWeight: maxBytes,
		Weigher: func(k answerKey, a *answer) uint32 {
			const entry = 512 // with what the cache adds
			return uint32(entry + len(k.user) + len(k.chat) + len(k.device) + cap(a.body) + 32*cap(a.limited))
		},
	})}
}

// Size returns how many answers there are, their bytes, and how many were dropped for lack of room.
func (a *Answers) Size() (entries int, bytes, evictions uint64) {
	return a.cache.EstimatedSize(), a.cache.WeightedSize(), a.stats.Snapshot().Evictions
}

// of returns the answer to a question, which it keeps, and whether it was held already.
func (a *Answers) of(ctx context.Context, f *replica.Facts, q *effective.Question, chat string, view toolgrantv1.ToolView) (*answer, bool, error) {
	key := answerKey{q.User.ID, chat, q.Surface.Device, view}
	if held, ok := a.cache.GetIfPresent(key); ok && held.holds(f, q) {
		span.Cached(ctx, "resolve", "encode")
		return held, true, nil
	}
	made, err := a.make(ctx, f, q, view)
	if err == nil {
		a.cache.Set(key, made)
	}
	return made, false, err
}

// make resolves and encodes.
func (a *Answers) make(ctx context.Context, f *replica.Facts, q *effective.Question, view toolgrantv1.ToolView) (*answer, error) {
	_, resolving := span.Start(ctx, "resolve")
	resolved := f.World.Resolve(*q)
	resolving.End(nil)
	_, encoding := span.Start(ctx, "encode")
	made := &answer{basis: newBasis(f, q)}
	var err error
	if made.body, err = a.encode(f, resolved, resolved, view); err == nil && view == toolgrantv1.ToolView_TOOL_VIEW_FULL {
		made.limited, err = limitedTools(f.World, resolved.Effective, made.body)
	}
	encoding.End(err)
	return made, err
}

// encode encodes an answer that gives the tools of one, and withholds those of another: all that is not effective.
func (a *Answers) encode(f *replica.Facts, given, resolved *effective.Answer, view toolgrantv1.ToolView) ([]byte, error) {
	tools := a.tools.Load()
	if tools == nil || tools.world != f.World {
		tools = newEncodedTools(f.World)
		a.tools.Store(tools)
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	body, err := tools.appendTools((*scratch)[:0], given, view)
	if err != nil {
		return nil, err
	}
	var withheld withheldEncoder
	if body, err = withheld.append(body, resolved); err != nil {
		return nil, err
	}
	rest := &toolgrantv1.ResolveToolsResponse{
		ActiveAvatarIds: strings(resolved.Enable.ActiveAvatars),
		NewChat:         f.Chat == nil,
	}
	body, err = canonical.MarshalAppend(body, rest)
	*scratch = body
	return slices.Clone(body), err
}

// scratches are where answers grow before their size is known.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// message is the answer with the revision that it is complete through.
func (a *answer) message(f *replica.Facts) encoded { return complete(a.body, f) }

// complete is an answer's body with the revision that it is complete through.
func complete(body mem.SliceBuffer, f *replica.Facts) encoded {
	tail := appendString(make([]byte, 0, len(f.Token)+8), revisionField, f.Token)
	if f.Stale {
		tail = appendTrue(tail, staleField)
	}
	return encoded{body, mem.SliceBuffer(tail)}
}
