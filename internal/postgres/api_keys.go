package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/audit"
	"github.com/toolgrant/toolgrant/internal/caller"
	"github.com/toolgrant/toolgrant/internal/fault"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/postgres/db"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// CreateAPIKey writes a key with its first secret. If the request made it before, it returns what there is, and says so.
func (s *Store) CreateAPIKey(ctx context.Context, k apikey.Key) (stored apikey.Key, repeated bool, r revision.Revision, err error) {
	first := k.Secrets[0]
	err = s.write(ctx, func(tx pgx.Tx) error {
		if k.User != "" {
			if _, err := s.queries.LockUser(ctx, tx, string(k.User)); errors.Is(err, pgx.ErrNoRows) {
				return fault.Missing("user", string(k.User))
			} else if err != nil {
				return err
			}
		}
		added, err := s.queries.AddAPIKey(ctx, tx, db.AddAPIKeyParams{KeyID: string(k.ID), Title: k.Title, Role: string(k.Role),
			UserID: orNull(k.User), CreateTime: k.Create, ExpireTime: timeOrNull(k.Expire)})
		if err != nil {
			return err
		}
		if repeated = added == 0; repeated {
			if stored, err = s.lockedAPIKey(ctx, tx, k.ID); err != nil {
				return err
			}
			switch {
			case len(stored.Secrets) == 0 || stored.Secrets[0].RequestID != first.RequestID:
				return fault.Exists("API key", string(k.ID))
			case !stored.Same(&k):
				return &fault.Fault{Kind: fault.AlreadyExists, Reason: fault.ReasonRequestIDReused, Message: "the request_id was used before, for another API key"}
			}
			r, err = s.snapshotRevision(ctx, tx)
			return err
		}
		stored = k
		if err := s.addAPIKeySecret(ctx, tx, k.ID, &first); err != nil {
			return err
		}
		r, err = s.endAPIKeyWrite(ctx, tx, audit.ActionCreate, nil, &stored)
		return err
	})
	return stored, repeated, r, err
}

// RotateAPIKey gives a key another secret, of which rotate tells the rest. If the request did so before, it returns what
// there is, and says so.
func (s *Store) RotateAPIKey(ctx context.Context, key id.APIKey, request string, rotate func(*apikey.Key) error) (stored apikey.Key, repeated bool, r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if stored, err = s.lockedAPIKey(ctx, tx, key); err != nil {
			return err
		}
		if repeated = stored.MadeBy(request); repeated {
			r, err = s.snapshotRevision(ctx, tx)
			return err
		}
		before := stored
		before.Secrets = append([]apikey.Secret(nil), stored.Secrets...)
		if err := rotate(&stored); err != nil {
			return err
		}
		newest := len(stored.Secrets) - 1
		for i, secret := range stored.Secrets[:newest] {
			if secret.Expire.Equal(before.Secrets[i].Expire) {
				continue
			}
			if err := s.queries.EndAPIKeySecret(ctx, tx, db.EndAPIKeySecretParams{KeyID: string(key), RequestID: secret.RequestID, ExpireTime: secret.Expire}); err != nil {
				return err
			}
		}
		if err := s.addAPIKeySecret(ctx, tx, key, &stored.Secrets[newest]); err != nil {
			return err
		}
		r, err = s.endAPIKeyWrite(ctx, tx, audit.ActionRotate, &before, &stored)
		return err
	})
	return stored, repeated, r, err
}

// RevokeAPIKey ends a key for good. What was revoked before stays as it is.
func (s *Store) RevokeAPIKey(ctx context.Context, key id.APIKey, now time.Time) (stored apikey.Key, r revision.Revision, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if stored, err = s.lockedAPIKey(ctx, tx, key); err != nil {
			return err
		}
		if !stored.Revoke.IsZero() {
			r, err = s.snapshotRevision(ctx, tx)
			return err
		}
		before := stored
		stored.Revoke = now
		if err := s.queries.RevokeAPIKey(ctx, tx, db.RevokeAPIKeyParams{KeyID: string(key), RevokeTime: now}); err != nil {
			return err
		}
		r, err = s.endAPIKeyWrite(ctx, tx, audit.ActionRevoke, &before, &stored)
		return err
	})
	return stored, r, err
}

// endAPIKeyWrite writes down who changed a key, and names the write. (A trigger tells followers.)
func (s *Store) endAPIKeyWrite(ctx context.Context, tx pgx.Tx, action audit.Action, before, after *apikey.Key) (revision.Revision, error) {
	if err := s.addAuditEntries(ctx, tx, []audit.Entry{audit.OfAPIKey(action, before, after, caller.From(ctx))}); err != nil {
		return revision.Revision{}, err
	}
	return s.writeRevision(ctx, tx)
}

