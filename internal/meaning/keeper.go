// Package meaning keeps what a model says that tools and requests mean: vectors. It asks for those of the shared tools in
// the background, whenever the catalogue changed, for those of a user's private tools, if that is wanted, when he
// searches, and for that of a request within a deadline. Without them, or as long as they are not there, the ranking does
// with words.
//
//	catalogue ──Keeper.Run──► texts without a vector ──Store, else Embedder──► Vectors ──► finder.Shelf
//	request ──Keeper.Understand, within a deadline──► discovery.Text with a vector
//	its user ──► his tools' texts without a vector ──Store, else in the background Embedder──► Own ──► finder.Shelf
//
// A vector depends on the model and on the text only, so it is stored under a fingerprint of both, and is asked for once,
// by whichever server claims it. What is held in memory is all that a search needs: if the store is away, what is there
// goes on, and what was asked for meanwhile is stored later.
package meaning

import (
	"cmp"
	"context"
	"crypto/rand"
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
	readBatch    = 256 // vectors that are read at a time
	publishEvery = 512 // texts: a catalogue that takes minutes is better with every part, and may change meanwhile
	remembered   = 4096
	// storeTimeout bounds each question to the store.
	storeTimeout = 10 * time.Second
	// lease is how long a claim holds: longer than a batch may take, with its questions to the store.
	lease = time.Minute
	// needEvery is how often it is noted in the store what is needed; there it is written once a day.
	needEvery = 6 * time.Hour
	// interval is how often it is looked whether the catalogue changed, and what other servers stored.
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
	Store    Store
	// Model names the model: vectors of another are others. Where it has no name, Address is taken for one.
	Model, Address string
	// Dimensions are those that the model is asked for; 0: as it likes.
	Dimensions int
	// Timeout is how long a request's vector is waited for.
	Timeout time.Duration
	// Catalogue tells which catalogue there is, equal if and only if it is the same, and what its shared tools are.
	Catalogue func() (version any, tools func() []discovery.Tool)
	// Private tells of a user's private tools what Catalogue tells of shared ones; nil tools: there are none. Nil: private
	// tools are not embedded.
	Private func(id.User) (version any, tools func() []discovery.Tool)
	// PrivateBytes is how much memory their vectors may take, of all users together. Default: 64 MiB.
	PrivateBytes uint64
	Logger       *slog.Logger
}

// Stats are what there is and what was done.
type Stats struct {
	// Vectors are those of shared tools that are held; Waiting are texts that have none yet.
	Vectors, Waiting int
	// Owners are users whose private tools' vectors are held; Private are these.
	Owners, Private int
	// Loaded are vectors of tools that were read from the store; Broken those that were found there and are none; Made
	// those that the model made; Unmade texts that it was asked for in vain.
	Loaded, Broken, Made, Unmade uint64
	// StoreFailures are questions to the store that failed.
	StoreFailures uint64
	// Asked are requests whose vector was asked for; Remembered those of which it was known; Failed those that went on
	// without.
	Asked, Remembered, Failed uint64
}

// Keeper keeps vectors.
type Keeper struct {
	o        Options
	claimant string
	vault    Vault // of shared tools
	shared   atomic.Pointer[published]
	known    *lru.Cache[string, []float32] // of requests
	owners   *owners                       // nil: private tools are not embedded
	// dimensions are those of the model's last answer, or else of most vectors that are stored; 0: not known.
	dimensions atomic.Int64

	mu      sync.Mutex // guards what follows; held by one synchronization at a time
	plan    *plan
	held    map[Fingerprint][]float32
	unsaved []Stored
	noted   time.Time // when it was last noted what is needed

	waiting                           atomic.Int64
	loaded, broken, made, unmade      atomic.Uint64
	storeFailures                     atomic.Uint64
	asked, rememberedRequests, failed atomic.Uint64
}

// published are the vectors of shared tools.
type published struct {
	*discovery.Vectors
	sample [][]float32 // some of them, evenly by tool
}

