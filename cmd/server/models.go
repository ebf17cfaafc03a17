package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/toolgrant/toolgrant/internal/config"
	"github.com/toolgrant/toolgrant/internal/discovery"
	"github.com/toolgrant/toolgrant/internal/finder"
	"github.com/toolgrant/toolgrant/internal/grpcserver"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/inference"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/postgres"
	"github.com/toolgrant/toolgrant/internal/replica"
	"github.com/toolgrant/toolgrant/internal/telemetry"
)

// models are those that make searches better, if there are any.
type models struct {
	keeper   *meaning.Keeper
	reranker *grpcserver.Reranker
	close    []func()
}

// newModels makes a shelf use the models that are configured. None is asked yet, so none can keep a server from starting.
func newModels(c *config.Config, memory *replica.Replica, store *postgres.Store, shelf *finder.Shelf, metrics *telemetry.Metrics, log *slog.Logger) (*models, error) {
	m := &models{}
	if c.EmbeddingURL != "" {
		key, err := config.Resolve(c.EmbeddingKey)
		if err != nil {
			return nil, fmt.Errorf("embedding_key: %w", err)
		}
		embedder := inference.NewEmbedder(inference.Options{URL: c.EmbeddingURL, Model: c.EmbeddingModel, Key: string(key)}, c.EmbeddingDimensions)
		options := meaning.Options{Embedder: embedder, Store: store, Model: c.EmbeddingModel, Address: c.EmbeddingURL, Dimensions: c.EmbeddingDimensions,
			Timeout: c.EmbeddingTimeout, Logger: log,
			Catalogue: func() (any, func() []discovery.Tool) {
				world := memory.World()
				return world, func() []discovery.Tool { return finder.Shared(world) }
			}}
		if c.EmbeddingPrivateTools {
			options.Private = func(owner id.User) (any, func() []discovery.Tool) {
				world := memory.World()
				if world.Catalog.OwnedBy(owner).None() {
					return world, nil
				}
				return world, func() []discovery.Tool { return finder.Private(world, owner) }
			}
		}
		m.keeper = meaning.NewKeeper(options)
		shelf.Compare(m.keeper.Vectors)
		shelf.ComparePrivate(m.keeper.Own)
		metrics.WatchEndpoint("embedding", embedder.Stats)
		metrics.WatchMeaning(m.keeper.Stats)
		m.close = append(m.close, embedder.Close)
	}
	if c.RerankerURL != "" {
		key, err := config.Resolve(c.RerankerKey)
		if err != nil {
			return nil, fmt.Errorf("reranker_key: %w", err)
		}
		model := inference.NewReranker(inference.Options{URL: c.RerankerURL, Model: c.RerankerModel, Key: string(key)})
		m.reranker = &grpcserver.Reranker{Ask: model.Rerank, Timeout: c.RerankerTimeout, Candidates: c.RerankerCandidates, Threshold: c.RerankerThreshold}
		metrics.WatchEndpoint("reranker", model.Stats)
		m.close = append(m.close, model.Close)
	}
	return m, nil
}

// run keeps vectors until ctx ends.
func (m *models) run(ctx context.Context) {
	if m.keeper != nil {
		m.keeper.Run(ctx)
	}
	for _, close := range m.close {
		close()
	}
}
