-- ResolveFacts reads all that one question about a chat rests on, besides the catalogue, in one statement
-- and so from one snapshot. Either id may be empty, which reads nothing of it.
-- name: ResolveFacts :one
SELECT pg_current_snapshot()::text AS snapshot,
       pg_is_in_recovery() AS standby,
       (SELECT version FROM catalog_head)::bigint AS catalog_version,
       u.user_id AS user_id, u.device_ids, u.device_type_ids, u.group_ids, u.start_times, u.expire_times,
       c.user_id AS chat_user_id, c.turn AS chat_turn, c.folded AS chat_folded, c.end_time AS chat_end_time
FROM (SELECT 1) AS one
LEFT JOIN users u ON u.user_id = @user_id
LEFT JOIN chats c ON c.chat_id = @chat_id;

-- name: DeviceExists :one
SELECT EXISTS (SELECT 1 FROM devices WHERE device_id = @device_id);

-- AdvanceChatTurn raises a chat's turn; no row changes if it is as high already.
-- name: AdvanceChatTurn :execrows
UPDATE chats SET turn = @turn WHERE chat_id = @chat_id AND turn < @turn;

-- RecordChange tells followers what this transaction changed.
-- name: RecordChange :exec
INSERT INTO changes (kind, object_id) VALUES (@kind, @object_id);

-- RecordChanges tells followers of many changes at once.
-- name: RecordChanges :exec
INSERT INTO changes (kind, object_id) SELECT unnest(@kinds::text[]), unnest(@object_ids::text[]);

-- Snapshot returns what is visible to this statement, and what identifies this database among all others.
-- name: Snapshot :one
SELECT pg_current_snapshot()::text AS snapshot,
       coalesce(pg_current_xact_id_if_assigned()::text, '')::text AS xid;

-- DatabaseIdentity tells this database from all others, restored copies included.
-- name: DatabaseIdentity :one
SELECT (SELECT system_identifier FROM pg_control_system())::bigint AS system_identifier,
       (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())::bigint AS database_oid;
