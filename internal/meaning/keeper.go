// Package meaning keeps what a model says that tools and requests mean: vectors. It asks for those of the shared tools in
// the background, whenever the catalogue changed, and for that of a request within a deadline. Without them, or as long as
// they are not there, the ranking does with words.
//
//	catalogue ──Keeper.Run──► texts without a vector ──Embedder──► Vectors ──► finder.Shelf
//	request ──Keeper.Understand, within a deadline──► discovery.Text with a vector
//
// A vector depends on the model and on the text only, so it is kept under a fingerprint of both, and servers that ask the
// same model agree. Private tools are not sent: their owners did not ask for it.
package meaning

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// Bounds.
const (
	maxTools     = 50_000 // beyond it the others, by id, are found by their words
	maxText      = 4096   // bytes of a tool or a request that are sent
	batch        = 64     // texts in a question
	batchTimeout = 30 * time.Second
	publishEvery = 512 // new vectors: a catalogue that takes minutes is better with every part
	remembered   = 4096
	// interval is how often it is looked whether the catalogue changed.
	interval = time.Second
	// maxPause bounds how long a keeper whose questions fail waits; it begins with a second and doubles.
	maxPause = time.Minute
)

// Embedder makes vectors of length 1, all of one dimension, of texts. It returns when ctx ends.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options are those of a keeper.
type Options struct {
	Embedder Embedder
	// Model names the model: vectors of another are others.
	Model string
	// Timeout is how long a request's vector is waited for.
	Timeout time.Duration
	// Catalogue tells which catalogue there is, equal if and only if it is the same, and what its shared tools are.
	Catalogue func() (version any, tools func() []discovery.Tool)
	Logger    *slog.Logger
}

// Stats are what there is and what was done.
type Stats struct {
	// Vectors are those of tools that there are; Waiting are tools that have none yet.
	Vectors, Waiting int
	// Asked are requests whose vector was asked for; Remembered those of which it was known; Failed those that went on
	// without.
	Asked, Remembered, Failed uint64
}

type fingerprint [sha256.Size]byte

// Keeper keeps vectors.
type Keeper struct {
	o       Options
	vectors atomic.Pointer[discovery.Vectors]
	known   *lru.Cache[string, []float32] // of requests

	mu      sync.Mutex // guards what follows; held by one synchronization at a time
	version any
	held    map[fingerprint][]float32

	waiting                   atomic.Int64
	asked, remembered, failed atomic.Uint64
}

// NewKeeper returns a keeper that has no vectors yet.
func NewKeeper(o Options) *Keeper {
	known, err := lru.New[string, []float32](remembered)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	return &Keeper{o: o, known: known, held: map[fingerprint][]float32{}}
}

// Vectors are those of the tools; nil: none yet. They are others if and only if something changed.
func (k *Keeper) Vectors() *discovery.Vectors { return k.vectors.Load() }

// Stats returns the counts.
func (k *Keeper) Stats() Stats {
	s := Stats{Waiting: int(k.waiting.Load()), Asked: k.asked.Load(), Remembered: k.remembered.Load(), Failed: k.failed.Load()}
	if v := k.vectors.Load(); v != nil {
		s.Vectors = len(v.ByTool)
	}
	return s
}

// Understand returns a text with the vector of what it means, if that comes in time; else the text.
func (k *Keeper) Understand(ctx context.Context, read *discovery.Text, text string) *discovery.Text {
	if text = bounded(text); strings.TrimSpace(text) == "" || k.vectors.Load() == nil {
		return read // nothing to compare it with
	}
	if vector, ok := k.known.Get(text); ok {
		k.remembered.Add(1)
		return read.WithVector(vector)
	}
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	k.asked.Add(1)
	vectors, err := k.o.Embedder.Embed(ctx, []string{text})
	if err != nil {
		k.failed.Add(1)
		return read
	}
	k.known.Add(strings.Clone(text), vectors[0])
	return read.WithVector(vectors[0])
}

