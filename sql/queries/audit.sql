-- AddAuditEntries adds entries, which are given as columns. Empty texts stand for what is null; names of fields
-- are joined by commas.
-- name: AddAuditEntries :exec
INSERT INTO audit_entries (actor, action, kind, object_id, user_id, changed_fields, before, after, reason, request_id)
SELECT unnest(@actors::text[]), unnest(@actions::text[]), unnest(@kinds::text[]), unnest(@object_ids::text[]),
       nullif(unnest(@user_ids::text[]), ''), string_to_array(unnest(@changed_fields::text[]), ','),
       nullif(unnest(@befores::text[]), '')::json, nullif(unnest(@afters::text[]), '')::json,
       unnest(@reasons::text[]), unnest(@request_ids::text[]);

-- PlanWithValues makes this transaction plan its statements for the values that they are given, so that filters
-- that are not asked for cost nothing and an index serves the one that is.
-- name: PlanWithValues :exec
SELECT set_config('plan_cache_mode', 'force_custom_plan', true);

-- ListAuditEntries returns the entries that fit, before one, newest first; at most so many, and of large ones no
-- more than fit into so many bytes, but one. found is how many there would have been without that last bound.
-- name: ListAuditEntries :many
WITH fitting AS (
    SELECT * FROM audit_entries
    WHERE (@action::text = '' OR action = @action)
      AND (@kind::text = '' OR kind = @kind)
      AND (@object_id::text = '' OR object_id = @object_id)
      AND (@actor::text = '' OR actor = @actor)
      AND (@user_id::text = '' OR user_id = @user_id)
      AND (sqlc.narg(start_time)::timestamptz IS NULL OR create_time >= sqlc.narg(start_time))
      AND (sqlc.narg(end_time)::timestamptz IS NULL OR create_time < sqlc.narg(end_time))
      AND (sqlc.narg(before_time)::timestamptz IS NULL
           OR (create_time, sequence_number) < (sqlc.narg(before_time), @before_number::bigint))
    ORDER BY create_time DESC, sequence_number DESC LIMIT @at_most::int
), measured AS (
    SELECT *, count(*) OVER () AS found,
           sum(coalesce(octet_length(before::text), 0) + coalesce(octet_length(after::text), 0))
               OVER (ORDER BY create_time DESC, sequence_number DESC ROWS UNBOUNDED PRECEDING) AS bytes,
           row_number() OVER (ORDER BY create_time DESC, sequence_number DESC) AS place
    FROM fitting
)
SELECT sequence_number, create_time, actor, action, kind, object_id, coalesce(user_id, '')::text AS user_id,
       changed_fields, before, after, reason, request_id, found::int AS found
FROM measured WHERE place = 1 OR bytes <= @at_most_bytes::bigint
ORDER BY create_time DESC, sequence_number DESC;
