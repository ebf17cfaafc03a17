-- ChangesSince returns what was changed by the transactions that this statement sees and an earlier snapshot
-- did not: those from its xmax on, and those that were in progress then. Whatever order transactions commit
-- in, each is told exactly once by a chain of such statements, each since the snapshot of the one before.
-- Each branch reads at_most rows; if as many were read, there may be more. xid is this transaction's own, if it has
-- one: the snapshot shows what it wrote so far, and nothing of what it writes later. The timeline is another one after a
-- standby was promoted; a standby has none.
-- name: ChangesSince :one
WITH later AS MATERIALIZED (
    (SELECT kind, object_id FROM changes WHERE xid >= (@xmax::text)::xid8 ORDER BY xid LIMIT @at_most::int)
    UNION ALL
    (SELECT kind, object_id FROM changes WHERE xid = ANY ((@in_progress::text[])::xid8[]) ORDER BY xid LIMIT @at_most)
)
SELECT pg_current_snapshot()::text AS snapshot,
       coalesce(pg_current_xact_id_if_assigned()::text, '')::text AS xid,
       CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END::text AS timeline,
       (SELECT version FROM catalog_head)::bigint AS catalog_version,
       (SELECT xid FROM changes_horizon)::text AS horizon,
       (SELECT count(*) FROM later)::int AS rows_read,
       ARRAY(SELECT DISTINCT kind || ' ' || object_id FROM later)::text[] AS kinds_and_ids;

-- PruneChanges deletes the oldest changes, at most so many, and remembers through which transaction.
-- name: PruneChanges :one
WITH gone AS (
    DELETE FROM changes WHERE change_id IN (
        SELECT change_id FROM changes ORDER BY change_id LIMIT @at_most::int)
    AND changes.create_time < @before
    RETURNING xid
), horizon AS (
    UPDATE changes_horizon SET xid = greatest(xid, (SELECT xid FROM gone ORDER BY xid DESC LIMIT 1))
    WHERE EXISTS (SELECT 1 FROM gone)
)
SELECT count(*)::int FROM gone;
