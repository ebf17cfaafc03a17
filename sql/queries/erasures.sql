-- AllowDeletion lets this transaction delete whole chats, approvals and resets of quotas.
-- name: AllowDeletion :exec
SELECT set_config('toolgrant.delete', 'whole', true);

-- TryTurn takes a lock until the transaction ends, or says that another has it.
-- name: TryTurn :one
SELECT pg_try_advisory_xact_lock(@turn::bigint)::bool AS mine;

-- OldChats returns chats that ended before an instant, so many at most, and keeps others from touching them.
-- name: OldChats :many
SELECT chat_id FROM chats WHERE end_time < @before::timestamptz ORDER BY end_time LIMIT @at_most FOR UPDATE SKIP LOCKED;

-- ChatsOfUser returns a user's chats, so many at most, and keeps others from touching them.
-- name: ChatsOfUser :many
SELECT chat_id FROM chats WHERE user_id = @user_id LIMIT @at_most FOR UPDATE;

-- The Delete queries of chats take all of some chats.

-- name: DeleteChatRequests :execrows
DELETE FROM chat_requests WHERE chat_id = ANY (@chat_ids::text[]);

-- name: DeleteChatToolLog :execrows
DELETE FROM chat_tool_log WHERE chat_id = ANY (@chat_ids::text[]);

-- name: DeleteChatAvatarLog :execrows
DELETE FROM chat_avatar_log WHERE chat_id = ANY (@chat_ids::text[]);

-- name: DeleteChats :execrows
DELETE FROM chats WHERE chat_id = ANY (@chat_ids::text[]);

-- PruneHistory deletes what was used before a day, so many rows at most.
-- name: PruneHistory :execrows
DELETE FROM quota_history WHERE (day, user_id, tool_id) IN
    (SELECT h.day, h.user_id, h.tool_id FROM quota_history h WHERE h.day < @before::date ORDER BY h.day, h.user_id, h.tool_id LIMIT @at_most);

-- The Erase queries delete what there is of one user.

-- name: EraseApprovalDecisions :execrows
DELETE FROM approval_decisions d USING approval_requests r WHERE r.approval_id = d.approval_id AND r.user_id = @user_id;

-- name: EraseApprovals :execrows
DELETE FROM approval_requests WHERE user_id = @user_id;

-- name: EraseSearchUses :execrows
DELETE FROM search_uses WHERE user_id = @user_id;

-- name: EraseSearches :execrows
DELETE FROM searches WHERE user_id = @user_id;

-- name: EraseOutcomes :execrows
DELETE FROM call_outcomes WHERE user_id = @user_id;

-- name: EraseHistory :execrows
DELETE FROM quota_history WHERE user_id = @user_id;

-- name: EraseCounters :execrows
DELETE FROM quota_counters WHERE subject = 'u:' || @user_id::text;

-- name: EraseResetsDone :execrows
DELETE FROM quota_resets_done d USING quota_resets r WHERE r.request_id = d.request_id AND r.user_id = @user_id;

-- name: EraseResets :execrows
DELETE FROM quota_resets WHERE user_id = @user_id;

-- name: EraseOverrides :execrows
DELETE FROM quota_overrides WHERE user_id = @user_id;

-- name: EraseDefaultAvatars :many
DELETE FROM default_avatars WHERE user_id = @user_id RETURNING coalesce(device_type_id, '')::text AS device_type_id;

-- name: PrivateTools :many
SELECT tool_id FROM tools WHERE owner_user_id = @user_id ORDER BY tool_id;

-- name: ErasePrivateToolsOfAvatars :execrows
DELETE FROM avatar_tools WHERE tool_id = ANY (@tool_ids::text[]);

-- name: ErasePrivateToolRelations :execrows
DELETE FROM tool_relations WHERE tool_id = ANY (@tool_ids::text[]) OR related_tool_id = ANY (@tool_ids::text[]);

-- name: ErasePrivateToolFallbacks :execrows
DELETE FROM tool_fallbacks WHERE tool_id = ANY (@tool_ids::text[]) OR fallback_tool_id = ANY (@tool_ids::text[]);

-- name: ErasePrivateToolQuotas :execrows
DELETE FROM quotas WHERE tool_id = ANY (@tool_ids::text[]);

-- name: ErasePrivateTools :execrows
DELETE FROM tools WHERE tool_id = ANY (@tool_ids::text[]);

-- name: EraseMemberships :execrows
DELETE FROM memberships WHERE user_id = @user_id;

-- name: EraseDevices :execrows
DELETE FROM devices WHERE user_id = @user_id;

-- name: EraseUser :execrows
DELETE FROM users WHERE user_id = @user_id;

-- AddErasure notes that a user was erased, and when that was last done.
-- name: AddErasure :exec
INSERT INTO erasures (user_id, keep_history) VALUES (@user_id, @keep_history)
ON CONFLICT (user_id) DO UPDATE SET keep_history = excluded.keep_history, erase_time = statement_timestamp();

-- DueErasures returns users that were erased before an instant and are not there again, and those that are.
-- name: DueErasures :many
SELECT e.user_id, e.keep_history, EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id) AS again FROM erasures e
WHERE e.erase_time < @before ORDER BY e.erase_time LIMIT @at_most;

-- name: ForgetErasure :exec
DELETE FROM erasures WHERE user_id = @user_id;

-- LastErasure is when a user was erased last, as far as that is known.
-- name: LastErasure :one
SELECT coalesce(max(erase_time), 'epoch')::timestamptz AS erase_time FROM erasures;
