-- The List queries return the rules of all tools or types, or of some.

-- name: ListToolQuotas :many
SELECT * FROM quotas WHERE tool_id IS NOT NULL AND (@every::bool OR tool_id = ANY (@ids::text[])) ORDER BY quota_id;

-- name: ListToolTypeQuotas :many
SELECT * FROM quotas WHERE tool_type_id IS NOT NULL AND (@every::bool OR tool_type_id = ANY (@ids::text[])) ORDER BY quota_id;

-- PutQuota writes a rule. One that another tool or type had is taken over, with the overrides of its limit.
-- name: PutQuota :exec
INSERT INTO quotas (quota_id, tool_id, tool_type_id, scope, unit, quota_limit, fixed_ms, calendar_period, calendar_zone,
    refill_per_second, on_outage, on_abandoned, shadow, warn_at)
VALUES (@quota_id, sqlc.narg(tool_id), sqlc.narg(tool_type_id), @scope, @unit, @quota_limit, sqlc.narg(fixed_ms),
    sqlc.narg(calendar_period), sqlc.narg(calendar_zone), sqlc.narg(refill_per_second), @on_outage, @on_abandoned, @shadow, @warn_at)
ON CONFLICT (quota_id) DO UPDATE SET (tool_id, tool_type_id, scope, unit, quota_limit, fixed_ms, calendar_period,
    calendar_zone, refill_per_second, on_outage, on_abandoned, shadow, warn_at) =
    (excluded.tool_id, excluded.tool_type_id, excluded.scope, excluded.unit, excluded.quota_limit, excluded.fixed_ms,
    excluded.calendar_period, excluded.calendar_zone, excluded.refill_per_second, excluded.on_outage,
    excluded.on_abandoned, excluded.shadow, excluded.warn_at);

-- DropQuotas deletes the rules of some tools and types that are not among those to keep.
-- name: DropQuotas :exec
DELETE FROM quotas
WHERE (tool_id = ANY (@tool_ids::text[]) OR tool_type_id = ANY (@tool_type_ids::text[])) AND quota_id <> ALL (@kept::text[]);

-- KeepQuotaCounters writes counters, each of the arrays' places being one, except where a newer version is. In order,
-- so that two of them don't wait for each other.
-- name: KeepQuotaCounters :exec
INSERT INTO quota_counters AS q (subject, quota_id, shape, version, content, expire_time)
SELECT unnest(@subjects::text[]), unnest(@quota_ids::text[]), unnest(@shapes::text[]), unnest(@versions::bigint[]),
    unnest(@contents::text[]), unnest(@expire_times::timestamptz[])
ORDER BY 1, 2, 3
ON CONFLICT (subject, quota_id, shape) DO UPDATE SET (version, content, expire_time) =
    (excluded.version, excluded.content, excluded.expire_time)
WHERE excluded.version > q.version;

-- name: KeptQuotaCounters :many
SELECT * FROM quota_counters WHERE subject = @subject ORDER BY quota_id, shape;

-- name: PruneQuotaCounters :exec
DELETE FROM quota_counters WHERE expire_time < @before;
