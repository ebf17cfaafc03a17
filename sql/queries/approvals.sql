-- AskApproval writes nothing if the call asked before; it waits for a concurrent one of the same call to end.
-- name: AskApproval :execrows
INSERT INTO approval_requests (approval_id, call_id, chat_id, user_id, tool_id, function, arguments, arguments_digest,
    create_time, expire_time)
VALUES (@approval_id, @call_id, @chat_id, @user_id, @tool_id, @function, @arguments, @arguments_digest,
    @create_time, @expire_time)
ON CONFLICT (call_id) DO NOTHING;

-- LockApproval makes this transaction the only one that takes a step until it ends.
-- name: LockApproval :one
SELECT approval_id FROM approval_requests WHERE approval_id = @approval_id FOR UPDATE;

-- name: AddApprovalStep :exec
INSERT INTO approval_decisions (approval_id, step, scope, expire_time, actor, reason, create_time)
VALUES (@approval_id, @step, sqlc.narg(scope), sqlc.narg(expire_time), @actor, @reason, @create_time);

-- name: ApprovalsByID :many
SELECT * FROM approval_requests WHERE approval_id = ANY (@ids::text[]) ORDER BY create_time, approval_id;

-- name: ApprovalOfCall :one
SELECT * FROM approval_requests WHERE call_id = @call_id;

-- name: ApprovalSteps :many
SELECT * FROM approval_decisions WHERE approval_id = ANY (@ids::text[]);

-- LastingApprovals returns those that were asked for by a user's calls of a function, and granted for more than one
-- call. Whether they are good for a call is not decided here, but what is over or another chat's is left out.
-- name: LastingApprovals :many
SELECT r.* FROM approval_requests r JOIN approval_decisions g ON g.approval_id = r.approval_id AND g.step = 'GRANT'
WHERE r.user_id = @user_id AND r.tool_id = @tool_id AND r.function = @function
    AND (g.scope = 'UNTIL' OR (g.scope = 'CHAT' AND r.chat_id = @chat_id))
    AND (g.expire_time IS NULL OR g.expire_time > @now)
    AND NOT EXISTS (SELECT 1 FROM approval_decisions t WHERE t.approval_id = r.approval_id AND t.step = 'REVOKE')
ORDER BY r.create_time DESC, r.approval_id DESC LIMIT @at_most;

-- The lists are in the order newest first, after one approval. There is one for each filter that has an index: a
-- query with conditions that only sometimes apply would get a bad plan.

-- name: ListApprovals :many
SELECT * FROM approval_requests WHERE (create_time, approval_id) < (@before_time::timestamptz, @before_id::text)
ORDER BY create_time DESC, approval_id DESC LIMIT @at_most;

-- name: ListApprovalsOfUser :many
SELECT * FROM approval_requests
WHERE user_id = @user_id AND (create_time, approval_id) < (@before_time::timestamptz, @before_id::text)
ORDER BY create_time DESC, approval_id DESC LIMIT @at_most;

-- name: ListApprovalsOfChat :many
SELECT * FROM approval_requests
WHERE chat_id = @chat_id AND (create_time, approval_id) < (@before_time::timestamptz, @before_id::text)
ORDER BY create_time DESC, approval_id DESC LIMIT @at_most;

-- PendingApprovals returns those that wait, of a user or of all, newest first: few, since none waits for long.
-- name: PendingApprovals :many
SELECT * FROM approval_requests r
WHERE r.expire_time > @now AND (@user_id::text = '' OR r.user_id = @user_id)
    AND (r.create_time, r.approval_id) < (@before_time::timestamptz, @before_id::text)
    AND NOT EXISTS (SELECT 1 FROM approval_decisions d WHERE d.approval_id = r.approval_id AND d.step IN ('GRANT', 'DENY'))
ORDER BY r.create_time DESC, r.approval_id DESC LIMIT @at_most;
