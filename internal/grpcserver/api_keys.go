package grpcserver

import (
	"context"
	"time"

	toolgrantv1 "github.com/toolgrant/toolgrant/gen/toolgrant/v1"
	"github.com/toolgrant/toolgrant/internal/apikey"
	"github.com/toolgrant/toolgrant/internal/id"
	"github.com/toolgrant/toolgrant/internal/revision"
)

// APIKeyStore keeps API keys. Its errors are faults, or unexpected. Who writes is the context's caller.
type APIKeyStore interface {
	// CreateAPIKey writes a key with its first secret, or finds that the request did.
	CreateAPIKey(context.Context, apikey.Key) (stored apikey.Key, repeated bool, r revision.Revision, err error)
	// RotateAPIKey writes what rotate makes of a key, or finds that the request did.
	RotateAPIKey(ctx context.Context, key id.APIKey, request string, rotate func(*apikey.Key) error) (stored apikey.Key, repeated bool, r revision.Revision, err error)
	// RevokeAPIKey ends a key, or finds that it was.
	RevokeAPIKey(context.Context, id.APIKey, time.Time) (apikey.Key, revision.Revision, error)
	// APIKey returns a key.
	APIKey(context.Context, id.APIKey) (apikey.Key, revision.Revision, error)
	// APIKeys returns the keys after one, at most so many.
	APIKeys(ctx context.Context, after id.APIKey, atMost int32) ([]apikey.Key, revision.Revision, error)
}

type apiKeyServer struct {
	toolgrantv1.UnimplementedApiKeyServiceServer
	store APIKeyStore
	now   func() time.Time
}

// instant is now as the database keeps it.
func (s *apiKeyServer) instant() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// CreateApiKey implements the RPC.
func (s *apiKeyServer) CreateApiKey(ctx context.Context, r *toolgrantv1.CreateApiKeyRequest) (*toolgrantv1.CreateApiKeyResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	p, now := r.GetApiKey(), s.instant()
	secret, hash := apikey.NewSecret()
	k := apikey.Key{ID: id.APIKey(p.GetKeyId()), Title: p.GetTitle(), Role: roleFromProto(p.GetRole()), User: id.User(p.GetUserId()),
		Create: now, Expire: timeFromProto(p.GetExpireTime()).Truncate(time.Microsecond), Secrets: []apikey.Secret{{Hash: hash, RequestID: r.GetRequestId(), Create: now}}}
	if err := k.Validate(now); err != nil {
		return nil, err
	}
	stored, repeated, at, err := s.store.CreateAPIKey(ctx, k)
	if err != nil {
		return nil, err
	}
	if repeated {
		secret = ""
	}
	return &toolgrantv1.CreateApiKeyResponse{ApiKey: apiKeyToProto(&stored, now), Secret: secret, Revision: at.String()}, nil
}

// GetApiKey implements the RPC.
func (s *apiKeyServer) GetApiKey(ctx context.Context, r *toolgrantv1.GetApiKeyRequest) (*toolgrantv1.GetApiKeyResponse, error) {
	k, at, err := s.store.APIKey(ctx, id.APIKey(r.GetKeyId()))
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.GetApiKeyResponse{ApiKey: apiKeyToProto(&k, s.now()), Revision: at.String()}, nil
}

// ListApiKeys implements the RPC.
func (s *apiKeyServer) ListApiKeys(ctx context.Context, r *toolgrantv1.ListApiKeysRequest) (*toolgrantv1.ListApiKeysResponse, error) {
	const list = "api_keys"
	after, size, err := openPage(list, r)
	if err != nil {
		return nil, err
	}
	keys, at, err := s.store.APIKeys(ctx, id.APIKey(after), size+1)
	if err != nil {
		return nil, err
	}
	keys, next := closePage(keys, size, list, func(k apikey.Key) string { return string(k.ID) })
	response, now := &toolgrantv1.ListApiKeysResponse{NextPageToken: next, Revision: at.String()}, s.now()
	for i := range keys {
		response.ApiKeys = append(response.ApiKeys, apiKeyToProto(&keys[i], now))
	}
	return response, nil
}

// RotateApiKey implements the RPC.
func (s *apiKeyServer) RotateApiKey(ctx context.Context, r *toolgrantv1.RotateApiKeyRequest) (*toolgrantv1.RotateApiKeyResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	now := s.instant()
	secret, hash := apikey.NewSecret()
	stored, repeated, at, err := s.store.RotateAPIKey(ctx, id.APIKey(r.GetKeyId()), r.GetRequestId(), func(k *apikey.Key) error {
		return k.Rotate(hash, r.GetRequestId(), r.GetOverlap().AsDuration().Truncate(time.Microsecond), now)
	})
	if err != nil {
		return nil, err
	}
	if repeated {
		secret = ""
	}
	return &toolgrantv1.RotateApiKeyResponse{ApiKey: apiKeyToProto(&stored, now), Secret: secret, Revision: at.String()}, nil
}

// RevokeApiKey implements the RPC.
func (s *apiKeyServer) RevokeApiKey(ctx context.Context, r *toolgrantv1.RevokeApiKeyRequest) (*toolgrantv1.RevokeApiKeyResponse, error) {
	ctx, err := identify(ctx)
	if err != nil {
		return nil, err
	}
	stored, at, err := s.store.RevokeAPIKey(ctx, id.APIKey(r.GetKeyId()), s.instant())
	if err != nil {
		return nil, err
	}
	return &toolgrantv1.RevokeApiKeyResponse{ApiKey: apiKeyToProto(&stored, s.now()), Revision: at.String()}, nil
}

func apiKeyToProto(k *apikey.Key, now time.Time) *toolgrantv1.ApiKey {
	p := &toolgrantv1.ApiKey{KeyId: string(k.ID), Title: k.Title, Role: roleToProto(k.Role), UserId: string(k.User), ExpireTime: timeToProto(k.Expire),
		CreateTime: timeToProto(k.Create), RevokeTime: timeToProto(k.Revoke), UseTime: timeToProto(k.Used)}
	for i := range k.Secrets {
		if secret := &k.Secrets[i]; k.Usable(secret, now) {
			p.Secrets = append(p.Secrets, &toolgrantv1.ApiKeySecret{CreateTime: timeToProto(secret.Create), ExpireTime: timeToProto(secret.Expire)})
		}
	}
	return p
}
