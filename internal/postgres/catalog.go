package postgres

import (
	"context"
	"errors"

	"github.com/toolgrant/toolgrant/internal/effective"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// compiledCatalog is the catalogue at one version. The version decides the content, so a reader whose
// snapshot shows the version may use it as if it had read the tables.
type compiledCatalog struct {
	version     int64
	revision    revision.Revision // a snapshot that shows it
	definitions effective.Definitions
	world       *effective.World
}

// errOutrun says that a newer catalogue is compiled than a transaction sees. A newer transaction will see it.
var errOutrun = errors.New("the catalogue was changed meanwhile")

// catalogAt returns the catalogue as tx sees it, or errOutrun. tx must see one snapshot, or hold the
// catalogue's lock. What has not changed since the held catalogue is not read again.
func (s *Store) catalogAt(ctx context.Context, tx db.DBTX) (*compiledCatalog, error) {
	version, err := s.queries.CatalogVersion(ctx, tx)
	if err != nil {
		return nil, err
	}
	held := s.compiled.Load()
	switch {
	case held == nil:
		held = &compiledCatalog{}
	case held.version == version:
		return held, nil
	case held.version > version:
		return nil, errOutrun
	}
	c, err := s.compile(ctx, tx, held)
	if err != nil {
		return nil, err
	}
	// A reader with an older snapshot must not put its catalogue in the place of a newer one.
	for held := s.compiled.Load(); held == nil || held.version < version; held = s.compiled.Load() {
		if s.compiled.CompareAndSwap(held, c) {
			break
		}
	}
	return c, nil
}

// compile brings a catalogue up to date with what tx sees. Changes of users advance the version too, but not
// the rules.
func (s *Store) compile(ctx context.Context, tx db.DBTX, held *compiledCatalog) (*compiledCatalog, error) {
	since, err := s.changesSince(ctx, tx, held.revision)
	if err != nil {
		return nil, err
	}
	c := *held
	c.version, c.revision = since.version, since.revision
	if !since.touchesCatalog() {
		return &c, nil
	}
	if err := s.readDefinitions(ctx, tx, &c, since); err != nil {
		return nil, err
	}
	c.world, err = effective.Compile(c.definitions)
	return &c, err
}
