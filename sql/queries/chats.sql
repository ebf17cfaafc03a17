-- name: GetChat :one
SELECT * FROM chats WHERE chat_id = @chat_id;

-- LockChat makes this transaction the only writer of a chat until it ends.
-- name: LockChat :one
SELECT * FROM chats WHERE chat_id = @chat_id FOR UPDATE;

-- CreateChat writes nothing if the chat exists; it waits for a concurrent creation to end.
-- name: CreateChat :execrows
INSERT INTO chats (chat_id, user_id, create_time) VALUES (@chat_id, @user_id, @now) ON CONFLICT DO NOTHING;

-- name: UpdateChat :exec
UPDATE chats SET turn = @turn, entry_count = @entry_count, folded = @folded, end_time = sqlc.narg(end_time)
WHERE chat_id = @chat_id;

-- name: GetChatRequest :one
SELECT * FROM chat_requests WHERE chat_id = @chat_id AND request_id = @request_id;

-- name: AddChatRequest :exec
INSERT INTO chat_requests (chat_id, request_id, fingerprint, first_sequence_number, last_sequence_number, revision, create_time, answer)
VALUES (@chat_id, @request_id, @fingerprint, @first_sequence_number, @last_sequence_number, @revision, @create_time, @answer);

-- name: AddToolEntries :copyfrom
INSERT INTO chat_tool_log (chat_id, sequence_number, tool_id, action, ttl_turns, turn, request_id, create_time, actor)
VALUES (@chat_id, @sequence_number, @tool_id, @action, @ttl_turns, @turn, @request_id, @create_time, @actor);

-- name: AddAvatarEntries :copyfrom
INSERT INTO chat_avatar_log (chat_id, sequence_number, avatar_id, action, turn, request_id, create_time)
VALUES (@chat_id, @sequence_number, @avatar_id, @action, @turn, @request_id, @create_time);

-- ListChatLog returns both logs as one, from one sequence number to another, both included.
-- name: ListChatLog :many
SELECT sequence_number, tool_id, '' AS avatar_id, action, ttl_turns, turn, request_id, create_time, coalesce(actor, '') AS actor
FROM chat_tool_log t WHERE t.chat_id = @chat_id AND t.sequence_number BETWEEN @first AND @last
UNION ALL
SELECT sequence_number, '' AS tool_id, avatar_id, action, NULL::integer AS ttl_turns, turn, request_id, create_time, '' AS actor
FROM chat_avatar_log a WHERE a.chat_id = @chat_id AND a.sequence_number BETWEEN @first AND @last
ORDER BY sequence_number;
