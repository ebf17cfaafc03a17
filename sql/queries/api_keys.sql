-- AddAPIKey writes nothing if there is a key of this id.
-- name: AddAPIKey :execrows
INSERT INTO api_keys (key_id, title, role, user_id, create_time, expire_time)
VALUES (@key_id, @title, @role, sqlc.narg(user_id), @create_time, sqlc.narg(expire_time)) ON CONFLICT DO NOTHING;

-- name: AddAPIKeySecret :exec
INSERT INTO api_key_secrets (key_id, request_id, sha256, create_time) VALUES (@key_id, @request_id, @hash, @create_time);

-- EndAPIKeySecret ends a secret of a key.
-- name: EndAPIKeySecret :exec
UPDATE api_key_secrets SET expire_time = @expire_time::timestamptz WHERE key_id = @key_id AND request_id = @request_id;

-- name: RevokeAPIKey :exec
UPDATE api_keys SET revoke_time = @revoke_time::timestamptz WHERE key_id = @key_id;

-- LockAPIKey returns a key, which nobody else changes meanwhile.
-- name: LockAPIKey :one
SELECT * FROM api_keys WHERE key_id = @key_id FOR UPDATE;

-- name: GetAPIKey :one
SELECT sqlc.embed(api_keys), api_key_uses.use_time FROM api_keys LEFT JOIN api_key_uses USING (key_id)
WHERE api_keys.key_id = @key_id;

-- name: APIKeySecrets :many
SELECT * FROM api_key_secrets WHERE key_id = ANY (@key_ids::text[]) ORDER BY create_time, request_id;

-- ListAPIKeys returns keys after one, at most so many, with the time of their last use.
-- name: ListAPIKeys :many
SELECT sqlc.embed(api_keys), api_key_uses.use_time FROM api_keys LEFT JOIN api_key_uses USING (key_id)
WHERE api_keys.key_id > @after::text ORDER BY api_keys.key_id LIMIT @at_most;

-- LiveAPIKeySecrets returns the secrets that may be used at an instant or later, with what is to be known of their keys.
-- name: LiveAPIKeySecrets :many
SELECT k.key_id, k.role, k.user_id, k.expire_time, s.sha256, s.expire_time AS secret_expire_time
FROM api_keys k JOIN api_key_secrets s USING (key_id)
WHERE k.revoke_time IS NULL AND coalesce(k.expire_time, 'infinity') > @now::timestamptz AND coalesce(s.expire_time, 'infinity') > @now::timestamptz
ORDER BY k.key_id;

-- RecordAPIKeyUses notes when keys were used last; keys that are gone are left out.
-- name: RecordAPIKeyUses :exec
INSERT INTO api_key_uses (key_id, use_time)
SELECT k.key_id, u.use_time FROM (SELECT unnest(@key_ids::text[]) AS key_id, unnest(@use_times::timestamptz[]) AS use_time) u
JOIN api_keys k ON k.key_id = u.key_id
ORDER BY k.key_id
ON CONFLICT (key_id) DO UPDATE SET use_time = greatest(api_key_uses.use_time, excluded.use_time);