func (s *Store) addAPIKeySecret(ctx context.Context, tx pgx.Tx, key id.APIKey, secret *apikey.Secret) error {
	return s.queries.AddAPIKeySecret(ctx, tx, db.AddAPIKeySecretParams{KeyID: string(key), RequestID: secret.RequestID, Hash: secret.Hash[:], CreateTime: secret.Create})
}

// lockedAPIKey returns a key, which nobody else changes until tx ends.
func (s *Store) lockedAPIKey(ctx context.Context, tx pgx.Tx, key id.APIKey) (apikey.Key, error) {
	row, err := s.queries.LockAPIKey(ctx, tx, string(key))
	if errors.Is(err, pgx.ErrNoRows) {
		return apikey.Key{}, fault.Missing("API key", string(key))
	} else if err != nil {
		return apikey.Key{}, err
	}
	keys := []apikey.Key{apiKeyFromRow(&row, nil)}
	return keys[0], s.readAPIKeySecrets(ctx, tx, keys)
}

// readAPIKeySecrets reads the secrets of keys into them.
func (s *Store) readAPIKeySecrets(ctx context.Context, tx pgx.Tx, keys []apikey.Key) error {
	byID := map[string]*apikey.Key{}
	var names []string
	for i := range keys {
		byID[string(keys[i].ID)], names = &keys[i], append(names, string(keys[i].ID))
	}
	rows, err := s.queries.APIKeySecrets(ctx, tx, names)
	for _, row := range rows {
		k := byID[row.KeyID]
		k.Secrets = append(k.Secrets, apikey.Secret{Hash: apikey.Hash(row.Sha256), RequestID: row.RequestID, Create: row.CreateTime, Expire: instant(orEmpty(row.ExpireTime))})
	}
	return err
}

func apiKeyFromRow(row *db.ApiKey, used *time.Time) apikey.Key {
	return apikey.Key{ID: id.APIKey(row.KeyID), Title: row.Title, Role: caller.Role(row.Role), User: id.User(orEmpty(row.UserID)),
		Create: row.CreateTime, Expire: instant(orEmpty(row.ExpireTime)), Revoke: instant(orEmpty(row.RevokeTime)), Used: instant(orEmpty(used))}
}

// APIKey returns a key.
func (s *Store) APIKey(ctx context.Context, key id.APIKey) (found apikey.Key, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		row, err := s.queries.GetAPIKey(ctx, tx, string(key))
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.Missing("API key", string(key))
		} else if err != nil {
			return err
		}
		keys := []apikey.Key{apiKeyFromRow(&row.ApiKey, row.UseTime)}
		err = s.readAPIKeySecrets(ctx, tx, keys)
		found = keys[0]
		return err
	})
	return found, r, err
}

// APIKeys returns the keys after one, at most so many.
func (s *Store) APIKeys(ctx context.Context, after id.APIKey, atMost int32) (keys []apikey.Key, r revision.Revision, err error) {
	err = s.readSnapshot(ctx, func(tx pgx.Tx) error {
		if r, err = s.snapshotRevision(ctx, tx); err != nil {
			return err
		}
		rows, err := s.queries.ListAPIKeys(ctx, tx, db.ListAPIKeysParams{After: string(after), AtMost: atMost})
		if err != nil {
			return err
		}
		keys = make([]apikey.Key, len(rows))
		for i := range rows {
			keys[i] = apiKeyFromRow(&rows[i].ApiKey, rows[i].UseTime)
		}
		return s.readAPIKeySecrets(ctx, tx, keys)
	})
	return keys, r, err
}

// APIKeyRing reads the secrets that may be used.
func (s *Store) APIKeyRing(ctx context.Context) (*apikey.Ring, error) {
	now := time.Now()
	rows, err := s.queries.LiveAPIKeySecrets(ctx, s.pool, now)
	if err != nil {
		return nil, translate(err)
	}
	var keys []apikey.Key
	for _, row := range rows { // by key
		if last := len(keys) - 1; last < 0 || string(keys[last].ID) != row.KeyID {
			keys = append(keys, apikey.Key{ID: id.APIKey(row.KeyID), Role: caller.Role(row.Role), User: id.User(orEmpty(row.UserID)), Expire: instant(orEmpty(row.ExpireTime))})
		}
		k := &keys[len(keys)-1]
		k.Secrets = append(k.Secrets, apikey.Secret{Hash: apikey.Hash(row.Sha256), Expire: instant(orEmpty(row.SecretExpireTime))})
	}
	return apikey.NewRing(keys, now), nil
}

// RecordAPIKeyUses notes when keys were used last.
func (s *Store) RecordAPIKeyUses(ctx context.Context, uses map[id.APIKey]time.Time) error {
	var p db.RecordAPIKeyUsesParams
	for key, at := range uses {
		p.KeyIds, p.UseTimes = append(p.KeyIds, string(key)), append(p.UseTimes, at)
	}
	return translate(s.queries.RecordAPIKeyUses(ctx, s.pool, p))
}
