-- UserOverrides reads whether a user exists and the limits of his own, in one statement.
-- name: UserOverrides :one
SELECT (SELECT version FROM catalog_head)::bigint AS catalog_version,
       u.user_id AS user_id,
       o.quota_ids::text[] AS quota_ids, o.limits::bigint[] AS limits, o.expire_times::timestamptz[] AS expire_times
FROM (SELECT 1) AS one
LEFT JOIN users u ON u.user_id = @user_id
LEFT JOIN LATERAL (
    SELECT array_agg(quota_id) AS quota_ids, array_agg(quota_limit) AS limits,
           array_agg(coalesce(expire_time, '0001-01-01 00:00:00+00')) AS expire_times
    FROM quota_overrides WHERE quota_overrides.user_id = u.user_id) AS o ON true;

-- LockUser keeps a user from going.
-- name: LockUser :one
SELECT user_id FROM users WHERE user_id = @user_id FOR KEY SHARE;

-- LockQuota keeps a rule as it is.
-- name: LockQuota :one
SELECT scope FROM quotas WHERE quota_id = @quota_id FOR SHARE;

-- name: GetOverride :one
SELECT quota_limit, expire_time FROM quota_overrides WHERE user_id = @user_id AND quota_id = @quota_id;

-- name: PutOverride :exec
INSERT INTO quota_overrides (user_id, quota_id, quota_limit, expire_time)
VALUES (@user_id, @quota_id, @quota_limit, sqlc.narg(expire_time))
ON CONFLICT (user_id, quota_id) DO UPDATE SET (quota_limit, expire_time) = (excluded.quota_limit, excluded.expire_time);

-- name: DeleteOverride :exec
DELETE FROM quota_overrides WHERE user_id = @user_id AND quota_id = @quota_id;