// Run keeps the tools' vectors until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	pause, failing := time.Duration(0), false
	for {
		wait := max(interval, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := k.Sync(ctx)
		switch {
		case err == nil:
			pause, failing = 0, false
		case ctx.Err() == nil:
			if !failing {
				k.o.Logger.Warn("tools cannot be embedded; they are found by their words", "error", err)
			}
			failing = true
			pause = min(max(2*pause, interval), maxPause)
		}
	}
}

// Sync asks for the vectors that tools of the catalogue lack, and forgets those that no tool has any more. What came
// before an error stays, and is not asked for again.
func (k *Keeper) Sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	version, describe := k.o.Catalogue()
	if version == k.version {
		return nil
	}
	tools := describe()
	slices.SortFunc(tools, func(a, b discovery.Tool) int { return strings.Compare(string(a.ID), string(b.ID)) })
	tools = tools[:min(len(tools), maxTools)]
	prints := make([]fingerprint, len(tools))
	needed := make(map[fingerprint]bool, len(tools))
	var missing []int // of tools; one of each text
	for i := range tools {
		prints[i] = sha256.Sum256([]byte(k.o.Model + "\x00" + TextOf(&tools[i])))
		if _, ok := k.held[prints[i]]; !ok && !needed[prints[i]] {
			missing = append(missing, i)
		}
		needed[prints[i]] = true
	}
	for print := range k.held {
		if !needed[print] {
			delete(k.held, print)
		}
	}
	k.waiting.Store(int64(len(missing)))
	err := k.fill(ctx, tools, prints, missing)
	k.publish(tools, prints)
	if err == nil {
		k.version = version
	}
	return err
}

// fill asks for vectors, many at a time.
func (k *Keeper) fill(ctx context.Context, tools []discovery.Tool, prints []fingerprint, missing []int) error {
	fresh := 0
	for group := range slices.Chunk(missing, batch) {
		texts := make([]string, len(group))
		for i, tool := range group {
			texts[i] = TextOf(&tools[tool])
		}
		limited, cancel := context.WithTimeout(ctx, batchTimeout)
		vectors, err := k.o.Embedder.Embed(limited, texts)
		cancel()
		if err != nil {
			return err
		}
		for i, tool := range group {
			k.held[prints[tool]] = vectors[i]
		}
		k.waiting.Add(-int64(len(group)))
		if fresh += len(group); fresh >= publishEvery {
			k.publish(tools, prints)
			fresh = 0
		}
	}
	return nil
}

// publish makes the vectors that there are known, if they changed.
func (k *Keeper) publish(tools []discovery.Tool, prints []fingerprint) {
	v := &discovery.Vectors{ByTool: make(map[id.Tool][]float32, len(tools))}
	for i := range tools {
		if vector, ok := k.held[prints[i]]; ok {
			v.ByTool[tools[i].ID] = vector
		}
	}
	before := k.vectors.Load()
	if before == nil && len(v.ByTool) == 0 || before != nil && sameVectors(before.ByTool, v.ByTool) {
		return
	}
	k.vectors.Store(v)
}

// sameVectors compares by place in memory: a vector that was kept is the same one.
func sameVectors(a, b map[id.Tool][]float32) bool {
	if len(a) != len(b) {
		return false
	}
	for tool, vector := range a {
		if other := b[tool]; len(other) == 0 || &other[0] != &vector[0] {
			return false
		}
	}
	return true
}

// TextOf is what a tool is embedded as: what it is called, and what it does.
func TextOf(t *discovery.Tool) string {
	parts := []string{t.Name}
	for _, list := range [][]string{t.Titles, t.Aliases, t.Descriptions, t.Keywords, t.Examples, {t.Category, t.Server}} {
		for _, one := range list {
			if one != "" && !slices.Contains(parts, one) {
				parts = append(parts, one)
			}
		}
	}
	return bounded(strings.Join(parts, "\n"))
}

// bounded cuts a text to what is sent, between characters, and makes it valid UTF-8.
func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}
