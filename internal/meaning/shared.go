package meaning

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/id"
)

// maxSample is how many shared tools' vectors are compared with a request besides those of a user's own tools, to know
// what is usual.
const maxSample = 256

// plan is which vectors a catalogue needs.
type plan struct {
	version any
	tools   []id.Tool     // sorted
	prints  []Fingerprint // of the tools
	missing []want        // one of each text
}

// Sync gets the vectors that shared tools lack, from the store or else from the model, and forgets those that no tool has
// any more. What came before an error stays, and is not asked for again. What other servers are asking for is not
// waited for: it comes with a later call.
func (k *Keeper) Sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replan()
	p := k.plan
	defer func() { k.waiting.Store(int64(len(p.missing))) }()
	if err := k.save(ctx); err != nil {
		return err
	}
	loaded, made := k.loaded.Load(), k.made.Load()
	if len(p.missing) > 0 {
		found, err := k.read(ctx, k.vault, printsOf(p.missing))
		k.take(found)
		k.publish()
		if err != nil {
			return err
		}
	}
	if err := k.note(ctx); err != nil {
		return err
	}
	busy := 0
	for group := range slices.Chunk(slices.Clone(p.missing), publishEvery) {
		if version, _ := k.o.Catalogue(); version != p.version {
			return nil // what is missing now is for the next call
		}
		others, err := k.fetch(ctx, k.vault, group, func(vectors []Stored, stored bool) {
			k.take(vectors)
			if !stored {
				k.unsaved = append(k.unsaved, vectors...)
			}
		})
		k.publish()
		if err != nil {
			return err
		}
		busy += others
	}
	if loaded, made = k.loaded.Load()-loaded, k.made.Load()-made; busy == 0 && loaded+made > 0 {
		k.o.Logger.Info("all shared tools have vectors", "tools", len(p.tools), "loaded", loaded, "made", made)
	}
	return nil
}

// replan looks at the catalogue, if it is another one, or if the model is.
func (k *Keeper) replan() {
	version, describe := k.o.Catalogue()
	dimensions := int(k.dimensions.Load())
	for print, vector := range k.held {
		if len(vector) != dimensions {
			delete(k.held, print)
			k.plan = nil
		}
	}
	if k.plan != nil && k.plan.version == version {
		return
	}
	tools := describe()
	slices.SortFunc(tools, func(a, b discovery.Tool) int { return strings.Compare(string(a.ID), string(b.ID)) })
	tools = tools[:min(len(tools), maxTools)]
	p := &plan{version: version, tools: make([]id.Tool, len(tools)), prints: make([]Fingerprint, len(tools))}
	needed := make(map[Fingerprint]bool, len(tools))
	for i := range tools {
		text := TextOf(&tools[i])
		print := k.o.fingerprint(text)
		p.tools[i], p.prints[i] = tools[i].ID, print
		if k.held[print] == nil && !needed[print] {
			p.missing = append(p.missing, want{Stored{Fingerprint: print}, text})
		}
		needed[print] = true
	}
	for print := range k.held {
		if !needed[print] {
			delete(k.held, print)
		}
	}
	k.plan = p
	k.publish()
}

// take holds vectors.
func (k *Keeper) take(vectors []Stored) {
	if len(vectors) == 0 {
		return
	}
	for _, one := range vectors {
		k.held[one.Fingerprint] = one.Vector
	}
	k.plan.missing = slices.DeleteFunc(k.plan.missing, func(w want) bool { return k.held[w.Fingerprint] != nil })
	k.waiting.Store(int64(len(k.plan.missing)))
}

// save stores what could not be stored when it was made.
func (k *Keeper) save(ctx context.Context) error {
	for len(k.unsaved) > 0 {
		some := k.unsaved[:min(len(k.unsaved), batch)]
		if err := k.ask(ctx, func(ctx context.Context) error { return k.vault.Add(ctx, k.claimant, k.o.Model, some) }); err != nil {
			return err
		}
		k.unsaved = k.unsaved[len(some):]
	}
	return nil
}

// note notes in the store what is needed.
func (k *Keeper) note(ctx context.Context) error {
	if time.Since(k.noted) < needEvery {
		return nil
	}
	for some := range slices.Chunk(k.plan.prints, readBatch) {
		if err := k.ask(ctx, func(ctx context.Context) error { return k.vault.Need(ctx, some) }); err != nil {
			return err
		}
	}
	k.noted = time.Now()
	return nil
}

// publish makes the vectors that there are known, if they changed.
func (k *Keeper) publish() {
	v := &discovery.Vectors{ByTool: make(map[id.Tool][]float32, len(k.plan.tools))}
	all := make([][]float32, 0, len(k.plan.tools))
	for i, tool := range k.plan.tools {
		if vector, ok := k.held[k.plan.prints[i]]; ok {
			v.ByTool[tool] = vector
			all = append(all, vector)
		}
	}
	before := k.shared.Load()
	if before == nil && len(v.ByTool) == 0 || before != nil && sameVectors(before.ByTool, v.ByTool) {
		return
	}
	p := &published{Vectors: v}
	for i := range min(len(all), maxSample) {
		p.sample = append(p.sample, all[i*len(all)/min(len(all), maxSample)])
	}
	k.shared.Store(p)
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