// NewKeeper returns a keeper that has no vectors yet.
func NewKeeper(o Options) *Keeper {
	known, err := lru.New[string, []float32](remembered)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	k := &Keeper{o: o, claimant: rand.Text(), vault: o.Store.SharedVectors(), known: known, held: map[Fingerprint][]float32{}}
	k.dimensions.Store(int64(o.Dimensions))
	if o.Private != nil {
		k.owners = newOwners(cmp.Or(o.PrivateBytes, ownBytes))
	}
	return k
}

// Vectors are those of the shared tools; nil: none yet. They are others if and only if something changed.
func (k *Keeper) Vectors() *discovery.Vectors {
	if p := k.shared.Load(); p != nil {
		return p.Vectors
	}
	return nil
}

// Stats returns the counts.
func (k *Keeper) Stats() Stats {
	s := Stats{Waiting: int(k.waiting.Load()), Loaded: k.loaded.Load(), Broken: k.broken.Load(), Made: k.made.Load(), Unmade: k.unmade.Load(),
		StoreFailures: k.storeFailures.Load(), Asked: k.asked.Load(), Remembered: k.rememberedRequests.Load(), Failed: k.failed.Load()}
	if v := k.Vectors(); v != nil {
		s.Vectors = len(v.ByTool)
	}
	if k.owners != nil {
		s.Owners, s.Private = k.owners.count()
	}
	return s
}

// Understand returns a user's text with the vector of what it means, if that comes in time; else the text, and that the
// meaning was missed. Meanwhile, what the store has of his private tools is read.
func (k *Keeper) Understand(ctx context.Context, user id.User, read *discovery.Text, text string) (understood *discovery.Text, missed bool) {
	if text = bounded(text); strings.TrimSpace(text) == "" {
		return read, false
	}
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	own := k.awaken(ctx, user)
	if k.Vectors() == nil {
		await(ctx, own)
		if k.Own(user) == nil {
			return read, true // nothing to compare it with
		}
	}
	vector := k.understand(ctx, text)
	if vector == nil {
		return read, true
	}
	await(ctx, own)
	return read.WithVector(vector), false
}

func await[T any](ctx context.Context, done <-chan T) {
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// understand returns a request's vector; nil: it did not come in time.
func (k *Keeper) understand(ctx context.Context, text string) []float32 {
	if vector, ok := k.known.Get(text); ok {
		k.rememberedRequests.Add(1)
		return vector
	}
	k.asked.Add(1)
	vectors, err := k.o.Embedder.Embed(ctx, []string{text})
	if err != nil {
		k.failed.Add(1)
		return nil
	}
	k.tell(vectors[0])
	k.known.Add(strings.Clone(text), vectors[0])
	return vectors[0]
}

// tell learns from the model's answer in how many dimensions it answers. If that changed, it is another model by the same
// name: what was held of it is of no use.
func (k *Keeper) tell(vector []float32) {
	if before := k.dimensions.Swap(int64(len(vector))); before != 0 && before != int64(len(vector)) {
		k.known.Purge()
	}
}

// Run keeps vectors until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var running sync.WaitGroup
	if k.owners != nil {
		running.Go(func() { k.runOwners(ctx) })
		running.Go(func() { k.runForgetting(ctx) })
	}
	defer running.Wait()
	var p pauses
	for going := ctx.Err() == nil; going; going = p.wait(ctx, interval) {
		err := k.Sync(ctx)
		k.report(&p, "vectors of shared tools", err, ctx.Err() != nil)
	}
}

// report logs the first failure and the first success after failures.
func (k *Keeper) report(p *pauses, what string, err error, ending bool) {
	switch failed := p.pause > 0; {
	case ending:
	case err == nil && failed:
		k.o.Logger.Info(what + " can be had again")
	case err != nil && !failed:
		k.o.Logger.Warn(what+" cannot be had; what has none is found by its words", "error", err)
	}
	if err == nil {
		p.pause = 0
	} else {
		p.pause = min(max(2*p.pause, interval), maxPause)
	}
}

// pauses are longer while things fail.
type pauses struct{ pause time.Duration }

// wait waits, at least as long as told, and says whether to go on.
func (p *pauses) wait(ctx context.Context, least time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(least, p.pause)):
		return true
	}
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
