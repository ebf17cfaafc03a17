package postgres

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/meaning"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
)

// SharedVectors implements meaning.Store.
func (s *Store) SharedVectors() meaning.Vault { return sharedVectors{s} }

// PrivateVectors implements meaning.Store.
func (s *Store) PrivateVectors(owner id.User) meaning.Vault { return privateVectors{s, string(owner)} }

// ClaimVectors implements meaning.Store.
func (s *Store) ClaimVectors(ctx context.Context, claimant string, wanted []meaning.Fingerprint, lease time.Duration) (claimed []meaning.Fingerprint, err error) {
	err = s.writeAside(ctx, func(tx pgx.Tx) error {
		rows, err := s.queries.ClaimVectors(ctx, tx, db.ClaimVectorsParams{Claimant: claimant, Fingerprints: fingerprints(wanted), Seconds: lease.Seconds()})
		claimed = make([]meaning.Fingerprint, len(rows))
		for i, row := range rows {
			copy(claimed[i][:], row)
		}
		return err
	})
	return claimed, err
}

// ReleaseVectors implements meaning.Store.
func (s *Store) ReleaseVectors(ctx context.Context, claimant string, claimed []meaning.Fingerprint) error {
	return s.writeAside(ctx, func(tx pgx.Tx) error {
		return s.queries.ReleaseVectors(ctx, tx, db.ReleaseVectorsParams{Claimant: claimant, Fingerprints: fingerprints(claimed)})
	})
}

// sharedVectors are those of shared tools.
type sharedVectors struct{ s *Store }

// Read implements meaning.Vault.
func (v sharedVectors) Read(ctx context.Context, wanted []meaning.Fingerprint) ([]meaning.Stored, error) {
	rows, err := v.s.queries.ListSharedVectors(ctx, v.s.pool, fingerprints(wanted))
	stored := make([]meaning.Stored, len(rows))
	for i, row := range rows {
		copy(stored[i].Fingerprint[:], row.Fingerprint)
		stored[i].Vector = numbers(row.Vector)
	}
	return stored, translate(err)
}

// Add implements meaning.Vault.
func (v sharedVectors) Add(ctx context.Context, claimant, model string, vectors []meaning.Stored) error {
	p := db.AddSharedVectorsParams{Claimant: claimant, Model: model}
	for _, one := range vectors {
		p.Fingerprints, p.Vectors = append(p.Fingerprints, one.Fingerprint[:]), append(p.Vectors, vectorBytes(one.Vector))
	}
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.AddSharedVectors(ctx, tx, p) })
}

// Drop implements meaning.Vault.
func (v sharedVectors) Drop(ctx context.Context, broken []meaning.Stored) error {
	var p db.DropSharedVectorsParams
	p.Fingerprints, p.Dimensions = keys(broken)
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.DropSharedVectors(ctx, tx, p) })
}

// Need implements meaning.Vault.
func (v sharedVectors) Need(ctx context.Context, needed []meaning.Fingerprint) error {
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.NeedSharedVectors(ctx, tx, fingerprints(needed)) })
}

// privateVectors are those of one user's private tools. The owner is in every statement.
type privateVectors struct {
	s     *Store
	owner string
}

// Read implements meaning.Vault.
func (v privateVectors) Read(ctx context.Context, wanted []meaning.Fingerprint) ([]meaning.Stored, error) {
	rows, err := v.s.queries.ListPrivateVectors(ctx, v.s.pool, db.ListPrivateVectorsParams{OwnerUserID: v.owner, Fingerprints: fingerprints(wanted)})
	stored := make([]meaning.Stored, len(rows))
	for i, row := range rows {
		copy(stored[i].Fingerprint[:], row.Fingerprint)
		stored[i].Tool, stored[i].Vector = id.Tool(row.ToolID), numbers(row.Vector)
	}
	return stored, translate(err)
}

// Add implements meaning.Vault.
func (v privateVectors) Add(ctx context.Context, claimant, model string, vectors []meaning.Stored) error {
	p := db.AddPrivateVectorsParams{Claimant: claimant, Model: model, OwnerUserID: &v.owner}
	for _, one := range vectors {
		p.Fingerprints, p.Vectors = append(p.Fingerprints, one.Fingerprint[:]), append(p.Vectors, vectorBytes(one.Vector))
		p.ToolIds = append(p.ToolIds, string(one.Tool))
	}
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.AddPrivateVectors(ctx, tx, p) })
}

// Drop implements meaning.Vault.
func (v privateVectors) Drop(ctx context.Context, broken []meaning.Stored) error {
	p := db.DropPrivateVectorsParams{OwnerUserID: v.owner}
	p.Fingerprints, p.Dimensions = keys(broken)
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.DropPrivateVectors(ctx, tx, p) })
}

// Need implements meaning.Vault.
func (v privateVectors) Need(ctx context.Context, needed []meaning.Fingerprint) error {
	p := db.NeedPrivateVectorsParams{OwnerUserID: v.owner, Fingerprints: fingerprints(needed)}
	return v.s.writeAside(ctx, func(tx pgx.Tx) error { return v.s.queries.NeedPrivateVectors(ctx, tx, p) })
}

// PruneVectors deletes vectors that no server needed since an instant, and claims of servers that ended.
func (s *Store) PruneVectors(ctx context.Context, before time.Time) error {
	const batch = 1000
	return s.inTurns(ctx, turnVectors, func(tx pgx.Tx) (bool, error) {
		if _, err := s.queries.PruneVectorClaims(ctx, tx); err != nil {
			return false, err
		}
		shared, err := s.queries.PruneSharedVectors(ctx, tx, db.PruneSharedVectorsParams{Before: before, AtMost: batch})
		if err != nil {
			return false, err
		}
		private, err := s.queries.PrunePrivateVectors(ctx, tx, db.PrunePrivateVectorsParams{Before: before, AtMost: batch})
		return shared == batch || private == batch, err
	})
}

func fingerprints(list []meaning.Fingerprint) [][]byte {
	all := make([][]byte, len(list)) // not nil, which is NULL
	for i := range list {
		all[i] = list[i][:]
	}
	return all
}

func keys(list []meaning.Stored) (fingerprints [][]byte, dimensions []int32) {
	for i := range list {
		fingerprints, dimensions = append(fingerprints, list[i].Fingerprint[:]), append(dimensions, int32(len(list[i].Vector)))
	}
	return fingerprints, dimensions
}

// vectorBytes are a vector's numbers as they are stored: float32, little endian.
func vectorBytes(vector []float32) []byte {
	all := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		all = binary.LittleEndian.AppendUint32(all, math.Float32bits(x))
	}
	return all
}

func numbers(stored []byte) []float32 {
	vector := make([]float32, len(stored)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:]))
	}
	return vector
}
